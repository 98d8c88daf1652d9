# processors: 1
# slurm/submit: what it refuses before anything is written or queued, and what it writes.  No Slurm
# is needed: sbatch is a script here that stores its arguments.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
submit=$GEOTRAIN_SOURCE/slurm/submit
data_train=400
job job.yaml

mkdir bin
cat >bin/sbatch <<'SH'
#!/usr/bin/env bash
[ ! -e "$HERE/full" ] || { echo "sbatch: error: no" >&2; exit 1; }
[ ! -s "$HERE/room" ] || [ "$(grep -c . "$HERE/asked")" -lt "$(cat "$HERE/room")" ] || { echo "sbatch: error: too many" >&2; exit 1; }
echo "$*" >>"$HERE/asked"
while [ -e "$HERE/busy" ]; do sleep 0.1; done
cp "${@: -1}" "$HERE/sent" && echo $((76 + $(grep -c . "$HERE/asked")))
SH
for other in scancel scontrol; do printf '#!/bin/sh\necho "%s $*" >>"$HERE/told"\n' $other >bin/$other; done
chmod +x bin/*
export HERE=$PWD PATH=$PWD/bin:$PATH

: >out
: >err
: >asked
submits() { # WORDS...
  rm -f sent asked told
  : >asked
  "$submit" --geotrain "$GEOTRAIN" "$@" >out 2>err </dev/null
  code=$?
}

# refused NAME SENTENCE WORDS...: code 2 (or $WANT) and one sentence; no file is written, no job
# submitted.
refused() {
  local name=$1 sentence=$2 before
  rm -f sent told
  before=$(ls)
  submits "${@:3}"
  ended "$name" "${WANT:-2}" "$sentence"
  check "$name: one message" same "$(grep '^geotrain: ' err | grep -vc 'geotrain: warning')" 1
  check "$name: nothing is written" same "$(ls)" "$before"
}

# ---- control characters: a line break would put lines into the script -----------------------------------------------------------------
evil=$'x.yaml\ntouch pwned\n#.yaml'
cp job.yaml "$evil"
refused "a job file's line break" 'the job file has a control character' "$evil" --dry-run
rm -- "$evil"
refused "a run directory's line break" '--run-dir has a control character' job.yaml --dry-run --run-dir $'run\ntouch pwned\n#'
refused "a carriage return" '--run-dir has a control character' job.yaml --dry-run --run-dir $'run\r'
refused "a word after --" 'word 2 after -- has a control character' job.yaml --dry-run -- --exclusive $'--comment=a\ntouch pwned'
refused "--again" '--again has a control character' --again $'run\n'
refused "--set" '--set has a control character' job.yaml --dry-run --set $'name=a\nb'
refused "--sweep" '--sweep has a control character' job.yaml --dry-run --sweep $'sync.period=4,8\n'
mkdir $'odd\nplace'
(cd $'odd\nplace' && "$submit" --geotrain "$GEOTRAIN" ../job.yaml --dry-run) >out 2>err
code=$?
ended "a working folder's line break" 2 'the working folder has a control character'
rmdir $'odd\nplace'

# ---- sweeps ------------------------------------------------------------------------------------------------------------------------
refused "an empty value" 'submit: --sweep sync.period=4,,8 has an empty value' job.yaml --sweep sync.period=4,,8 --run-dir no
refused "an empty value at the end" 'submit: --sweep sync.period=4, has an empty value' job.yaml --sweep sync.period=4, --run-dir no
refused "one key twice" 'submit: sync.period is swept twice' job.yaml --sweep sync.period=4,8 --sweep sync.period=16 --run-dir no
refused "an open bracket" 'submit: --sweep model.mlp=\[1,2 has a bracket that is not closed' job.yaml --sweep 'model.mlp=[1,2' --run-dir no
submits job.yaml --run-dir lists --sweep 'data.partition.shares=[1, 1],[2, 1]' --sweep sync.period=4,8
ended "lists" 0 '^#SBATCH --array=0-3$'
check "lists: a run for each" same "$(ls -d lists/*/ | tr -d '\n')" "lists/1_1-4/lists/1_1-8/lists/2_1-4/lists/2_1-8/"
check "lists: their values" same "$("$GEOTRAIN" info lists/2_1-8/submitted.yaml --flat | grep -E '^(data.partition.shares|sync.period=)' | paste -sd' ')" \
  "data.partition.shares.0=2 data.partition.shares.1=1 sync.period=8"
submits job.yaml --run-dir dots --sweep train.init=..,b
check "a value of dots stays inside" same "$(ls dots)" "$(printf '_.\nb\nsbatch.sh\nslurm-jobs')"

# ---- an sbatch that refuses ----------------------------------------------------------------------------------------------------------
# left: the folders of runs/new and their contents.
left() { find "$1" 2>/dev/null | sort | paste -sd' '; }
echo yes >full
submits job.yaml --run-dir new
ended "refused by sbatch" 1 'sbatch refused new|sbatch refused .*/new/sbatch.sh'
check "refused by sbatch: no folder" same "$(left new)" ""
submits job.yaml --run-dir new --sweep sync.period=4,8
ended "a sweep refused by sbatch" 1 'sbatch refused'
check "a sweep refused by sbatch: no folder" same "$(left new)" ""
mkdir -p new/ckpt && echo mine >new/notes
submits job.yaml --run-dir new
ended "refused by sbatch in a folder that is there" 1 'sbatch refused'
check "refused by sbatch in a folder that is there: it stays" same "$(cat new/notes)" mine
rm -r full new

# ---- a chain: all of it or nothing; it begins when all of its jobs are known ---------------------------------------------------------------
submits job.yaml --run-dir chain --chain 3
ended "a chain" 0 'submitted as job 77 78 79'
check "a chain: what follows a stop" grep -q 'stops it with a checkpoint; the next job of the chain continues$' out
check "a chain: what sbatch is told" same "$(sed 's/ [^ ]*$//; s/--parsable *//' asked | paste -sd,)" "--hold,--dependency=afterany:77,--dependency=afterany:78"
check "a chain: it is let go at the end" same "$(cat told 2>&1)" "scontrol release 77"
echo 2 >room
submits job.yaml --run-dir chain2 --chain 3
ended "a chain that has no room" 1 'sbatch refused'
check "a chain that has no room: none of it is left" same "$(cat told 2>&1) $(left chain2)" "scancel 77 78 "
rm room

# ---- two submissions to one run directory --------------------------------------------------------------------------------------------
printf "#!/bin/sh\n" >bin/squeue # no job lives
chmod +x bin/squeue
# first WORDS...: a submission that sbatch keeps waiting.
first() {
  : >asked
  : >busy
  "$submit" --geotrain "$GEOTRAIN" "$@" >first.out 2>first.err </dev/null &
  first=$!
  until [ -s asked ]; do sleep 0.1; done
}
second() { # WORDS...
  "$submit" --geotrain "$GEOTRAIN" "$@" >out 2>err </dev/null
  code=$?
}
first job.yaml --run-dir both
second job.yaml --run-dir both
ended "two submissions to one folder" 2 "process $first on $(hostname) is submitting $PWD/both; wait for it to end"
rm busy
wait "$first"
check "two submissions: the first continues" same "$? $(grep -c . asked) $(grep -c . both/slurm-jobs)" "0 1 1"
first --again both
second --again both
ended "two --again" 2 "process $first on $(hostname) is submitting $PWD/both"
pkill -KILL -P "$first"
kill -KILL "$first"
wait "$first" 2>/dev/null
rm busy
second --again both
ended "the submission before was killed" 0
check "nothing is left of the locks" same "$(find both -name '.submit*')" ""
ln -s 'elsewhere 0-0 pid:[1] 5 7' both/.submit
second --again both
ended "a submission on another host" 2 'process 5 on elsewhere is submitting'
touch -h -d '11 minutes ago' both/.submit
second --again both
ended "one that is ten minutes old" 0
rm bin/squeue

# ---- what cannot begin ---------------------------------------------------------------------------------------------------------------
refused "a model that there is not" 'model.name is "resnet50"' job.yaml --run-dir no --set model.name=resnet50
WANT=3 refused "a model for other data" 'model deepfm takes ids' job.yaml --run-dir no --set model.name=deepfm
refused "a sweep with such a model" 'model.name is "resnet50"' job.yaml --run-dir no --sweep model.name=lenet5,resnet50
submits job.yaml --run-dir far --set regions.0.data.path=/far/away.h5
ended "data that only the nodes see" 0 'warning: the data of region east' 'submitted as job'
refused "a model that there is not, on such data" 'model.name is "resnet50"' job.yaml --run-dir no --set model.name=resnet50 \
  --set regions.0.data.path=/far/away.h5

# ---- one site's job -------------------------------------------------------------------------------------------------------------------
sed -e "s/{name: east, ranks: 2/{name: east, ranks: 2, address: '127.0.0.1:7443', slurm: {partition: eu, options: [--exclusive]}/" -e 's/{name: west, ranks: 2/{name: west, ranks: 3, slurm: {partition: us}/' -e 's/^wan:/wan:\n  transport: tcp/' job.yaml >sites.yaml
submits sites.yaml --run-dir site --region west
ended "a site" 0 '^#SBATCH --ntasks=3$' '^#SBATCH --partition=us$' '^geotrain_step .* --region west$'
check "a site: nothing of the other" [ "$(grep -c -e exclusive -e hetjob -e 'partition=eu' site/sbatch.sh)" = 0 ]
check "a site: the whole job goes with it" same "$("$GEOTRAIN" info site/submitted.yaml --flat | grep -c '^regions\.[0-9]*\.name=')" 2
submits sites.yaml --dry-run --region=east
ended "the other site" 0 '^#SBATCH --ntasks=2$' '^#SBATCH --partition=eu$' '^#SBATCH --exclusive$' '--region east$' '/drill-east-'
refused "no such region" '--region is "north", which is no region of the job; expected one of east, west' sites.yaml --run-dir no --region north
refused "a site of one MPI job" '--region is given; expected a job of two or more regions, with wan.transport tcp' job.yaml --run-dir no --region west
refused "a site's plan" '--plan and --region exclude each other' sites.yaml --run-dir no --region west --plan
refused "a site's sweep" '--sweep and --region exclude each other' sites.yaml --run-dir no --region west --sweep sync.period=4,8

# ---- lines of shell before all else --------------------------------------------------------------------------------------------------
submits job.yaml --dry-run --set 'slurm.prologue=[module load mpi, "export A=\"$HOME\" # mine"]'
ended "a prologue" 0
check "a prologue: before the script's own lines" same "$(grep -A 3 -xF 'module load mpi' out | paste -sd';')" \
  'module load mpi;export A="$HOME" # mine;;set -uo pipefail'
submits job.yaml --dry-run --sweep sync.period=4,8 --set 'slurm.prologue=[module load mpi]'
check "a sweep's prologue" same "$(grep -c '^module load mpi$' out)" 1
refused "a swept prologue" 'the sweep changes what Slurm is asked for' job.yaml --run-dir no --sweep 'slurm.prologue=[a],[b]'
finish
