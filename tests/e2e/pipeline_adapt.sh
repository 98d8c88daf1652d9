# processors: 2
# pipeline.adapt: the order of the passes follows a link, whose rate falls to an eighth and stays.
# The parameters are those of one process, to the bit; all regions change the order after the same
# steps; and a simulation has the same times, to the nanosecond.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"
if [ $full = yes ]; then
  law "a late fall" fall
  check "a late fall: the order changes once" same "$(count fall)" 1
  check "a late fall: it is faster" faster fall fall-kept 1.02
fi

# The same in fewer steps, with the run that keeps its plan from one process and from a simulation.
soon soon 40
completes "a fall" 6 adapt.yaml --run-dir soon --clock virtual
check "a fall: the parameters" same "$(weights soon)" "$("$GEOTRAIN_HELPERS/e2e.stages_judge" adapt.yaml pipeline.schedule=1f1b pipeline.adapt=false)"
check "a fall: the regions change alike" same "$(changes soon east)" "$(changes soon west)"
check "a fall: the order changes once" same "$(count soon)" 1
"$GEOTRAIN" simulate adapt.yaml --set pipeline.adapt=false --out soon-kept >sim.out 2>&1
check "a fall: it is faster" faster soon soon-kept 1.02
simulates "a fall" soon 1e-9 adapt.yaml

"$GEOTRAIN" simulate adapt.yaml --set 'compute={}' --set pipeline.schedule=1f1b >out 2>err
check "without times of compute: exit 2" same $? 2
check "without times of compute" grep -q 'pipeline.adapt is true and compute.step is not given for region east.*or no pipeline.adapt' err
finish
