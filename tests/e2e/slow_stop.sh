# labels: full
# timeout: 900
# processors: 1
# A stop while one region is in a step of minutes: the other regions, whose deadlines include it,
# wait for it, and the run ends with its checkpoint.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
sed -e 's/{name: west, ranks: 2}/{name: west, ranks: 3, compute: {step: 150 s}}/' -e 's/local: 30 s/local: 200 s/' \
  -e 's/strategy: sma, period: 4/strategy: asgd-ga, period: 4/' -e 's/local: sync/local: async/' job.yaml >slow.yaml
echo 'compute: {emulate: true, step: 100 ms, eval_samples_per_s: 100000}' >>slow.yaml
start 5 slow.yaml --run-dir slow
wait_file slow/west.jsonl
sleep 3
kill -USR1 "$launcher"
wait_end "a stop in a long step" 400
gone "a stop in a long step"
ended "a stop in a long step" 75 'a checkpoint was written'
finish
