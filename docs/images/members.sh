#!/usr/bin/env bash
# Makes the figures of docs/membership-results.md again: four regions as MPI jobs of their own on this
# machine, over TCP with TLS; oslo is killed and returns.  `geotrain report --svg` draws their records.
#
#   docs/images/members.sh BUILD_DIR [RUN_DIR]    one minute, on the ports 24101 to 24104
#
# RUN_DIR, which is new, keeps the runs and their report.
set -euo pipefail
images=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
geotrain=$(cd "${1:?a build folder, such as build/release}" && pwd)/geotrain
runs=${2:-$(mktemp -d)}
mkdir -p "$runs"
cd "$runs"
# shellcheck disable=SC2046 # one word per line
export $(grep '^[A-Z]' "$images/../../jobs/mpi.env") OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
sites=(paris london vienna oslo)

"$geotrain" data synth data.h5 --train 8000 --test 500
"$geotrain" cert init ca
for site in "${sites[@]}"; do "$geotrain" cert request "$site" && "$geotrain" cert sign ca "$site.csr"; done
cat >job.yaml <<'YAML'
name: four-sites
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 600}, batch: 16, choices: rule, optimizer: {name: sgd, lr: 0.01, momentum: 0.5}, eval_every: {epochs: 0.5}}
regions:
  - {name: paris, ranks: 2, address: "127.0.0.1:24101"}
  - {name: london, ranks: 2, address: "127.0.0.1:24102"}
  - {name: vienna, ranks: 2, address: "127.0.0.1:24103"}
  - {name: oslo, ranks: 2, address: "127.0.0.1:24104"}
sync: {local: sync, strategy: sma, period: 4, weights: samples, on_loss: continue}
wan: {transport: tcp, tls: {ca: ca/ca.pem, cert: <region>.pem, key: <region>.key}}
compute: {step: 50 ms, emulate: true}
checkpoint: {every: {steps: 40}, keep: 2}
limits: {wan_patience: 5 s}
log: {every: 1 s}
YAML

declare -A jobs
begin() { # SITE WORDS...
  mpirun -n 2 "$geotrain" train job.yaml --region "$1" --run-dir "$1" --progress none "${@:2}" &
  jobs[$1]=$!
}
await() { until grep -qs "$1" paris/paris.jsonl; do kill -0 "${jobs[paris]}"; sleep 0.1; done; }

for site in "${sites[@]}"; do begin "$site"; done
await '"event":"checkpoint","round":4,'
# shellcheck disable=SC2046 # one word per rank
kill -KILL $(pgrep -P "${jobs[oslo]}")
wait "${jobs[oslo]}" || true
await '"event":"members","epoch":1,'
sleep 5
begin oslo --resume
for site in "${sites[@]}"; do wait "${jobs[$site]}"; done
"$geotrain" report paris oslo --out report.html --svg figures
for figure in members training-time; do cp "figures/$figure.svg" "$images/members-$figure.svg"; done
[ -n "${2:-}" ] || rm -rf "$runs"
