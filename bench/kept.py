"""Runs that benchmarks keep between calls.  The settings of each run are stored beside it, so that no
table shows old figures under a new name."""
import hashlib
import json
import os
import sys


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def settings(program, job, data, sets):
    return {"program": digest(program), "job": digest(job), "data": [os.path.realpath(data), os.path.getsize(data)], "sets": sets}


def check(result, made_with):
    """Records the settings of `result`, an existing or future file or folder; ends the program if it was made with other settings."""
    note = result + ".made-with.json"
    if not os.path.exists(note):
        if os.path.exists(result):
            sys.exit(f"{result} does not say what it was made with; remove it, or name another folder with --out")
        with open(note, "w") as f:
            json.dump(made_with, f)
        return
    with open(note) as f:
        before = json.load(f)
    for key in made_with:
        if before.get(key) != made_with[key]:
            sys.exit(f"{result} was made with {key} {before.get(key)}, and this is {made_with[key]}; remove it, or name another folder with --out")
