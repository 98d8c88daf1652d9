# timeout: 120
# processors: 2
# pipeline.adapt with several copies: each follows its own links.  The second changes its order, and
# with micro_batches their number, while the first keeps its own; the parameters are those of one
# process with the same numbers, to the bit; and a simulation has the same times.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libcopies.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libmicros.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadaptcopies.sh"
# soon JOB STEPS: in fewer steps, with a link that falls after 1 s.
soon() { sed -i "s/until: {steps: 40}/until: {steps: $2}/" "$1"; }
[ $full = yes ] || { sed -i 's/^3,/1,/' soon.csv && sed -i 's/micro_batches: 12/micro_batches: 6/' both.yaml && soon both.yaml 16 && soon both-micros.yaml 28; }

completes "ssgd" 8 both.yaml --run-dir ssgd --clock virtual
check "ssgd: the first copy keeps its order" same "$(count ssgd)" 0
judged_copies "ssgd" ssgd both.yaml
simulates "ssgd" ssgd 1e-4 both.yaml
check "ssgd: the simulation says whose order it is" grep -q '^replica 2 (london, paris), step [0-9]*: pipeline.schedule is ' sim.out
check "ssgd: the record says whose order it is" grep -q '"event":"decision".*"copy":"replica 2 (london, paris)"' ssgd/paris.jsonl
check "ssgd: the summary has both" grep -qF '"adapted": "replica 1 (east, west): the order of passes changed 0 times; replica 2 (london, paris): the order of passes changed 1 time",' ssgd/summary.json
check "ssgd: the table has both" grep -q '^pipeline       replica 1 (east, west): the order of passes changed 0 times; replica 2 ' <(joined out)

train "numbers" 8 both-micros.yaml --run-dir numbers --clock virtual --set sync.strategy=sma
ended "numbers" 0 'replica 2 \(london, paris\): a step may have 1, 2, 3, 4, 6 or 8 micro-batches'
check "numbers: 2 is changed at the start, and the first copy keeps what it then has" same "$(numbers numbers east | cut -d : -f 1)" 5
check "numbers: those of the second change again" test "$(numbers numbers london | wc -l)" -ge 2
judged_copies "numbers" numbers both-micros.yaml sync.strategy=sma
simulates "numbers" numbers 1e-4 both-micros.yaml --set sync.strategy=sma
check "numbers: the summary has both" grep -q '"adapted": "replica 1 (east, west): .* 1 time; 2 micro-batches, from step 5 on [0-9]*; replica 2 (london, paris): .* times; 2 micro-batches, from step 5 on [0-9]*, from step ' numbers/summary.json
"$GEOTRAIN" plan both-micros.yaml >plan.out 2>&1
check "plan: the numbers of each copy" same "$(grep -cx 'a step may have 1, 2, 3, 4, 6 or 8 micro-batches (pipeline.adapt: micro_batches); memory is for the largest' <(joined plan.out))" 2
check "plan: each replica adapts to its own links" grep -q 'pipeline.adapt is micro_batches: each replica adapts to its own links' plan.out
finish
