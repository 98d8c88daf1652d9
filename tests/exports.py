#!/usr/bin/env python3
"""Checks that every function that a header declares is called in src or bench; tables and macros
count as calls.

    tests/exports.py           exits with 1 and names the functions that nothing calls
    tests/exports.py --self    exits with 1 unless it finds one that is added"""
import collections
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
# Exports for tests only, with reasons.
ALLOWED = {
    "gt_alloc_alive": "tests count live allocations",
    "gt_alloc_total": "tests show that steps allocate nothing",
    "gt_gateway_queued": "tests see the length of a queue",
    "gt_pipe_region_stalls": "tests count passes that waited for a buffer",
}
# An importer is named by a macro that pastes gt_import_ and the name of its format.
PASTED = re.compile(r"gt_import_\w+")


def code(path):
    """The file without comments and texts."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.sub(r'"(\\.|[^"\\\n])*"', '""', re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S))


def declared(header):
    """Names of the functions that a header declares."""
    header = re.sub(r"(?m)^#.*(\\\n.*)*$", "", header)
    while True:
        flat = re.sub(r"\{[^{}]*\}", ";", header)
        if flat == header:
            break
        header = flat
    for declaration in header.split(";"):
        name = re.match(r"[^()]*?\b(gt_\w+)\s*\(", declaration)
        if name and "typedef" not in declaration and not re.search(r"static inline|GT_INLINE", declaration):
            yield name.group(1)


def uncalled(texts):
    """texts: code by path.  The functions whose name stands nowhere but in their declaration and
    their definition."""
    names = collections.Counter(word for text in texts.values() for word in re.findall(r"\bgt_\w+", text))
    return sorted({name for path, text in texts.items() if path.endswith(".h") for name in declared(text) if names[name] <= 2})


def main():
    os.chdir(ROOT)
    paths = [path for pattern in ("include/geotrain/*.h", "src/**/*.[ch]", "bench/**/*.[ch]") for path in glob.glob(pattern, recursive=True)]
    texts = {path: code(path) for path in paths}
    if sys.argv[1:] == ["--self"]:
        texts["extra.h"] = "void gt_nobody_calls(int);\nvoid gt_somebody_calls(int);\n"
        texts["extra.c"] = "void gt_nobody_calls(int n) {}\nvoid gt_somebody_calls(int n) {}\nint main(void) { gt_somebody_calls(1); }\n"
        found = uncalled(texts)
        sys.exit(0 if "gt_nobody_calls" in found and "gt_somebody_calls" not in found else 1)
    found = [name for name in uncalled(texts) if not PASTED.fullmatch(name)]
    wrong = [f"{name} is declared, and nothing in src or bench calls it" for name in found if name not in ALLOWED]
    wrong += [f"{name} is called: its line in tests/exports.py goes" for name in ALLOWED if name not in found]
    print("\n".join(wrong) or "every function that a header declares is called")
    sys.exit(1 if wrong else 0)


main()
