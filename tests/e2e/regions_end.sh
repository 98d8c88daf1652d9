# processors: 2
# The end of regions that are MPI jobs of their own: whatever the strategy and the test sets, each site
# has the final model, the summary and the table; also of the best checkpoint and of a pipeline, and
# when a site is killed before it has written them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
pipeline_steps='8 4 3'
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"

data_train=600
job job.yaml
"$GEOTRAIN" data synth other.h5 --train 300 --test 150 --seed 9 >/dev/null
read -r port < <(free_ports 1)
# apart JOB: its regions as jobs of their own.
apart() { sed -e "s/name: east,/name: east, address: '127.0.0.1:$port',/" -e 's/emulate: true/emulate: false/' -e "s|^wan: {|wan: {transport: tcp, $tls, |" -e "s|^wan:\$|wan:\n  transport: tcp\n  $tls|" "$1"; }
apart job.yaml >apart.yaml
certify east west

# both NAME WORDS...: a run of both, with results at both.
both() {
  local name=$1
  shift
  begin west "$name" "$@"
  begin east "$name" "$@"
  end east "$name" 0
  end west "$name" 0
  gone "$name"
}

both asgd --set sync.strategy=asgd
results asgd
own=(--set data.partition.by=file --set data.partition.shares=null --set regions.0.data.path=data.h5 --set regions.1.data.path=other.h5)
both sets --set sync.strategy=sma "${own[@]}"
results sets
both best --set sync.strategy=sma --set data.validation=0.2 --set train.keep=best
results best
both asgd-sets --set sync.strategy=asgd "${own[@]}"
results asgd-sets
check "the mean was scored on both sets" [ "$(grep -c mean_model asgd-sets-west/summary.json)" = 2 ]
both none --set sync.strategy=none --set sync.period=null
check "none: the same summary everywhere" cmp none-east/summary.json none-west/summary.json
check "none: each its own model" [ -e none-east/final-east.h5 -a -e none-west/final-west.h5 -a ! -e none-west/final.h5 ]

apart four.yaml >stages.yaml
ranks=3 apart=stages.yaml both stages
results stages
train "stages, one job" 6 four.yaml --run-dir one --set wan.emulate=false
check "stages: the bits of one job" same "$(field stages-west params_sha256)" "$(field one params_sha256)"

# A site is killed before it has written its results; then both resume, and write them.
short=(--set sync.strategy=asgd --set limits.local=5s --set limits.wan_patience=5s)
begin east killed "${short[@]}"
GEOTRAIN_FAILPOINT=ending.site begin west killed "${short[@]}"
end east "the other is killed at its end" 5 "waited (5 s for region west, which was lost: the other regions to close their links|15 s for (another region to take the last frames$(by_mpich && echo '|the end of the other ranks')))"
launcher=${pids[west]}
wait_end "killed at its end" 60
check "killed at its end" [ "$code" -ge 128 -a ! -e killed-west/summary.json ]
begin west killed "${short[@]}" --resume
begin east killed "${short[@]}" --resume
end east "killed at its end, again" 0 'training is complete already'
end west "killed at its end, again" 0
results killed

finish
