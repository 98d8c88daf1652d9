#!/usr/bin/env python3
"""Checks the language of texts: no form of a list that readers have to decode, and a comment of a
public function begins with its verb.

    tests/language.py           exits with 1 and names the places
    tests/language.py --self    exits with 1 unless it finds what is added"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TEXTS = ("README.md", "CONTRIBUTING.md", "docs/*.md", "include/geotrain/**/*.h", "src/**/*.[ch]", "jobs/*", "slurm/*", "netem/*", "datasets/get", "tests/*/*.[ch]")
# Forms in comments, and what to write instead.
PARTS = re.compile(r"^(src|tests|include)/")
PART_FORMS = {
    r"\b[Nn]obody\b": "no region, no rank",
    r"\b[Ww]hoever\b": "the region that, the rank that",
    r"\bunder way\b": "in flight, in progress",
    r"\bgo(es)? on\b": "continue",
    r"\bbeside\b": "in addition to, during",
    r"\bWhether\b": "True if",
    r"\bone behind the other\b": "one after the other",
    r"\bthat there (is|are)\b(?! no)": "existing, known",
    r"\banew\b": "again",
    r"\bat most so many\b": "at most N",
    r"\bsigns? of life\b": "heartbeat",
    r"\b(are|is) told\b": "get, receive",
    r"\bin(?: the)? place of\b": "instead of",
}
# What to write instead.
FORMS = {
    r"\"[^\"\n]*; [^;\"\n]+ (is|are) needed\b": "expected X, or: KEY must be X",
    r"what was found and what is needed": "what was found and what was expected",
    r"\bby which way\b": "topology",
    r"\bof late\b": "recently",
    r"\btold of\b": "announced",
    r"(?<!as it )\bgoes on\b(?! the wire)": "continues",
    r"\bas it is, (?!in)": "unchanged",
    r"\bthose that there are\b": "the known ones",
}
# The same, in the prose of pages only: not in their code, outputs and names.
PAGE_FORMS = {
    r"\b[Nn]obody\b": "no region, no rank",
    r"\bunder\s+way\b": "in flight, in progress",
    r"\bbeside\b": "in addition to, during",
    r"\bas ever\b": "as before, or leave it out",
    r"\bThis page (says|describes|shows|explains|compares)\b": "After this page you can ...",
    r"\bbut\s+for\b": "except for",
    r"\bon\s+(its|their)\s+way\b": "in flight",
    r"\bgoes\s+by\b": "uses",
    r"\bbegin\s+of\b": "beginning of, start of",
    r"\bthe\s+more\s+so\b": "even more",
    r"\b(mates?|twins?)\b": "stage group, replicas",
    r"\bsigns?\s+of\s+life\b": "heartbeat",
    r"\bwhat\s+(it|they|he)\s+(is|are|has|have|had|sends?|needs?|takes?)\b": "the noun",
    r"\bsays?\s+(what|which|how|where)\s(?!was)": "gives, lists, prints, returns",
}
COMMENT = re.compile(r"^/\*((?:(?!\*/).)*)\*/\n((?!typedef|struct|#|enum|static)[a-z_][^;{}]*?\b(gt_\w+)\s*\([^;{}]*;)", re.S | re.M)
VERB = re.compile(r"([A-Z][a-z]+s|True if|Call when|Call|Compute|Find|Return|Take)\b")
# Words that end in s and are not verbs.
NOUNS = {"Bytes", "Columns", "Errors", "Floats", "His", "Its", "Links", "Means", "Parameters", "Ranks", "Regions", "Samples", "Seconds", "Steps", "Sums", "This"}


def prose(text):
    """A page without its blocks of code and its names, line by line."""
    lines, code = [], False
    for line in text.split("\n"):
        fence = line.startswith("```")
        code ^= fence
        lines.append("" if code or fence or line.startswith("    ") else re.sub(r"`[^`]*`", "``", line))
    return "\n".join(lines)


def faults(path, text):
    """Yields a line for each place."""
    places = [(form, instead, text) for form, instead in FORMS.items() if not path.startswith("tests/")]
    if path.endswith(".md") and not path.endswith("job-file.md"):  # that one is generated
        places += [(form, instead, prose(text)) for form, instead in PAGE_FORMS.items()]
    for form, instead, text in places:
        for match in re.finditer(form, text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: \"{match.group()[:60]}\"; expected a text with: {instead}"
    if PARTS.match(path):
        for comment in re.finditer(r"/\*.*?\*/", text, re.S):
            for form, instead in PART_FORMS.items():
                for match in re.finditer(form.replace(" ", r"\s+"), comment.group()):
                    yield f"{path}:{text.count(chr(10), 0, comment.start() + match.start()) + 1}: \"{match.group()}\" in a comment; expected: {instead}"
    if not path.startswith("include/"):
        return
    for match in COMMENT.finditer(text):
        words = re.sub(r"\s+", " ", match.group(1)).strip()
        verb = VERB.match(words)
        if words.startswith("----") or (verb and verb.group(1) not in NOUNS):
            continue
        yield f"{path}: the comment of {match.group(3)} begins with \"{words[:40]}\"; expected its verb, as in: Returns, True if, Call when"


def main():
    os.chdir(ROOT)
    texts = {path: open(path, encoding="utf-8").read() for pattern in TEXTS for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)}
    if sys.argv[1:] == ["--self"]:
        texts = {"src/a.c": "fail(\"it has %d; 1 or more are needed\")\nhow it goes on the wire\n", "src/wan/a.c": "/* What is under\n   way. */\n", "docs/a.md": "Nobody waits `beside` it.\n", "include/a.h": "/* The size. */\nsize_t gt_size(void);\n/* Returns it. */\nint gt_b(void);\n"}
    found = [line for path, text in sorted(texts.items()) for line in faults(path, text)]
    if sys.argv[1:] == ["--self"]:
        sys.exit(0 if len(found) == 4 else 1)
    print("\n".join(found) or f"{len(texts)} files read, no fault found")
    sys.exit(1 if found else 0)


main()
