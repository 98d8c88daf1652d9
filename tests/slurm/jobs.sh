# labels: full
# timeout: 600
# The ways to run one training on Slurm: one job, a heterogeneous job over three partitions, an
# array of four strategies, a chain.  The map of ranks is right in each.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cluster_up

# three FILE: three regions, each in its own partition and on its own node.
three() {
  data data.h5
  cat >"$1" <<'YAML'
name: three
seed: 3
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [1, 1, 1]}}
train: {until: {steps: 40}, batch: 16, choices: rule, optimizer: {name: sgd, lr: 0.02, momentum: 0.9}}
regions:
  - {name: eu, ranks: 2, slurm: {partition: eu, nodes: 1}}
  - {name: us, ranks: 2, slurm: {partition: us, nodes: 1}}
  - {name: ap, ranks: 2, slurm: {partition: ap, nodes: 1}}
sync: {local: sync, strategy: sma, period: 4, topology: mesh}
wan:
  emulate: true
  links:
    - {between: [eu, us], bandwidth: 1 Gbit/s, latency: 1 ms}
    - {between: [us, ap], bandwidth: 1 Gbit/s, latency: 1 ms}
    - {between: [eu, ap], bandwidth: 1 Gbit/s, latency: 1 ms}
checkpoint: {every: {steps: 10}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
slurm: {partition: all}
YAML
}

# mapped NAME RUN EU US AP: two ranks per region, in order, on these hosts.
mapped() {
  local name=$1 map
  map=$(grep -E '^region [a-z]+: ranks' "$2/slurm.log" | tail -n 3 | tr '\n' ' ')
  check "$name: the map" same "$map" "region eu: ranks 0 (PS), 1 on $3 region us: ranks 2 (PS), 3 on $4 region ap: ranks 4 (PS), 5 on $5 "
}

three job.yaml
undisturbed job.yaml 6

submitted "one job" job.yaml one --one && wait_job "one job" "$id" 90 one
job_ended "one job" one 0
mapped "one job" one ap1 eu1 us1 # Slurm gives nodes by name, regions take them in turn
same_model "one job" one

submitted "heterogeneous" job.yaml het --het && wait_job "heterogeneous" "$id" 90 het
job_ended "heterogeneous" het 0
mapped "heterogeneous" het eu1 us1 ap1
same_model "heterogeneous" het

submitted "sweep" job.yaml sweep --one --sweep sync.strategy=sma,ama,asgd-ga,asgd && wait_job "sweep" "$id" 180 sweep
for strategy in sma ama asgd-ga asgd; do
  run=sweep/$strategy
  check "sweep: $strategy ends with its summary" same "$(field "$run" strategy)" "$strategy"
  check "sweep: $strategy, three hosts" same "$(grep -E '^region (eu|us|ap): ' "$run/slurm.log" | sed 's/.* on //' | sort -u | tr '\n' ' ')" "ap1 eu1 us1 "
done

submitted "chain" job.yaml chain --one --chain 2 && wait_job "chain" "$id" 120 chain
same_model "chain" chain
nothing_runs "all"
finish_slurm
