# Begins a benchmark in bash, whose first argument may be the build's folder: goes to the repository,
# and sets geotrain, the environment of runs, a scratch folder and the command of a laboratory; both
# are removed at the end.
set -uo pipefail
export LC_ALL=C # decimal points
name=$(basename "$0") build=$(readlink -f "${1:-$(dirname "$0")/../build/release}")
geotrain=$build/geotrain
[ -x "$geotrain" ] || { echo "$name: there is no $geotrain" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit
export GEOTRAIN=$geotrain OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
export $(grep '^[A-Z]' jobs/mpi.env)
scratch=$(mktemp -d) lab="netem/lab --name $name-$$"
trap '$lab down >/dev/null 2>&1; rm -rf "$scratch"' EXIT
trap 'exit 130' INT # mpirun ends by itself, with a code
trap 'exit 143' TERM

# complete RUN: seconds until the last region was done; bytes RUN: strategy traffic.
complete() { sed -n 's/.*"t":\([0-9.]*\),"event":"complete".*/\1/p' "$1"/*.jsonl | sort -g | tail -n 1; }
bytes() { awk '/"bytes_sent"/ { gsub(/[",]/, ""); s += $2 } END { printf "%.0f", s }' "$1/summary.json"; }
# percent A B: how much more A is than B.
percent() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%+.2f %%", (b > 0 ? 100 * (a / b - 1) : 0) }'; }
