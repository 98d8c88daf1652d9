#!/usr/bin/env python3
"""Runs for report.sh, written without training.

    report_made.py            writes them into the current folder
    report_made.py --reports  checks what their reports say: prints a line `ok NAME` or `no NAME: FOUND` each"""
import csv
import glob
import json
import os
import random
import re
import sys
import xml.dom.minidom

JOB = """name: made
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 60}, batch: 16, optimizer: {name: sgd, lr: 0.02}}
regions: [%s]
sync: {strategy: sma, period: 4}
wan: {emulate: %s, default: {bandwidth: 8 Mbit/s, latency: 1 ms}%s}
"""
LONG = "\u00fc" * 90 + "x"
PHASES = {"forward_s": 8, "backward_s": 0, "backward_input_s": 6, "backward_weight_s": 2, "bubble_s": 4, "transfer_s": 3, "update_s": 1, "step_end_s": 0, "evaluation_s": 0}


def make(folder, regions, records, summary=None, wan="", emulate="true"):
    """regions: names, or (name, ranks); records: lines by region."""
    os.makedirs(folder)
    regions = [r if isinstance(r, tuple) else (r, 2) for r in regions]
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(JOB % (", ".join("{name: %s, ranks: %d}" % r for r in regions), emulate, wan))
    for name, lines in records.items():
        with open(f"{folder}/{name}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if summary is not None:
        same = {"job": "made", "model": "lenet5", "strategy": "sma", "clock": "real", "resumes": 0, "virtual_s": None, "links": []}
        with open(f"{folder}/summary.json", "w", encoding="utf-8") as file:
            json.dump(same | summary, file)


def record(n, sent, loss=lambda k: 2.0 / (k + 1), **more):
    """A start and n lines of progress, 10 s apart; sent(k): bytes to each region until line k."""
    lines = [{"t": 0, "event": "start", "clock": "real", "workers": 1, "region": "own", "resumes": 0, "wan_bytes_to": sent(0)}]
    for k in range(1, n + 1):
        line = {"t": 10 * k, "event": "progress", "step": k, "samples": 1000 * k, "loss": loss(k), "compute_s": k, "wait_s": 0, "wan_wait_s": 0}
        lines.append(line | {"wan_bytes": sum(sent(k)), "wan_bytes_to": sent(k)} | more)
    return lines


def result(name, **more):
    """A region of a summary."""
    return {"name": name, "workers": 1, "steps": 9, "samples": 900, "compute_s": 5, "wan_wait_s": 1, "local_wait_s": 1, "idle_s": 0, "wall_s": 10} | more


def make_all():
    random.seed(1)
    sums = [0]
    for _ in range(1300):
        sums.append(sums[-1] + random.randrange(2000000))
    # more lines than a drawing has points; the last one has no bytes
    make("long", ["east", "west"], {"east": record(1300, lambda k: [0, sums[k]]) + [{"t": 13001, "event": "complete", "step": 1300}]})
    names = list("abcdefg")
    make("seven", names, {name: record(4, lambda k, i=i: [0 if j == i else (7 * i + j) * k for j in range(7)]) for i, name in enumerate(names)})
    ended = {"wall_s": 10, "samples": 2000, "test_loss": 0.5}
    make("lost", [("hub", 1), "east", "north"],
         {"hub": record(2, lambda k: [0, k, k], lambda k: None),
          "east": record(3, lambda k: [k, 0, k]) + [{"t": 30, "event": "lost", "region": "north", "step": 3}]},
         ended | {
             "test_accuracy": 0.9,
             "regions": [result("hub", workers=0, compute_s=0, wan_wait_s=0, local_wait_s=0), result("east"),
                         result("north", compute_s=0, wan_wait_s=0, local_wait_s=0, steps=0, wall_s=0, warning="lost; its figures at the end are not known")],
             "cost": {"usd": 6, "worker_usd": 3, "ps_usd": 1, "egress_usd": 0.5, "store_usd": 1.5, "assumed": True, "missing": ["PS of hub"],
                      "regions": [{"name": "east", "usd": 4.5, "worker_usd": 3, "ps_usd": 1, "egress_usd": 0.5}]},
             "plan": {"wall": {"predicted": 11, "measured": 10, "error_percent": 10, "low": 9, "high": 13, "within": True}},
         })
    make("again/lost", ["solo"], {"solo": record(3, lambda k: [0])}, ended | {"test_auc": 0.7, "regions": [result("solo")]})
    make(LONG, ["east", "west"], {"east": record(3, lambda k: [0, k])}, ended | {"regions": [result("east"), result("west")]})
    going = record(3, lambda k: [0, 10000000 * k], wan_wait_s=2, wait_s=20)
    going[3]["samples"] = 1234567
    make("running", [("east", 3), "west"], {"east": going + [
        {"t": 30, "event": "phases", "step": 3, "workers": [PHASES | {"stage": 0}, PHASES | {"stage": 1}]},
        {"t": 30, "event": "eval", "step": 3, "samples": 3000, "loss": 0.25, "accuracy": 0.875}]})
    make("stored", ["east", "west"], {"east": record(3, lambda k: [0, 10000000 * k])}, emulate="false",
         wan=", transport: store, store: {url: 'file:///bucket', upload: 6 Mbit/s, download: 4 Mbit/s}")


# ---- the reports ------------------------------------------------------------------------------------------------------------------


def check(name, find, wanted):
    try:
        found = find()
    except Exception as error:
        found = repr(error)
    print(f"ok {name}" if found == wanted else f"no {name}: {found}, expected {wanted}")


def table(report, name, run=None):
    """The rows of a table: of a run, or of all."""
    return [t["rows"] for t in json.load(open(report + ".json", encoding="utf-8"))["tables"] if t["table"] == name and t.get("run") == run][0]


def rows(report, figure):
    return [r for r in csv.DictReader(open(report + ".csv", encoding="utf-8")) if r["figure"] == figure]


def points(report, figure, series):
    return [(float(r["x"]), float(r["y"])) for r in rows(report, figure) if r["series"] == series]


def page(report):
    return open(report + ".html", encoding="utf-8").read()


def drawing(report, figure):
    return xml.dom.minidom.parse(f"{report}.figures/{figure}.svg")


def drawn_lines(report, figure):
    return [e for e in drawing(report, figure).getElementsByTagName("path") if e.getAttribute("class") == "line" and "h24" not in e.getAttribute("d")]


def described(report, figure):
    return drawing(report, figure).getElementsByTagName("desc")[0].firstChild.data


def area(at):
    """Of a line of steps: its mean, over x."""
    return sum(y * (b - a) for (a, y), (b, _) in zip(at, at[1:])) / (at[-1][0] - at[0][0])


def beyond(figures):
    """The labels that reach beyond the right edge of their figure; a digit is 6.7 wide."""
    for path in glob.glob(f"{figures}/*.svg"):
        svg = xml.dom.minidom.parse(path).documentElement
        width = float(svg.getAttribute("viewBox").split()[2])
        for text in svg.getElementsByTagName("text"):
            if text.getAttribute("text-anchor") == "middle" and not text.hasAttribute("transform"):
                label = text.firstChild.data
                if float(text.getAttribute("x")) + 6.7 * len(label) / 2 > width:
                    yield label


def check_long():
    sent = json.loads(open("long/east.jsonl", encoding="utf-8").read().splitlines()[1300])["wan_bytes_to"][1]
    rates = points("long", "links", "east to west")
    check("the rates of 1300 lines add up to their bytes", lambda: round(area(rates) * 13000 / 8), sent)
    check("every loss is a point", lambda: len(points("long", "training-time", "east")), 1300)
    path = drawn_lines("long", "links")[0].getAttribute("d")
    at = [(float(x), 262 - float(y)) for x, y in re.findall(r"[MHL]([\d.]+)[ V]([\d.]+)", path)]
    check("a drawn line has at most 601 points", lambda: 300 < len(at) < 602, True)
    check("its rates are means", lambda: abs(area(at) - 250 * 8 * sent / 13000 / 8e6) < 0.2, True)  # 250 of height: the limit, 8 Mbit/s
    check("its description is the mean rate", lambda: f"east to west: mean {8 * sent / 13000 / 1000:.4g};" in described("long", "links"), True)
    check("a description names both axes", lambda: "horizontal axis: time (h); vertical axis: rate (kbit/s)" in described("long", "links"), True)


def check_seven():
    looks = {(e.getAttribute("style"), e.getAttribute("stroke-dasharray")) for e in drawn_lines("seven", "links")}
    check("32 lines look different", lambda: len(looks), 32)
    first = drawn_lines("seven", "links")[:2]
    check("the first two by their dashes, too", lambda: first[0].getAttribute("stroke-dasharray") != first[1].getAttribute("stroke-dasharray"), True)
    check("the links with most traffic are drawn", lambda: "The 32 busiest of 42 links." in page("seven"), True)
    check("the others are left out", lambda: points("seven", "links", "a to b"), [])


def check_lost():
    check("the overview of a lost region: waits of regions that trained", lambda: table("lost", "results")[0]["wan_wait_percent"], 10)
    check("its times are not known", lambda: [r["wall_s"] for r in table("lost", "regions", "lost") if r["name"] == "north"], [None])
    check("its warning is on the page", lambda: "north: lost; its figures at the end are not known." in page("lost"), True)
    check("the event says which region", lambda: '<td class="word">lost</td><td>region north, step 3</td>' in page("lost"), True)
    check("a start does not repeat its region", lambda: "region own" in page("lost"), False)
    check("it has no bar", lambda: {r["x"] for r in rows("lost", "time")}, {"east"})
    check("a bar's axis is horizontal", lambda: "horizontal axis: mean over" in described("lost", "time") and "vertical" not in described("lost", "time"), True)
    check("requests are a column of the cost", lambda: [r["store_usd"] for r in table("lost", "cost", "lost")], [None, 1.5])
    check("assumed rates are said", lambda: "Rates are partly assumed. Without a known price, and not included: PS of hub." in page("lost"), True)
    check("the predicted range", lambda: [(r["low"], r["high"], r["within"]) for r in table("lost", "plan", "lost")], [(9, 13, True)])


def check_two():
    check("runs of one name have their paths", lambda: [r["run"] for r in table("two", "results")], ["lost", "again/lost"])
    check("a run whose first region aggregates has a line", lambda: {r["run"] for r in rows("two", "training-samples")}, {"lost", "again/lost"})
    check("bars name run and region", lambda: {(r["run"], r["x"]) for r in rows("two", "time")}, {("lost", "east"), ("again/lost", "solo")})
    check("the last label is within its figure", lambda: list(beyond("two.figures")), [])
    check("words and their heads stand on the left", lambda: page("two").count('class="word">sma<') == 2 and '<th class="word">strategy</th>' in page("two"), True)
    check("metrics of two kinds are not compared", lambda: table("two", "differences")[0]["test_metric"], None)
    check("one run with one region has a bar", lambda: [r["y"] for r in rows("lost", "time") if r["series"] == "compute"], ["5"])


def check_named():
    names = {t.firstChild.data for t in drawing("named", "time").getElementsByTagName("text") if t.firstChild}
    check("a long name is cut at its beginning", lambda: "\u2026" + LONG[-84:] + ": east" in names, True)
    check("JSON has it whole", lambda: [f["run"] for f in json.load(open("named.json", encoding="utf-8"))["figures"][0]["series"]], [LONG, "lost"])
    check("'.' is named after its folder", lambda: table("named", "results")[0]["run"], LONG)


def check_running():
    now = table("running", "results")[0]
    check("a run in progress: its last evaluation", lambda: (now["test_loss"], now["test_metric"], now["test_metric_unit"], now["clock"]), (0.25, 87.5, "% accuracy", "real"))
    check("waits of links are waits for the WAN", lambda: round(now["wan_wait_percent"], 6), round(100 * 4 / 30, 6))  # 2 s of 2 workers, and 3 s
    bars = {r["series"]: float(r["y"]) for r in rows("running", "time") if r["x"] == "east"}
    check("and not for the PS", lambda: (bars["wait for the WAN"], bars["wait for the region's PS"]), (4, 6))
    check("phases", lambda: {r["series"]: float(r["y"]) for r in rows("running", "phases")},
          {"forward": 8, "backward": 8, "bubble": 4, "transfer": 3, "step end": 0, "update": 1, "evaluation": 0})
    check("counts are printed in full", lambda: "<td>1234567</td>" in page("running"), True)
    link = table("running", "links", "running")[0]
    check("a link's rate, the limit of wan.default, the share", lambda: (link["mean_bps"], link["limit_bps"], link["limit_percent"]), (8e6, 8e6, 100))
    check("the limit is drawn", lambda: 'class="limit"' in page("running"), True)


def check_stored():
    check("of a store: the lower rate", lambda: table("stored", "links", "stored")[0]["limit_bps"], 4e6)


def check_simulated():
    simulated = table("simulated", "results")[0]
    check("a simulation", lambda: (simulated["state"], simulated["time_s"] > 0, simulated["strategy"]), ("simulated", True, "sma"))
    check("its regions", lambda: [r["name"] for r in table("simulated", "regions", "simulation")], ["east", "west"])


if sys.argv[1:] == ["--reports"]:
    for checks in (check_long, check_seven, check_lost, check_two, check_named, check_running, check_stored, check_simulated):
        try:
            checks()
        except Exception as error:
            print(f"no {checks.__name__}: {error!r}")
else:
    make_all()
