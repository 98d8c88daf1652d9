# labels: quick
# `geotrain info JOB.yaml` prints the job that a run would have: overridden, with every default; scripts read it.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
"$GEOTRAIN" info job.yaml --set sync.period=7 --set "wan.links.0.latency=3 ms" >one.yaml
check "a job is printed" same $? 0
check "an override is in it" grep -q 'period: 7' one.yaml
check "an override in a list is in it" grep -q 'latency: 3 ms' one.yaml
check "a default is in it" grep -q 'nonfinite: 3' one.yaml
"$GEOTRAIN" info one.yaml >two.yaml
check "it is a job" same $? 0
check "and resolves to itself" cmp one.yaml two.yaml

# refused NAME WORD INFO-ARGUMENTS...
refused() {
  local name=$1 word=$2
  shift 2
  "$GEOTRAIN" info "$@" >out 2>err
  code=$?
  ended "$name" 2 "$word"
  check "$name: prints no job" test ! -s out
}
refused "an unknown key" 'period' job.yaml --set sync.perod=2
refused "no such file" 'nothing.yaml' nothing.yaml
refused "two files" 'one job file' job.yaml one.yaml
refused "an override of nothing" 'overrides a key' --set sync.period=2
refused "an unknown option" 'option --job' --job job.yaml
check "without words: the build" grep -q '^kernels:' <("$GEOTRAIN" info 2>/dev/null)
finish
