# labels: full
# processors: 1
# The learning rate of a run that resumes with other workers or a longer end: it continues at its
# value, and reaches its end when the run does.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Steps take some time, so that a round is written before the next is due.
emulated='compute: {emulate: true, step: 2 ms, eval_samples_per_s: 100000}'

# One region (east) with a given number of workers: 4,000 samples per epoch, 250 batches, a cosine
# to 0.
job job.yaml
sed -e 's/{steps: 60}/{epochs: 1}/' -e '/name: west/d' -e '/links:/d' -e 's/shares: \[1, 1\]/shares: [1]/' \
  -e 's/lr: 0.02, momentum: 0.9}/lr: 0.1, momentum: 0.0}, schedule: {name: cosine}/' -e 's/every: {steps: 10}, keep: 2/every: {steps: 5}, keep: 50/' \
  -e 's/strategy: sma, period: 4/strategy: none/' job.yaml >one.yaml
echo "$emulated" >>one.yaml
with() { sed -e "s/{name: east, ranks: 2}/{name: east, ranks: $1}/" one.yaml; }
with 3 >two.yaml
with 5 >four.yaml

middle() { rounds "$1" | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }'; }
# at_half RUN COPY ROUND: the run as it was when ROUND was its newest round.
at_half() {
  local round
  cp -r "$1" "$2" && rm "$2/summary.json"
  for round in $(rounds "$2"); do [ "$round" -le "$3" ] || rm -r "$2/ckpt/$round"; done
}
# of RUN KEY: a field of the record's `schedule` event.
of() { grep '"event":"schedule"' "$1"/east.jsonl | tail -n 1 | grep -oE "\"$2\":[^,}]*" | cut -d : -f 2; }
between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }' || { echo "      found '$1', needed $2 to $3" && false; }; }
# spread NAME RUN STEPS WORKERS: for a schedule with this number of steps, the share done is kept,
# and the rest is stretched over the batches that the workers have left.
spread() {
  local step
  step=$(of "$2" step)
  [ -n "$step" ] || { fail "$1: the record has the schedule" "no line of it" && return; }
  check "$1: the rate does not jump" between "$(of "$2" lr)" "$(of "$2" lr_before)" "$(of "$2" lr_before)"
  check "$1: the share is kept" between "$(of "$2" share)" "$(awk "BEGIN { print $step / $3 - 1e-5 }")" "$(awk "BEGIN { print $step / $3 + 1e-5 }")"
  check "$1: steps left" same "$(of "$2" left)" "$(awk "BEGIN { print int((250 - $step * int(250 / $3 + 0.5) + $4 - 1) / $4) }")"
}
scores() { "$GEOTRAIN" eval "$1" data.h5 2>/dev/null | cut -d '(' -f 1; }

completes "2 workers" 3 two.yaml --run-dir two
half=$(middle two)
at_half two more "$half"
train "2 workers, then 4" 5 two.yaml --run-dir more --resume --set regions.0.ranks=5
ended "2 workers, then 4" 0 'was for 125 steps: it continues at'
spread "2 workers, then 4" more 125 4
check "2 workers, then 4: what comes after the middle is trained" [ "$(scores "more/ckpt/$(newest_round more)/east.h5")" != "$(scores "more/ckpt/$half/east.h5")" ]

# The same workers: no message, and the same bits; also for a schedule that was stretched before.
at_half two again "$half"
completes "2 workers again" 3 two.yaml --run-dir again --resume
check "2 workers again: the same model" same "$(field again params_sha256)" "$(field two params_sha256)"
check "2 workers again: no word of the schedule" same "$(cat out err again/east.jsonl | grep -c schedule)" 0
at_half more more2 $((half + 1))
completes "4 workers again" 5 two.yaml --run-dir more2 --resume
check "4 workers again: the same model" same "$(field more2 params_sha256)" "$(field more params_sha256)"

completes "4 workers" 5 four.yaml --run-dir four
at_half four fewer "$(middle four)"
train "4 workers, then 2" 3 four.yaml --run-dir fewer --resume --set regions.0.ranks=3
ended "4 workers, then 2" 0 'was for 63 steps: it continues at'
spread "4 workers, then 2" fewer 63 2

# A longer end keeps the rate, and raises it with a message if it had reached its end.
at_half two longer "$half"
train "longer" 3 two.yaml --run-dir longer --resume --set train.until.epochs=2
ended "longer" 0 'was for 125 steps: it continues at'
check "longer: the rate does not jump" between "$(of longer lr)" "$(of longer lr_before)" "$(of longer lr_before)"
train "longer when finished" 3 two.yaml --run-dir two --resume --set train.until.epochs=2
ended "longer when finished" 0 'rises from 0 to 0.05, as in a run of which 50.0 % is done'

# If regions move in lockstep, all use the steps of the longest, and stay equal.
sed -e 's/{steps: 60}/{epochs: 1}/' -e 's/strategy: sma, period: 4/strategy: ssgd/' -e 's/momentum: 0.9}/momentum: 0.9}, schedule: {name: cosine}/' \
  -e 's/keep: 2/keep: 50/' job.yaml >both.yaml
echo "$emulated" >>both.yaml
completes "lockstep" 4 both.yaml --run-dir both
at_half both other "$(middle both)"
train "lockstep, other workers everywhere" 6 both.yaml --run-dir other --resume --set regions.0.ranks=3 --set regions.1.ranks=3
ended "lockstep, other workers everywhere" 0 'was for 125 steps: it continues at'
check "lockstep: one model" same "$(sed -nE 's/^ +"test_loss": (.*),/\1/p' other/summary.json | sort -u | wc -l)" 1
at_half both other1 "$(middle both)"
completes "lockstep, other workers in a region" 5 both.yaml --run-dir other1 --resume --set regions.0.ranks=3
check "lockstep: one model" same "$(sed -nE 's/^ +"test_loss": (.*),/\1/p' other1/summary.json | sort -u | wc -l)" 1
finish
