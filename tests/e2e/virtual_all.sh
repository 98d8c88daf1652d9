# labels: full
# timeout: 1200
# bench/virtual, in small: every strategy, layout and local plane under the virtual clock twice, once while another program burns every core.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN_SOURCE/bench/virtual" --geotrain "$GEOTRAIN" --runs 2 --out "$PWD/runs"
check "no two runs of one differ" same "$?" 0
gone "all of them"
finish
