# processors: 1
# geotrain report: one run, several runs, a run in progress, a resumed run, a simulation; its numbers
# are those of the records, also of runs that report_made.py writes; mistakes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# report CODE WORDS...: runs `geotrain report WORDS`; its output is in out and err.
report() {
  local want=$1
  shift
  plain report "$@"
  check "report $*: code $want" same "$code" "$want"
}

# well_formed FILE: every tag of the page or figure is closed, and nothing is loaded.
well_formed() {
  python3 - "$1" <<'PY'
import html.parser
import sys

VOID = {"meta"}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "link", "img") or any(name in ("src", "href") for name, _ in attributes):
            sys.exit(f"      {tag} loads something")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            sys.exit(f"      </{tag}> closes nothing")


text = open(sys.argv[1], encoding="utf-8").read()
reader = Reader()
reader.feed(text)
if reader.open or text.count("<svg") != text.count("<desc>"):
    sys.exit(f"      open: {reader.open}")
PY
}

# numbers CSV RUN REGION: the figures have the losses, samples and bytes of the region's record.
numbers() {
  python3 - "$@" <<'PY'
import csv
import json
import sys

file, run, region = sys.argv[1:4]
rows = list(csv.DictReader(open(file)))
lines = [json.loads(line) for line in open(f"{run}/{region}.jsonl")]
last = {}
for line in lines:  # a resume repeats work
    if line["event"] == "resumed":
        last = {t: l for t, l in last.items() if t <= line["t"]}
    if line["event"] == "progress" and line["loss"] is not None:
        last[line["t"]] = line


def points(figure):
    return [(float(r["x"]), float(r["y"])) for r in rows if r["figure"] == figure and r["series"] == region]


for figure, key in (("training-samples", "samples"), ("training-time", "t"), ("training-bytes", "wan_bytes")):
    want = [(line[key], line["loss"]) for line in last.values()]
    if len(want) < 3 or points(figure) != want:
        sys.exit(f"      {figure} of {region}: {points(figure)[:3]}..., in the record {want[:3]}...")
rates = [(float(r["x"]), float(r["y"])) for r in rows if r["figure"] == "links" and r["series"].startswith(region + " to ")]
sent = sum(y * (b - a) / 8 for (a, y), (b, _) in zip(rates, rates[1:]))
counted = [line["wan_bytes_to"][1] for line in lines if "wan_bytes_to" in line]
if abs(sent - (counted[-1] - counted[0])) > 1:
    sys.exit(f"      the rates of {region} are {sent} bytes, the record has {counted[-1] - counted[0]}")
sent_at = [(line["t"], line["wan_bytes"]) for line in lines if "wan_bytes" in line]
evals = [line for line in lines if line["event"] == "eval"]
found = [x for x, _ in points("loss-bytes")]
for x, line in zip(found, evals):  # between the lines around it, in proportion to the time
    (a, b), = [(a, b) for a, b in zip(sent_at, sent_at[1:]) if a[0] <= line["t"] < b[0]]
    want = a[1] + (b[1] - a[1]) * (line["t"] - a[0]) / (b[0] - a[0])
    if abs(x - want) > 1e-6 * want:
        sys.exit(f"      bytes of the evaluation at {line['t']}: {x}, expected {want}")
if len(found) < 2 or len(found) != len(evals):
    sys.exit(f"      {len(found)} of {len(evals)} evaluations")
bars = {r["series"]: float(r["y"]) for r in rows if r["figure"] == "time" and r["x"] == region}
if not bars or abs(bars["compute"] - json.load(open(f"{run}/summary.json"))["regions"][0]["compute_s"]) > 1e-9:
    sys.exit(f"      time of {region}: {bars}")
PY
}

job job.yaml
echo 'log: {every: 1 s}' >>job.yaml
evaluated=(--set train.eval_every.epochs=null --set train.eval_every.steps=15)
train "a run" 4 job.yaml "${evaluated[@]}" --clock virtual --run-dir 'a&b' --set compute.step="0.3 s"
train "another run" 4 job.yaml "${evaluated[@]}" --clock virtual --run-dir other --set compute.step="0.3 s" --set sync.period=6

report 0 'a&b' --csv one.csv --json one.json --svg figures
first=$(head -n 1 'a&b'/summary.json >/dev/null; "$GEOTRAIN" report 'a&b' --out again.html >/dev/null && cat again.html | sha256sum)
check "the same files, the same page" same "$(sha256sum <report.html)" "$first"
check "the page is whole and loads nothing" well_formed report.html
check "its name is escaped" grep -q '<h2>a&amp;b</h2>' report.html
check "the figures are those of the record" numbers one.csv 'a&b' "$(python3 -c 'import json; print(json.load(open("a&b/summary.json"))["regions"][0]["name"])')"
check "the staleness of links is that of the summary" python3 -c 'import json
a, b = ([l.get("staleness_s") for l in links] for links in (json.load(open("a&b/summary.json"))["links"], [r for t in json.load(open("one.json"))["tables"] if t["table"] == "links" for r in t["rows"]]))
assert a == b and min(a) > 0, (a, b)'
check "JSON has the figures of the CSV" same "$(python3 -c 'import json; print(len(json.load(open("one.json"))["figures"]))')" "$(tail -n +2 one.csv | cut -d, -f1 | sort -u | wc -l)"
check "an SVG for each figure" same "$(ls figures | wc -l)" "$(grep -c '<figure' report.html)"
for f in figures/*.svg; do check "$f is XML" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$f"; done

report 0 'a&b' other --out both.html
check "the page of two runs is whole" well_formed both.html
check "settings that differ" grep -q '<td>sync.period</td>' both.html
check "and no others" [ "$(sed -n '/Settings that differ/,/Figures/p' both.html | grep -c '<tr><td>')" -lt 4 ]

# A resume that repeats work: the lines after its time do not count.
cp -r 'a&b' resumed
python3 - <<'PY'
import json

lines = open("resumed/east.jsonl").read().splitlines()
half = len(lines) // 2
at = json.loads(lines[half - 3])
again = json.loads(lines[0]) | {"t": at["t"], "event": "resumed"}
del again["wan_bytes_to"]
lost = [line.replace('"loss":', '"loss":1') for line in lines[half - 2 : half]]
open("resumed/east.jsonl", "w").write("\n".join(lines[: half - 2] + lost + [json.dumps(again)] + lines[half - 2 :]) + "\n")
PY
report 0 resumed --csv resumed.csv
report 0 resumed 'a&b' --out equal.html
check "runs of one job have no settings that differ" grep -q '<p>The jobs are equal.</p>' equal.html
check "repeated work is drawn once" same "$(sed s/resumed/a\\\&b/ resumed.csv | sha256sum)" "$(sha256sum <one.csv)"

cp -r 'a&b' going
rm going/summary.json
for f in going/*.jsonl; do grep -v '"complete"' "$f" | head -n 8 >part && { cat part; printf '{"t":'; } >"$f"; done
report 0 going
check "a run without a summary" grep -q 'runs, or was killed' report.html

# reports NAME RUNS...: all outputs about runs, as NAME.*
reports() {
  local name=$1
  shift
  report 0 "$@" --out "$name.html" --csv "$name.csv" --json "$name.json" --svg "$name.figures"
  check "$name: the page is whole" well_formed "$name.html"
}

made=$GEOTRAIN_SOURCE/tests/e2e/report_made.py
python3 "$made" || fail "report_made.py"
plain simulate job.yaml --set compute.step="0.3 s" --out simulation
for name in long seven lost running stored; do reports $name $name; done
reports two lost again/lost
(cd "$(printf 'ü%.0s' $(seq 90))x" && "$GEOTRAIN" report . ../lost --out ../named.html --csv ../named.csv --json ../named.json --svg ../named.figures >/dev/null) || fail "report ."
reports simulated simulation
while read -r word name; do if [ "$word" = ok ]; then ok "$name"; else fail "$name"; fi; done < <(python3 "$made" --reports 2>&1)

mkdir empty
report 2 empty
check "a folder that is no run" grep -q 'empty/job.yaml cannot be read: No such file or directory; expected the --run-dir of a run' err
report 2
check "no run" grep -q '0 run directories are given; expected 1 to 12' err
report 2 'a&b' --out missing/x.html
check "a folder that is missing" grep -q 'missing/x.html cannot be written: No such file' err
cp -r 'a&b' kept
for file in summary.json job.yaml east.jsonl; do
  report 2 kept --json kept/$file
  check "$file of a run is no output" cmp kept/$file "a&b/$file"
done
mkfifo fifo
cat fifo >from-fifo &
reader=$!
report 0 'a&b' --csv fifo
wait $reader
check "numbers go into a pipe" cmp from-fifo one.csv
check "the pipe is still there" [ -p fifo ]
echo old >page.html && ln -s page.html link.html
report 0 'a&b' --out link.html
check "a page goes to where a link leads" [ -L link.html -a "$(wc -l <page.html)" -gt 1 ]
finish
