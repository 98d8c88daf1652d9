# labels: quick
# processors: 2
# pipeline.adapt: the order of the passes follows a link, whose rate falls to an eighth and stays.
# The parameters are those of the run that keeps its plan, to the bit; all regions change the order
# after the same steps; and a simulation has the same times, to the nanosecond.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libadapt.sh"

law "a fall" fall
check "a fall: the order changes once" same "$(count fall)" 1
check "a fall: it is faster" faster fall fall-kept 1.02

"$GEOTRAIN" simulate adapt.yaml --set 'compute={}' --set pipeline.schedule=1f1b >out 2>err
check "without times of compute: exit 2" same $? 2
check "without times of compute" grep -q 'pipeline.adapt is true, and compute says nothing of region east.*leave it out' err
finish
