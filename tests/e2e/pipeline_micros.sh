# processors: 2
# pipeline.adapt micro_batches: their number follows a link whose rate falls to an eighth.
# All regions change it after the same steps; the parameters are those of one process that uses the
# same numbers, to the bit; and a simulation has the same times, to the nanosecond.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"
[ $full = yes ] || soon soon 40
. "$(dirname "${BASH_SOURCE[0]}")/libmicros.sh"

train "a fall" 6 micros.yaml --run-dir fall --clock virtual
ended "a fall" 0 'a step may have 1, 2, 3, 4, 6, 8 or 12 micro-batches'
judged "a fall" fall micros.yaml
check "a fall: the table says so" grep -qE '^pipeline       the order of passes changed [0-9]+ times?; 4 micro-batches, from step [0-9]+ on ' <(joined out)
check "a fall: without the numbers other parameters" test "$(weights fall)" != "$("$GEOTRAIN_HELPERS/e2e.stages_judge" micros.yaml pipeline.schedule=1f1b pipeline.adapt=false)"
simulates "a fall" fall 1e-9 micros.yaml
# A search for orders at each change takes a second.
"$GEOTRAIN" simulate micros.yaml --set pipeline.adapt=$([ $full = yes ] && echo true || echo false) --out order-sim >sim.out 2>&1
check "a fall: faster than with the order alone (quick: than without changes)" faster fall order-sim 1.01
"$GEOTRAIN" plan micros.yaml >plan.out 2>&1
check "a fall: the plan says so" grep -qx 'a step may have 1, 2, 3, 4, 6, 8 or 12 micro-batches (pipeline.adapt: micro_batches); memory is for the largest' <(joined plan.out)
finish
