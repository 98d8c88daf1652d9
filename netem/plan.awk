# Reads a resolved job (`geotrain info JOB.yaml`) and writes the laboratory's plan, one item
# per line:
#   job NAME | emulate BOOL | warning WORDS
#   region INDEX NAME RANKS ACCESS          rates in bit/s on the wire, 0: unlimited
#   pair FROM TO RATE LATENCY_US JITTER_US LOSS_PERCENT LIMIT_PACKETS
# libyaml writes the resolved job as maps, lists and scalars, without comments, anchors or
# multi-line scalars.

# A link's bandwidth is TCP's payload rate: 1448 bytes of payload in a frame of 1514.
BEGIN { WIRE = 1514 / 1448; FRAME_BITS = 8 * 1514; FAST = 10e9 }

function put(path, value) { job[substr(path, 2)] = value }

# Reads a quoted scalar from position `at` of `text`; sets `at` after it.
function quoted(quote,    value, c) {
  for (at++; at <= length(text); at++) {
    c = substr(text, at, 1)
    if (c == "\\" && quote == "\"") { at++; c = substr(text, at, 1) }
    else if (c == quote) {
      if (quote != "'" || substr(text, at + 1, 1) != "'") break
      at++
    }
    value = value c
  }
  at++
  return value
}

function word(stops,    value, c) {
  c = substr(text, at, 1)
  if (c == "\"" || c == "'") return quoted(c)
  for (; at <= length(text); at++) {
    c = substr(text, at, 1)
    if (index(stops, c) && (c != ":" || substr(text, at + 1, 1) ~ /^ ?$/)) break
    value = value c
  }
  sub(/ +$/, "", value)
  return value
}

function blanks() { while (substr(text, at, 1) == " ") at++ }

# Reads the flow value at `at`: a map, a list or a scalar.
function flow(path, stops,    c, n, key) {
  blanks()
  c = substr(text, at, 1)
  if (c != "{" && c != "[") { put(path, word(stops)); return }
  n = 0
  for (at++; at <= length(text);) {
    blanks()
    if (index("}]", substr(text, at, 1))) { at++; break }
    if (substr(text, at, 1) == ",") { at++; continue }
    if (c == "[") { flow(path "." n++, ",]"); continue }
    key = word(":")
    at++
    flow(path "." key, ",}")
  }
}

function open(indent, path) { depth++; indents[depth] = indent; paths[depth] = path }

# One line of block style: "- " opens an item of the list above, "key:" a value.
function block(indent,    top) {
  while (substr(text, at, 2) == "- ") {
    while (depth && (indents[depth] > indent || items[paths[depth]] && indents[depth] == indent)) depth--
    top = depth ? paths[depth] : ""
    top = top "." (0 + count[top]++)
    items[top] = 1
    open(indent, top)
    at += 2
    indent += 2
  }
  if (index("{[", substr(text, at, 1)) || text !~ /: |:$/) { flow(paths[depth], ""); return }
  while (depth && indents[depth] >= indent) depth--
  top = (depth ? paths[depth] : "") "." word(":")
  at++
  blanks()
  if (at > length(text)) open(indent, top)
  else flow(top, "")
}

{
  text = $0
  match(text, /^ */)
  at = RLENGTH + 1
  if (at <= length(text)) block(RLENGTH)
}

# ---- the plan ------------------------------------------------------------------------------------

function quantity(path, factors,    words) {
  if (!(path in job) || split(job[path], words, " ") < 1) return 0
  return words[1] * (words[2] == "" ? 1 : factors[words[2]])
}

function max(a, b) { return a > b ? a : b }

function units() {
  rate["bit/s"] = 1; rate["kbit/s"] = 1e3; rate["Mbit/s"] = 1e6; rate["Gbit/s"] = 1e9; rate["Tbit/s"] = 1e12
  time["ns"] = 1e-9; time["us"] = 1e-6; time["ms"] = 1e-3; time["s"] = 1; time["min"] = 60; time["h"] = 3600; time["d"] = 86400
}

function warn(words) { print "warning " words }

function direction(l, p, q) {
  known[p, q] = 1
  bps[p, q] = WIRE * quantity(l ".bandwidth", rate)
  latency[p, q] = quantity(l ".latency", time)
  jitter[p, q] = quantity(l ".jitter", time)
  loss[p, q] = 0 + job[l ".loss"]
  if (l ".trace" in job) warn("the link " names[p] " -> " names[q] " has a trace; the laboratory does not follow it, and gives it no other bandwidth than `bandwidth`")
}

function links(    i, l, p, q) {
  for (i = 0; (l = "wan.links." i) && (l ".between.0" in job || l ".from" in job); i++) {
    if (l ".from" in job) { direction(l, ids[job[l ".from"]], ids[job[l ".to"]]); continue }
    direction(l, ids[job[l ".between.0"]], ids[job[l ".between.1"]])
    direction(l, ids[job[l ".between.1"]], ids[job[l ".between.0"]])
  }
  if (!("wan.default.bandwidth" in job || "wan.default.latency" in job)) return
  for (p = 0; p < n; p++)
    for (q = 0; q < n; q++)
      if (p != q && !known[p, q]) direction("wan.default", p, q)
}

# Number of packets that netem must hold: those in flight (data of this direction, or
# acknowledgements of the other), and a router's buffer of one round trip or 100 ms.  At least 1000
# (netem's default).
function limit(p, q,    here, back, way) {
  here = bps[p, q] ? bps[p, q] : FAST
  back = bps[q, p] ? bps[q, p] : FAST
  way = max(here, back) * (latency[p, q] + 4 * jitter[p, q])
  return max(1000, int((way + here * max(latency[p, q] + latency[q, p], 0.1)) / FRAME_BITS) + 1)
}

END {
  units()
  print "job " job["name"]
  print "emulate " job["wan.emulate"]
  for (n = 0; "regions." n ".name" in job; n++) {
    names[n] = job["regions." n ".name"]
    ids[names[n]] = n
    printf "region %d %s %d %.0f\n", n, names[n], job["regions." n ".ranks"], WIRE * quantity("regions." n ".access", rate)
  }
  links()
  if ("wan.outages.0.from" in job) warn("the laboratory does not make the job's outages; `lab outage` makes one")
  for (p = 0; p < n; p++)
    for (q = 0; q < n; q++)
      if (known[p, q])
        printf "pair %d %d %.0f %.0f %.0f %.6g %d\n", p, q, bps[p, q], 1e6 * latency[p, q], 1e6 * jitter[p, q], 100 * loss[p, q], limit(p, q)
}
