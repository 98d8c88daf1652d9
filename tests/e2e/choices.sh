# How kernels are chosen: by measuring at the start, by the rule, or from a file; the choice is
# recorded and kept in the checkpoint; errors give one sentence.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
choices=() # this script's jobs say it

"$GEOTRAIN" data synth few.h5 --train 128 --test 16 >/dev/null
cat >job.yaml <<'YAML'
name: choices
model: {name: lenet5}
data: {path: few.h5}
train: {until: {steps: 6}, batch: 16, optimizer: {name: sgd, lr: 0.01}, eval_every: {epochs: 0}}
regions: [{name: east, ranks: 2}, {name: west, ranks: 2}]
sync: {local: sync, strategy: ssgd}
wan: {emulate: true, links: [{between: [east, west], bandwidth: 1 Gbit/s, latency: 1 ms}]}
compute: {step: 2 ms, eval_samples_per_s: 10000}
checkpoint: {every: {steps: 3}}
YAML
summary() { python3 -c 'import json, sys; s = json.load(open(sys.argv[1] + "/summary.json")); print(eval(sys.argv[2]))' "$1" "$2"; }
few=(--set 'regions=[{name: east, ranks: 2}]' --set wan.links=null --set wan.emulate=false) # what one worker shows
how() { summary "$1" 's["build"]["choices"]'; }

train "as it comes" 4 job.yaml --run-dir measured
ended "as it comes" 0 'kernels of 5 layers: chosen by measurement'
check "measured is recorded" same "$(how measured)" measured
check "every layer of both regions is recorded" same "$(summary measured '[sum("forward=" in line for line in r["choices"]) for r in s["regions"]]')" "[5, 5]"

check "one line says so for the job" same "$(grep -c 'kernels' err) $(grep -c 'geotrain: kernels of 5 layers: chosen by measurement (--verbose lists them)' err)" "1 1"
completes "by rule" 4 job.yaml --run-dir rule --set train.choices=rule
check "rule is recorded" same "$(how rule)" rule
check "by rule there is nothing to list" same "$(summary rule '["choices" in r for r in s["regions"]]')" "[False, False]"

# A resume uses the choices of the checkpoint.
train "resume" 4 job.yaml --run-dir measured --resume --set train.until.steps=9
ended "resume" 0 'kernels of 5 layers: from the checkpoint'
check "of the checkpoint is recorded" same "$(how measured)" checkpoint

"$GEOTRAIN" info job.yaml --measure --out job.yaml 2>words
check "the job file is not what --measure writes" grep -q 'job.yaml is both the input and the output' words
"$GEOTRAIN" info job.yaml --measure --out file 2>words
check "info --measure writes a file" grep -q "^machine " file
check "info --measure says what it did" grep -q "5 layers measured in .* use them with --set train.choices=file" words
sed -i 's/\(linear .*\): .*/\1: forward=blas input=blas weight=blas/' file
train "by a file" 4 job.yaml --run-dir file-1 --set train.choices=file --verbose
ended "by a file" 0 'kernels of 5 layers: from file' 'forward: .*blas 3'
check "--verbose: the kernels of each pass in each region" same "$(grep -cE 'PS of region (east|west)\): kernels, (forward|input|weight): [a-z-]+ [0-9]' err)" 6
check "a file is recorded" same "$(how file-1)" file
train "by a file, virtual" 4 job.yaml --run-dir file-v --set train.choices=file --clock virtual --verbose
ended "by a file, virtual" 0 'forward: .*blas 3'
check "two runs by one file have the same bits, also under the virtual clock" same "$(field file-1 params_sha256)" "$(field file-v params_sha256)"
check "the kernels are the file's" grep -q "linear=blas" <<<"$(field file-v kernels)"

completes "virtual" 4 job.yaml --run-dir virtual --clock virtual
check "nothing is measured under the virtual clock" same "$(how virtual)" rule

sed 's/^machine .*/machine another/' file >foreign
train "another machine's file" 4 job.yaml --run-dir foreign-run --set train.choices=foreign
ended "another machine's file" 0 'foreign has no choices for this machine \(cpu=.*\) and batches of 16: they are measured'
check "then it was measured" same "$(how foreign-run)" measured
train "another machine's file, virtual" 2 job.yaml "${few[@]}" --run-dir foreign-v --set train.choices=foreign --clock virtual
ended "another machine's file, virtual" 2 'foreign has no choices for rank [0-9]+.s machine .* and nothing is measured under --clock virtual'
train "another batch" 2 job.yaml "${few[@]}" --run-dir batch --set train.choices=file --set train.batch=8 --clock virtual
ended "another batch" 2 'file has no choices for rank .* and batches of 8'

train "no file" 2 job.yaml "${few[@]}" --run-dir none --set train.choices=nowhere
ended "no file" 2 'train.choices: nowhere cannot be opened: No such file or directory; expected measure, rule or a file'
sed 's/weight=[a-z-]*$/weight=best/' file >malformed
train "malformed" 2 job.yaml "${few[@]}" --run-dir malformed --set train.choices=malformed
ended "malformed" 2 'malformed, line [0-9]+: weight=best is not available for this layer'

# Ranks that read different files with the same name.
mkdir -p here there && cp file here/choices && sed 's/forward=blas/forward=dnn/' file >there/choices
cat >apart <<'SH'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 3 ] && cd there || cd here
exec "$@"
SH
chmod +x apart
sed "s|few.h5|$PWD/few.h5|" job.yaml >absolute.yaml
run "different files" -n 4 ./apart "$GEOTRAIN" train "$PWD/absolute.yaml" --run-dir "$PWD/apart-run" --set train.choices=choices
ended "different files" 2 'train.choices: rank 3 \(region west\) reads another choices \([0-9a-f]{12}\) than rank 0'
finish
