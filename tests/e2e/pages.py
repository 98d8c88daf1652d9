"""pages.py SOURCE GEOTRAIN: runs the commands that stand with their output on the pages of SOURCE
(README.md, docs/*.md), and compares.

A block of lines that are indented by four spaces is checked if it begins with `geotrain COMMAND` or
`$ geotrain COMMAND` (build/release/geotrain, too), COMMAND needs no ranks, no word is a placeholder
such as JOB, and output follows: behind an empty line, or until the next `$ `.  Assignments
(J="...") hold for the rest of the page.  `...` stands for any lines.  A sentence that begins with
"geotrain: " may be broken into lines.  job.yaml is the last yaml block before that has a name.
Prints a line for each block, and the difference.  Exits with 1 if one differs, or if none was found."""
import os
import re
import subprocess
import sys

COMMANDS = "plan|simulate|info|fleet|help|placement|data"
START = re.compile(r"(\$ )?(build/release/)?geotrain (%s) " % COMMANDS)
SITE = re.compile(r"# at \w+")  # real_sites.sh runs these
PROGRESS = re.compile(r"geotrain: \w+: \d+ s so far")  # on a slow machine
IMAGES = "/usr/share/datasets/fashion-mnist"


def blocks(lines):
    """(number of the first line, lines) of each indented block, and ("yaml", lines)."""
    at = 0
    while at < len(lines):
        first = at
        if lines[at] == "```yaml":
            at = lines.index("```", at)
            yield "yaml", lines[first + 1 : at]
        elif lines[at].startswith("    "):
            while at < len(lines) and (not lines[at] or lines[at].startswith("    ")):
                at += 1
            yield first + 1, [line[4:] for line in lines[first:at]]
            continue
        at += 1


def steps(block):
    """(command, lines of its output) of each command of a block."""
    found, dollar = [], block[0].startswith("$ ")
    at = 0
    while at < len(block):
        line = block[at]
        if line.startswith("$ ") if dollar else not found or not found[-1][0].strip().startswith("geotrain"):
            command = line.removeprefix("$ ").removeprefix("build/release/")
            while command.endswith("\\"):
                at += 1
                command = command[:-1] + block[at].strip()
            found.append((command, []))
        else:
            found[-1][1].append(line)
        at += 1
    return found


def trimmed(lines):
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return [line.rstrip() for line in lines]


def matches(want, got):
    """Whether `...` lines of `want` can stand for lines of `got`."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[n:]) for n in range(len(got) + 1))
    return bool(got) and want[0] == got[0] and matches(want[1:], got[1:])


def sentence(lines):
    return [" ".join(" ".join(lines).split())] if lines and lines[0].startswith("geotrain: ") else lines


def check(page, number, command, want, given):
    done = subprocess.run(["bash", "-c", given + command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    want, got = sentence(trimmed(want)), sentence(trimmed([line for line in done.stdout.split("\n") if not PROGRESS.match(line)]))
    if not want:
        return True
    if matches(want, got):
        print("ok %s:%d: %s" % (page, number, command[:60]))
        return True
    print("DIFFERS %s:%d: %s\n---- it prints" % (page, number, command))
    print("\n".join(got))
    print("---- the page lacks: " + " | ".join(line for line in got if line not in want)[:1000])
    return False


def main():
    source, geotrain = sys.argv[1:]
    os.environ["PATH"] = os.path.dirname(os.path.abspath(geotrain)) + ":" + os.environ["PATH"]
    os.environ["COLUMNS"] = "1000"
    if not os.path.exists("jobs"):
        os.symlink(os.path.join(source, "jobs"), "jobs")
    pages = ["README.md"] + sorted("docs/" + name for name in os.listdir(os.path.join(source, "docs")))
    checked = failed = 0
    for page in pages:
        if not page.endswith(".md"):
            continue
        given = ""
        with open(os.path.join(source, page)) as file:
            lines = file.read().split("\n")
        for number, block in blocks(lines):
            text = "\n".join(block)
            if number == "yaml":
                if text.startswith("name: "):
                    with open("job.yaml", "w") as file:
                        file.write(text + "\n")
                continue
            assigned = re.match(r'[A-Z]="[^"]*"\n', text)
            if assigned:
                given += assigned.group()
                text = text[assigned.end() :]
            if not START.match(text) or SITE.search(text) or (IMAGES in text and not os.path.exists(IMAGES)):
                continue
            for command, want in steps(text.split("\n")):
                if re.search(r"\b[A-Z]{3,}\b", command) or not START.match(command + " "):
                    break
                checked += bool(trimmed(want))
                failed += not check(page, number, command, want, given)
    print("%d outputs compared, %d differ" % (checked, failed))
    sys.exit(failed > 0 or checked == 0)


main()
