# `info --check` says of each region what its data are, then a verdict; what `train` refuses before it
# begins is refused here with the same code.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN" data synth a.h5 --train 400 --test 50 >data.log 2>&1 || fail "data" "$(cat data.log)"
cat >job.yaml <<YAML
name: checked
model: {name: lenet5}
data: {path: a.h5}
train: {until: {steps: 2}, batch: 8, optimizer: {name: sgd, lr: 0.1}}
regions: [{name: east, ranks: 2}, {name: west, ranks: 2}]
wan: {default: {bandwidth: 100 Mbit/s, latency: 5 ms}}
YAML
far='regions.1.data.path=none.h5'
away=(--set "regions.0.hosts=[$(hostname)]" --set 'regions.1.hosts=[elsewhere]')

# looked NAME CODE WORDS ARGUMENTS...
looked() {
  plain info job.yaml "${@:4}"
  ended "$1" "$2" "$3"
}
looked "a job that can begin" 0 '' --check
check "a line for each region, then the verdict" same "$(cat out)" "region east: 400 training and 50 test samples of 28 x 28 x 1 in a.h5
region west: reads the same file as region east
check: ok"
looked "no data" 3 'none.h5' --check --set "$far"
check "no data: the other region's line" grep -q '^region east: 400 training' out
check "no data: no verdict of ok" same "$(grep -c '^check:' out)" 0
looked "no data, although samples are given" 3 'none.h5' --check --set "$far" --set regions.0.samples=100 --set regions.1.samples=100
looked "no data on other hosts" 0 '' --check --set "$far" "${away[@]}"
check "no data on other hosts: not checked" grep -qx 'region west: not checked here: none.h5' out
check "no data on other hosts: the verdict" grep -q '^check: ok as far as this machine can tell; data of 1 of 2 regions not checked$' out
looked "no data on this host" 3 'none.h5' --check --set "$far" --set "regions.1.hosts=[$(hostname)]" --set 'regions.0.hosts=[elsewhere]'
looked "no data on a machine that submits" 0 '' --check=here --set "$far"
looked "a model for other data, though one file is away" 3 'deepfm takes ids' --check --set "$far" "${away[@]}" --set model.name=deepfm
for k in 2 3; do "$GEOTRAIN" data synth n$k.h5 --classes $k --train 90 --test 30 >data.log 2>&1 || fail "data" "$(cat data.log)"; done
"$GEOTRAIN" data classes n2.h5 u2.h5 0=cat 1=dog >data.log && "$GEOTRAIN" data classes n3.h5 u3.h5 0=cat 1=eel 2=fox >data.log
union=(--set data.classes=union --set data.partition.by=file --set 'regions.2={name: north, ranks: 2, data: {path: none.h5}}'
  --set regions.0.data.path=u2.h5)
looked "a union of classes, one file of which is away" 0 'check: ok as far as' --check=here "${union[@]}" --set regions.1.data.path=u3.h5
looked "classes without names, one file of which is away" 3 'the classes of region west .n3.h5. have no names' --check=here "${union[@]}" --set regions.1.data.path=n3.h5
looked "no such check" 2 'use --check or --check=here' --check=there

for _ in {1..200}; do echo 'to be or not to be that is the question'; done >words.txt
"$GEOTRAIN" data import text words.txt words.h5 --length 16 >data.log 2>&1 || fail "text" "$(cat data.log)"
huge=(--set data.path=words.h5 --set 'model={name: gpt, layers: 100, width: 65536}')
looked "a model that no machine holds" 2 'model gpt has 5154079637504 parameters' --check "${huge[@]}"
check "a model that no machine holds: its memory" grep -Eq 'and a worker of region east needs at least 37\.5 TiB of memory; expected at most the .*iB that host .* has free$' err
looked "a huge model on a machine that submits" 0 '' --check=here "${huge[@]}"
train "a model that no machine holds" 4 job.yaml "${huge[@]}" --run-dir huge
ended "a model that no machine holds" 2 'training it with 4 ranks here needs at least 150\.'
train "a model that no machine holds, with validation" 4 job.yaml "${huge[@]}" --run-dir huge --set data.validation=0.1 --set train.keep=best --set checkpoint.every.steps=5
ended "a model that no machine holds, with validation" 2 'training it with 4 ranks here needs at least 225\.'
check "a model that no machine holds: no run" test ! -e huge

echo 'nonsense' >choices
looked "damaged choices" 2 'choices, line 1: "nonsense"' --check --set train.choices=choices
looked "no choices" 2 'train.choices: no-choices cannot be opened' --check --set train.choices=no-choices
looked "no initial model" 4 'train.init no-model.h5' --check --set train.init=no-model.h5
looked "no choices on a machine that submits" 0 "" --check=here --set train.choices=no-choices
finish
