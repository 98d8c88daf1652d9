#!/usr/bin/env python3
"""Checks that the pages which texts name exist, that links between pages lead to a heading, that the
functions and types which pages name exist, and that a guide has at most 1,500 words.

    tests/links.py           exits with 1 and names the places
    tests/links.py --self    exits with 1 unless it finds a lost page, heading and function, and a long guide"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
WORDS = 1500
README_WORDS = 1000
# Pages that may be longer: reference and results.
REFERENCE = ("glossary", "job-file", "data-format", "checkpoint-format", "record-format", "wire-format", "link-model", "model-definitions", "recipes", "troubleshooting")
LONGER = re.compile(r"CONTRIBUTING.md|docs/(performance|.*-results|%s).md" % "|".join(REFERENCE))
TEXTS = ("src/**/*.[ch]", "include/**/*.h", "tests/**/*.[ch]", "tests/**/*.sh", "jobs/*", "slurm/*", "netem/*", "bench/*", "datasets/*")


def headings(text):
    """The anchors of a page, as GitHub makes them."""
    found, code = set(), False
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if re.match("#+ ", line) and not code:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip().lower())
            found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def faults(path, text, pages, names, exists):
    """Yields a line for each place."""
    for match in re.finditer(r"\]\(([^)\s]+)\)", text) if path in pages else ():
        target, _, heading = match.group(1).partition("#")
        if "://" in target:
            continue
        page = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not exists(page) or (heading and heading not in headings(pages.get(page, ""))):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(1)} does not exist"
    for page in re.findall(r"\bdocs/[\w-]+\.md", text) if path not in pages else ():
        if not exists(page):
            yield f"{path}: {page} does not exist"
    for name in re.findall(r"`(gt_[a-z0-9_]+)`", text) if path in pages else ():
        if name not in names:
            yield f"{path}: {name} is not in the source"
    words, most = len(text.split()), README_WORDS if path == "README.md" else WORDS
    if path in pages and not LONGER.fullmatch(path) and words > most:
        yield f"{path} has {words} words; it must have at most {most}"


def main():
    os.chdir(ROOT)
    pages = {path: open(path, encoding="utf-8").read() for pattern in ("*.md", "docs/*.md") for path in glob.glob(pattern)}
    texts = {path: open(path, encoding="utf-8", errors="replace").read() for pattern in TEXTS for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)}
    names = set(re.findall(r"gt_[a-z0-9_]+", "".join(text for path, text in texts.items() if path.endswith((".c", ".h")))))
    exists = os.path.exists
    if sys.argv[1:] == ["--self"]:
        pages = {"docs/a.md": "# A\n[b](b.md#none) [c](c.md) [b](b.md#here-b) `gt_a` `gt_b`\n", "docs/b.md": "# Here: B\n" + "word " * 1500}
        texts, names = {"src/a.c": "/* docs/none.md, docs/a.md */"}, {"gt_a"}
        exists = pages.__contains__
    found = [line for path, text in sorted((pages | texts).items()) for line in faults(path, text, pages, names, exists)]
    if sys.argv[1:] == ["--self"]:
        sys.exit(0 if len(found) == 5 else 1)
    print("\n".join(found) or f"{len(pages)} pages and {len(texts)} files read, no fault found")
    sys.exit(1 if found else 0)


main()
