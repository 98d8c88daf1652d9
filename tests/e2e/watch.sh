# processors: 1
# geotrain watch: a run that waits, runs, is stopped and resumed, and ends; what a (stand-in) squeue
# says about its job; sweeps, Ctrl-C, mistakes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# A squeue that answers with the contents of a file, with an error, or not at all.
mkdir bin
cat >bin/squeue <<'SH'
#!/bin/sh
echo "$*" >>"$FOLDER/asked"
[ "$(cat "$FOLDER/answer")" = hang ] && exec sleep 100
[ "$(cat "$FOLDER/answer")" = error ] && echo "slurm_load_jobs error: Unable to contact slurm controller" >&2 && exit 1
cat "$FOLDER/answer"
SH
chmod +x bin/squeue
# Not a rank of a run: the search for surviving ranks must not find it.
watch() { env -u GEOTRAIN_DRILL "$GEOTRAIN" watch "$@"; }
queue() { FOLDER=$PWD/$1 PATH=$PWD/bin:$PATH watch "${@:2}"; }
seen() { grep -qE -- "$2" "$1" || { sed 's/^/      /' "$1" && false; }; }

# wait_seen FILE WORDS: waits until the file has these words.
wait_seen() {
  local i
  for i in $(seq 300); do
    grep -qE -- "$2" "$1" 2>/dev/null && return 0
    sleep 0.1
  done
  fail "$1" "does not say '$2': $(tail -n 3 "$1")"
}

# ---- a job that waits in the queue and then leaves it without a word; looked at while the rest continues ----------------------------------

mkdir lost
echo "17 1700000000" >lost/slurm-jobs
echo '17|PENDING|Resources|2031-01-01T10:00:00' >lost/answer
(queue lost lost >lost/out 2>lost/err; echo $? >lost/code) &
lost=$!
mkdir hanging
echo "18 1700000000" >hanging/slurm-jobs
echo hang >hanging/answer
(from=$SECONDS; queue hanging --once hanging >hanging/out; echo $? >hanging/code; echo $((SECONDS - from)) >hanging/took) &
hanging=$!

# ---- a run: before it begins, while it runs, stopped, resumed, done -----------------------------------------------------------------------

job job.yaml
echo 'log: {every: 1 s}' >>job.yaml
mkdir run
# Without MPI: settings with which MPI cannot start have no effect.
(OMPI_MCA_btl=none OMPI_MCA_pml=none watch run >watch.out 2>watch.err; echo $? >watch.code) &
watch=$!
wait_seen watch.out '^no record yet$'
wait_seen lost/out '^waits in the queue: job 17 PENDING \(Resources\), may start at 2031-01-01T10:00:00$'
: >lost/answer
start 4 job.yaml --run-dir run --set train.until.steps=2000
wait_round run 2
wait_seen watch.out '^step [1-9][0-9]*  epoch .* samples/s  WAN .* left '
check "while it runs: no line a region in a log" same "$(grep -c '\[' watch.out)" 0
NO_COLOR=1 script -qec 'env -u GEOTRAIN_DRILL "$GEOTRAIN" watch --once run' /dev/null </dev/null >terminal.out
check "on a terminal: a line a region" same "$(grep -cE '^  (east|west) \[#*\.+\] +[0-9]+%  loss [0-9.]+ .*/s  waits: WAN +[0-9]+%, local +[0-9]+%.?$' terminal.out)" 2
check "NO_COLOR: no colors" same "$(grep -c $'\033' terminal.out)" 0
NO_COLOR='' script -qec 'env -u GEOTRAIN_DRILL "$GEOTRAIN" watch --once run' /dev/null </dev/null >terminal.out
check "without it: colors" grep -q $'\033\[32m' terminal.out
watch --json run >once.json
env -u GEOTRAIN_DRILL "$GEOTRAIN" watch --progress line run >narrow.out &
narrow=$!
wait_seen narrow.out '  east +\[.*  waits: WAN .* local ' # in 80 columns
kill -INT "$narrow"
check "as JSON" same "$(jq -r '.runs[0] | "\(.state) \(.code) \(.path) \([.regions[] | .name] | join(" ")) \(.regions[0].lead)"' once.json)" "running null run east west true"
kill -USR1 "$launcher"
wait_end "stopped" 20
gone "stopped"
ended "stopped" 75
wait_seen watch.out '^stopped by a signal at step [0-9]+, checkpoint of round [0-9]+ written; waits to be resumed$'
watch --once run >once.out
check "stopped, looked at once: exit 0" same $? 0
check "stopped, looked at once" seen once.out '^stopped by a signal'
steps=$(sed -nE 's/.*"event":"stopped","code":75,"reason":"signal","step":([0-9]+),.*/\1/p' run/east.jsonl)
completes "resumed" 4 job.yaml --run-dir run --resume --set train.until.steps=$((steps + 60))
wait "$watch"
check "watched to the end: exit 0" same "$(cat watch.code)" 0
check "watched to the end: the resume" seen watch.out '  resumed 1x$'
check "watched to the end: done" seen watch.out '^done: [0-9.]+ s  .* samples  accuracy [01]\.[0-9]+  resumed 1x$'
check "watched to the end: the table" seen watch.out '^drill: lenet5, .* real clock$'
check "watched to the end: silent on stderr" same "$(cat watch.err)" ""
# mpirun may print the last live line, of stderr, after the table.
check "the table is the run's" same "$(sed -n '/^region  /,$p' watch.out)" "$(sed -n '/^region  /,$p' out | grep -v '^step ')"
for region in east west; do
  check "record of $region: start, stopped, resumed" same \
    "$(grep -oE '"event":"(start|stopped|resumed|complete)"' "run/$region.jsonl" | tr '\n' ' ')" \
    '"event":"start" "event":"stopped" "event":"resumed" "event":"complete" '
done

# ---- stopped by a signal in Slurm, by a limit ---------------------------------------------------------------------------------------------

cp -r run stopped
rm stopped/summary.json
sed -i '/"event":"resumed"/,$d' stopped/east.jsonl
printf '21 1700000000\n22 1700000001\n' >stopped/slurm-jobs
echo '22|PENDING|BeginTime|N/A' >stopped/answer
queue stopped --once stopped >once.out
check "requeued: exit 0" same $? 0
check "requeued" seen once.out 'written; waits to be resumed: job 22 PENDING \(BeginTime\)$'
check "squeue is asked for both jobs at once" same "$(grep -c 'j 21,22$' stopped/asked)" "$(wc -l <stopped/asked)"
echo '22|TIMEOUT|TimeLimit|2031-01-01T10:00:00' >stopped/answer
queue stopped --once stopped >once.out
check "not requeued: exit 75" same $? 75
check "not requeued" seen once.out 'job 22 has left the queue \(TIMEOUT\): submit it again to continue$'
echo error >stopped/answer
queue stopped --once stopped >once.out
check "the controller is down: exit 0" same $? 0
check "the controller is down" seen once.out 'waits to be resumed; squeue does not answer$'
sed -i 's/"code":75,"reason":"signal"/"code":6,"reason":"limit"/' stopped/east.jsonl
echo >stopped/answer
queue stopped stopped >once.out
check "a limit: exit 6" same $? 6
check "a limit" seen once.out '^ended by a limit'

# ---- a sweep: the runs below, and those that wait -----------------------------------------------------------------------------------------

mkdir sweep
cp -r run sweep/4
cp -r run sweep/16
printf '31 1700000000\n' >sweep/slurm-jobs
printf '31_2|PENDING|JobArrayTaskLimit|N/A\n' >sweep/answer
queue sweep --once sweep >once.out
check "sweep" same "$(sed -E 's/ +(done|more).*/ \1/' once.out | tr '\n' ' ')" "4 done 16 done sweep more "
: >sweep/answer
queue sweep sweep >once.out
check "sweep: exit 0" same $? 0
check "sweep: both tables" same "$(grep -c '^sweep/[0-9]*$' once.out) $(grep -c '^test accuracy' once.out)" "2 2"

# ---- Ctrl-C, mistakes ---------------------------------------------------------------------------------------------------------------------

mkdir empty
env -u GEOTRAIN_DRILL "$GEOTRAIN" watch empty >ctrl.out &
watch=$!
wait_seen ctrl.out 'no record yet'
kill -INT "$watch"
wait "$watch"
check "Ctrl-C: by the signal" same $? 130
watch nowhere >once.out 2>&1
check "no such directory: exit 2" same $? 2
check "no such directory" seen once.out 'no directory nowhere'
watch --progress none run >once.out 2>&1
check "--progress none: exit 2" same $? 2
watch >once.out 2>&1
check "no directory given: exit 2" same $? 2

# ---- the job that waited ------------------------------------------------------------------------------------------------------------------

wait "$lost"
check "lost: exit 5" same "$(cat lost/code)" 5
check "lost" seen lost/out '^job 17 has left the queue without a summary; see slurm.log in the run directory$'
wait "$hanging"
check "squeue hangs: exit 0" same "$(cat hanging/code)" 0
check "squeue hangs: not for long" test "$(cat hanging/took)" -le 20
check "squeue hangs" seen hanging/out '^job 18 was submitted, nothing from it yet; squeue does not answer$'
check "squeue is not asked often" test "$(wc -l <lost/asked)" -le $((SECONDS / 5 + 2))
finish
