# Shared by the end-to-end scripts of pipeline.adapt: a job, traces of its link, and the law that
# holds for each.  Sourced after libpipeline.sh.
# A pass takes 0.8 ms and its message as long, 2 ms away.
printf 'time_s,bandwidth,latency\n0,20 Mbit/s,\n6,2.5 Mbit/s,\n10000,0,\n' >fall.csv
printf 'time_s,bandwidth,latency\n0,20 Mbit/s,\n2,2.5 Mbit/s,\n4,0,\n' >wave.csv
awk 'BEGIN { srand(2); print "time_s,bandwidth,latency"
  for (i = 0; i <= 200; i++) printf "%g,%g Mbit/s,\n", i / 5, 20 * (0.9 + 0.2 * rand()) }' >noise.csv
pipeline_job '{name: east, ranks: 3}, {name: west, ranks: 3}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}' '[{between: [east, west], trace: fall.csv, latency: 2 ms}]' |
  sed 's/width: 16/width: 32/; s/micro_batches: 6/micro_batches: 24, adapt: true/; s/step: 24 ms/step: 240 ms/; s/until: {steps: 12}/until: {steps: 120}/; s/eval_every: {steps: 6}/eval_every: {steps: 50}/; s/every: {steps: 5}/every: {steps: 20}/' >adapt.yaml
# soon NAME STEPS: the job in fewer steps, with a trace NAME.csv that falls as early.
soon() {
  printf 'time_s,bandwidth,latency\n0,20 Mbit/s,\n1,2.5 Mbit/s,\n10000,0,\n' >"$1.csv"
  sed -i "s/until: {steps: 120}/until: {steps: $2}/; s/eval_every: {steps: 50}/eval_every: {steps: 20}/; s/trace: fall.csv/trace: $1.csv/" adapt.yaml
}

seconds() { field "$1" virtual_s; }
# The steps after which the order has changed, and the orders, as this region has recorded them.
changes() { sed -nE 's/.*"event":"decision","step":([0-9]+).*"choice":"([0-9a-f]*) .*/\1 \2/p' "$1/$2.jsonl"; }
count() { changes "$1" east | wc -l; }
faster() { awk -v a="$(seconds "$1")" -v b="$(seconds "$2")" -v by="$3" 'BEGIN { exit !(b > by * a) }' || { echo "      $(seconds "$1") s and $(seconds "$2") s" && false; }; }

# law NAME TRACE WORDS...: with and without, under the virtual clock.
law() {
  local name=$1 trace=$2
  shift 2
  completes "$name, kept" 6 adapt.yaml --run-dir "$trace-kept" --clock virtual --set wan.links.0.trace="$trace.csv" --set pipeline.adapt=false "$@"
  completes "$name" 6 adapt.yaml --run-dir "$trace" --clock virtual --set wan.links.0.trace="$trace.csv" "$@"
  check "$name: the parameters" same "$(weights "$trace")" "$(weights "$trace-kept")"
  check "$name: the regions change alike" same "$(changes "$trace" east)" "$(changes "$trace" west)"
  check "$name: it is no more than 1 % slower" faster "$trace" "$trace-kept" 0.99
  simulates "$name" "$trace" 1e-9 adapt.yaml --set wan.links.0.trace="$trace.csv" "$@"
}
