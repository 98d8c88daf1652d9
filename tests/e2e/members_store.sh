# labels: full
# processors: 2
# The same as members.sh, over a store.
over=store
. "$(dirname "${BASH_SOURCE[0]}")/members.sh"
