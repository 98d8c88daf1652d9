# processors: 1
# `geotrain info JOB.yaml` prints the job of a run, with overrides and all defaults; scripts read
# it.
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

"$GEOTRAIN" info job.yaml --flat --set sync.period=7 --set slurm.time=2h --set slurm.memory_per_cpu=3GiB --set 'slurm.options=[--exclusive, --mail-type=END]' \
  --set regions.1.slurm.nodes=2 --set regions.0.slurm.partition=east >flat
check "a flat job is printed" same $? 0
for line in sync.period=7 slurm.time=7200 slurm.memory_per_cpu=3221225472 slurm.options.0=--exclusive slurm.options.1=--mail-type=END regions.1.slurm.nodes=2 \
  regions.0.slurm.partition=east slurm.signal_before=120 slurm.mpi=pmix slurm.cpus_per_rank=1 regions.0.name=; do
  check "it has the line $line" grep -q "^$line" flat
done
check "what is not given is not in it" test -z "$(grep -E '^slurm.account|^regions.0.slurm.nodes' flat)"
check "every line is path=value" test -z "$(grep -v '^[a-z_0-9.]*=.' flat)"

# refused NAME WORD INFO-ARGUMENTS...
refused() {
  local name=$1 word=$2
  shift 2
  plain info "$@"
  ended "$name" 2 "$word"
  check "$name: prints no job" test ! -s out
}
refused "an unknown key" 'period' job.yaml --set sync.perod=2
refused "no such file" 'nothing.yaml' nothing.yaml
refused "two files" 'one job file' job.yaml one.yaml
refused "an override of nothing" 'overrides a key' --set sync.period=2
refused "--flat of nothing" 'flat prints a job' --flat
refused "a quote in a text for sbatch" 'slurm.account is' job.yaml --set "slurm.account=a'b"
refused "a space in a name for sbatch" 'has a space in it' job.yaml --set 'slurm.partition=a b'
refused "an sbatch option without dashes" 'with its dashes' job.yaml --set 'slurm.options=[exclusive]'
refused "a signal before the start" 'slurm.signal_before is 120 s' job.yaml --set 'slurm.time=1 min'
refused "a Slurm key with a mistake" 'did you mean slurm.partition' job.yaml --set slurm.partiton=x
refused "an unknown option" 'option --job' --job job.yaml
check "without words: the build" grep -q '^kernels:' <("$GEOTRAIN" info 2>/dev/null)
finish
