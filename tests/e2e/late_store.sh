# labels: full
# processors: 2
# The same as late.sh, over a store.
over=store
. "$(dirname "${BASH_SOURCE[0]}")/late.sh"
