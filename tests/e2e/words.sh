# processors: 1
# The answers of commands to common mistakes: one sentence that says what is needed, and the
# documented exit code.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=400
job job.yaml

# answers NAME CODE PATTERN ARGUMENT...: one line that contains PATTERN verbatim.
answers() {
  local name=$1 wanted=$2 pattern=$3 code
  shift 3
  "$GEOTRAIN" "$@" >said 2>&1 </dev/null
  code=$?
  if [ "$code" = "$wanted" ] && grep -qF -- "$pattern" said && [ "$(grep -vc ' s so far; ' said)" = 1 ]; then ok "$name"; else fail "$name" "code $code: $(tail -n 3 said)"; fi
}

answers 'an option with one dash' 2 'info: option -set is unknown; options begin with two dashes, as in --set' info -set v.yaml job.yaml
answers 'behind other words' 2 'simulate: option -set is unknown; options begin with two dashes, as in --set' simulate job.yaml -set a=b
answers 'an option that is none' 2 'info: option --sett is unknown or lacks its value' info job.yaml --sett
answers 'eval without a data set' 2 'eval: run is given and no data set; expected one for its test split, as in `geotrain eval run DATA.h5`' eval run
answers 'a format that is none' 2 'format `imagenet` is not known; expected one of mnist, cifar, libfm, imdb, text, sessions, folder, csv, npy' data import imagenet . out.h5
sed -n 's/.*expected one of //p' said | tr -d , >formats
answers 'a format that is none, with two sources' 2 'format `mnits` is not known; expected one of mnist, cifar, libfm, imdb, text, sessions, folder, csv, npy; did you mean mnist?' \
  data import mnits a.txt b.txt out.h5
answers 'a folder that is not there' 3 'nowhere: there is no such folder (No such file or directory); expected the one that holds the files to import' \
  data import mnist nowhere out.h5
answers 'a file for a folder' 3 'job.yaml: is a file; expected the folder that holds the files to import' data import cifar job.yaml out.h5
answers 'an option of another format' 2 'data import --length is not an option of format cifar; --schema is' data import cifar . out.h5 --length 9
answers 'an option that import lacks' 2 'data import: option `--words` is not known; --vocabulary, --length, --vocabulary-of, --test-share, --size, --channels, --seed, --strict, --label, --columns, --missing, --as, --schema and --force are' data import imdb . out.h5 --words 9
answers 'a length of no number' 2 'data import --length is `x`; expected a whole number' data import imdb . out.h5 --length x
answers 'a length of 0' 2 'data import --length is 0; expected 1 or more' data import imdb . out.h5 --length 0
answers 'text without a file' 2 'data import has 2 arguments; expected text|csv FILE... OUT.h5' data import text out.h5
answers 'a share of no number' 2 'data import --test-share is `1/9`; expected a number' data import text a.txt out.h5 --test-share 1/9
answers 'a length without a number' 2 'data import: option `--length` has no value' data import imdb . out.h5 --length
compute=(--set 'compute.step=10 ms')
answers 'an unknown model' 2 'model.name is "lenet6"; expected one of ' simulate job.yaml "${compute[@]}" --set model.name=lenet6
check 'an unknown model: all are named' grep -q 'expected one of .*lenet5.*resnet18.*; did you mean lenet5?' said
answers 'an unknown model without data' 2 'model.name is "lenet6"; expected one of ' simulate job.yaml "${compute[@]}" --set model.name=lenet6 \
  --set data.path=none.h5 --set regions.0.samples=100 --set regions.1.samples=100
answers 'no figures of compute' 2 \
  "job.yaml: compute.step is not given for region east; expected it to simulate, as in --set 'compute.step=10 ms', or \`profile: FILE\`" simulate job.yaml
for command in info simulate; do
  answers "a place that there is none of, $command" 2 'regions.0.place names the place "lodnon", of which ' $command job.yaml "${compute[@]}" \
    --set 'regions.0.place=aws:lodnon' --set "plan.catalogue=$GEOTRAIN_SOURCE/jobs/prices"
  check "a place that there is none of, $command: the nearest" grep -qF 'did you mean london?' said
done
"$GEOTRAIN" info job.yaml --set 'regions.0.place=aws:london' --set "plan.catalogue=$GEOTRAIN_SOURCE/jobs/prices" >said 2>&1
check 'a place that there is, info' same "$?" 0
answers '--out that cannot be made' 2 'simulate: --out /proc/out cannot be created: ' simulate job.yaml "${compute[@]}" --out /proc/out
printf x >file
answers '--out of a job that is refused' 2 'compute.step is not given' simulate job.yaml --out left
check '--out of a job that is refused: no folder is left' test ! -e left
answers '--out that is a file' 2 'file/summary.json' simulate job.yaml "${compute[@]}" --out file

# A slow link is only slow; a link that signs of life fill is named.
answers 'a link of 1 kbit/s' 6 'nothing moves any more: the slowest link has 1000 bit/s, which signs of life alone fill; expected 2000 bit/s or more' \
  simulate job.yaml "${compute[@]}" --set train.until.steps=8 --set 'wan.links.0.bandwidth=1 kbit/s'
"$GEOTRAIN" simulate job.yaml "${compute[@]}" --set 'wan.links.0.bandwidth=2 kbit/s' >slow 2>&1
check 'a link of 2 kbit/s' same "$?" 0
check 'a simulation evaluates nothing' grep -qF 'test accuracy  -  (nothing was evaluated)' slow

# The help of `data` describes every format, and is the same by each way to ask for it.
"$GEOTRAIN" data import --help >help
for format in $(cat formats); do check "data import --help: $format" grep -qE "^  $format  " help; done
check 'data import --help: there are formats' grep -q 'text' formats
check 'data import --help is `help data`' same "$("$GEOTRAIN" help data)" "$(cat help)"

# A byte order mark in front of the text, as some editors write it.
{ printf '\357\273\277' && cat job.yaml; } >marked.yaml
"$GEOTRAIN" info marked.yaml >marked 2>&1
check 'a job file with a byte order mark' same "$?" 0

"$GEOTRAIN" help >help
check 'help says what it computes on' grep -qF 'It computes on CPUs only; GPUs and other accelerators are not used.' help
"$GEOTRAIN" help job >help
check 'help job names no GPU' test "$(grep -cE '\b[av]100\b' help)" = 0

# Warnings, on standard error, about jobs that are accepted.
warns() {
  local name=$1 pattern=$2
  shift 2
  "$GEOTRAIN" simulate job.yaml "${compute[@]}" "$@" 2>said >/dev/null
  check "$name" grep -qF -- "geotrain: warning: $pattern" said
}
warns 'adam with momentum' 'train.optimizer.momentum is 0.9 and does nothing' --set train.optimizer.name=adam --set train.optimizer.momentum=0.9
warns 'a warm-up longer than the run' 'train.schedule.warmup_steps is 5000 and ' --set train.schedule.warmup_steps=5000
warns 'a batch larger than the part' 'train.batch is 100000 and region east holds ' --set train.batch=100000
warns 'emulation without links' 'wan.emulate is true and no link is given' --set wan.emulate=true --set wan.links=null --set 'wan.default={}'
"$GEOTRAIN" simulate job.yaml "${compute[@]}" 2>said >/dev/null
check 'no warning without reason' test ! -s said

# With many regions only the 4096 busiest links with traffic are listed, and the number of the
# others.
{ echo name,ranks,samples,samples_per_s && for i in $(seq 65); do echo "r$i,2,64,1000"; done; } >many.csv
many=(--regions-csv many.csv --set 'wan.default={latency: 10 ms}' --set data.path=none.h5 --set 'train.until={steps: 4}')
for case in none:0+4160 sma:4096+64; do
  "$GEOTRAIN" simulate job.yaml "${many[@]}" --set sync.strategy=${case%:*} --out many >out 2>&1
  check "65 regions, ${case%:*}: links" same "$(jq -r '"\(.links | length)+\(.links_left_out)"' many/summary.json)" "${case#*:}"
  check "65 regions, ${case%:*}: messages" same "$(jq '[.regions[].traffic.messages] | add' many/summary.json)" \
    "$(sed -nE 's/^WAN traffic .* MB in ([0-9]+) messages, [0-9.]*[1-9][0-9.]* MB .*/\1/p' out)"
done
"$GEOTRAIN" plan job.yaml "${many[@]}" --set sync.strategy=sma --json >many.json 2>err
check '65 regions, a plan: links' same "$(jq -r '.candidates[0].plan | "\(.links | length)+\(.links_left_out)"' many.json)" 4096+64
check '65 regions, a plan: messages' same "$(jq '.candidates[0].plan | ([.regions[].traffic.messages] | add) == .expected.messages' many.json)" true

# The page of the job file is the output of the program.
"$GEOTRAIN" help job --markdown >job-file.md
check "docs/job-file.md: geotrain help job --markdown >docs/job-file.md" cmp -s job-file.md "$GEOTRAIN_SOURCE/docs/job-file.md"

finish
