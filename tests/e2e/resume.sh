# processors: 1
# What a resume may change and what not; resuming nothing, a killed run and a finished run; bit for
# bit with ssgd and two workers.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
sed -i 's/{steps: 60}/{steps: 40}/' job.yaml
# A folder that was made for the run and has other files (a batch script, its log).
mkdir run && touch run/slurm.log run/sbatch.sh
train "auto in a folder without a run" 4 job.yaml --run-dir run --resume=auto --set checkpoint.keep=4
ended "auto in a folder without a run" 0 'from the beginning'
first=$(field run params_sha256)
train "auto when finished" 4 job.yaml --run-dir run --resume=auto --set checkpoint.keep=4
ended "auto when finished" 0 'complete already'
check "auto when finished: nothing was lost" same "$(grep -c '^lost' out)" 0
check "auto when finished: the same model" same "$(field run params_sha256)" "$first"

# The newest rounds lack the file of one region, and the last one has half a file: the round before
# them is used, and the run ends like an undisturbed one.
cp -r run torn
newest=$(newest_round torn)
rm torn/summary.json torn/ckpt/{$((newest - 2)),$((newest - 1)),$newest}/west.h5
echo half >"torn/ckpt/$newest/west.h5.tmp"
train "auto with a torn round" 4 job.yaml --run-dir torn --resume=auto
ended "auto with a torn round" 0 'continues from round'
check "auto with a torn round: the same model" same "$(field torn params_sha256)" "$first"

if [ $full = yes ]; then
  # A run that ended before its first round: its job and its records are there.
  mkdir early && cp run/job.yaml early/ && head -n 2 run/east.jsonl >early/east.jsonl
  train "auto before the first round" 4 job.yaml --run-dir early --resume=auto
  ended "auto before the first round" 0 'from the beginning'
  check "auto before the first round: the same model" same "$(field early params_sha256)" "$first"
fi

train "resume of no run" 4 job.yaml --run-dir nothing --resume
ended "resume of no run" 4 'nothing holds no run'

if [ $full = yes ]; then
  # If OpenBLAS can be made to pick another core, a resume with it warns that the bits will differ.
  if [ "$(OPENBLAS_CORETYPE=Haswell "$GEOTRAIN" info 2>/dev/null | grep 'openblas core')" != "$("$GEOTRAIN" info | grep 'openblas core')" ]; then
    cp -r run other
    OPENBLAS_CORETYPE=Haswell train "other kernels" 4 job.yaml --run-dir other --resume --set train.until.steps=50
    ended "other kernels" 0 'not with the same bits' 'Haswell'
  fi
fi

# A run's only round was whole, and one region has lost it: the run does not start again, and no
# file is removed.
grep -v '^checkpoint' job.yaml >once.yaml
sed -i 's/{steps: 40}/{steps: 10}/' once.yaml
train "one round, auto from nothing" 4 once.yaml --run-dir once --resume=auto
ended "one round, auto from nothing" 0 'from the beginning'
rm once/ckpt/1/west.h5
train "its file is lost" 4 once.yaml --run-dir once --resume=auto
ended "its file is lost" 4 'once/ckpt/1/east.h5 was whole in every region'
check "its file is lost: the other region's stays" [ -s once/ckpt/1/east.h5 ]

# Files with which a run began may be gone when it resumes.
cp "run/ckpt/$(newest_round run)/east.h5" begin.h5
completes "from a file" 4 job.yaml --run-dir begun --set train.init=begin.h5 --set train.until.steps=10
rm begin.h5
train "from a file, which is gone" 4 job.yaml --run-dir begun --resume --set train.init=begin.h5 --set train.until.steps=14
ended "from a file, which is gone" 0 'a resume does not read it'

if [ $full = yes ]; then
  # One region already has all its samples, the other continues training: what it learns is in the
  # models of both.
  sed -e 's/{name: east, ranks: 2}/{name: east, ranks: 3}/' job.yaml >three.yaml
  train "unlike workers" 5 three.yaml --run-dir unlike
  completes "more for one region" 5 three.yaml --run-dir unlike --resume --set train.until=null --set train.until.samples=1500
  check "more for one region: both regions' models are the same" same "$(sed -nE 's/^ +"test_loss": (.*),/\1/p' unlike/summary.json | sort -u | wc -l)" 1
fi

# A run that began with --set continues with them, whether the job file or that of the run is named, and
# a run that is complete stays as it is.
for named in job.yaml begun/job.yaml; do
  train "begun with --set, $named" 4 $named --run-dir begun --resume
  ended "begun with --set, $named" 0 'complete already'
  check "begun with --set, $named: samples" same "$(field begun samples)" $((2 * 14 * 16))
done

# A job file that changes the run's job: its changes are listed, unless --set gives them.
sed -e 's/{steps: 40}/{steps: 44}/' -e 's/period: 4/period: 5/' -e 's/keep: 2/keep: 3/' job.yaml >changed.yaml
cp run/job.yaml before.yaml
train "a changed job file" 4 changed.yaml --run-dir run --resume
ended "a changed job file" 2 'changed.yaml is not the job of the run \(run/job.yaml\): ' 'train.until.steps: 40 -> 44' 'sync.period: 4 -> 5' 'checkpoint.keep: 4 -> 3' '--set'
train "a changed job file, some by --set" 4 changed.yaml --run-dir run --resume=auto --set train.until.steps=40 --set checkpoint.keep=4
ended "a changed job file, some by --set" 2 'run/job.yaml\): sync.period: 4 -> 5; give'
check "a changed job file: the run's job stays" cmp -s before.yaml run/job.yaml
train "a changed job file, all by --set" 4 changed.yaml --run-dir run --resume --set train.until.steps=40 --set checkpoint.keep=4 --set sync.period=4
ended "a changed job file, all by --set" 0 'complete already'
(cat job.yaml && echo '# as before') >remark.yaml
train "a remark" 4 remark.yaml --run-dir begun --resume --set train.until.steps=14 --set train.init=begin.h5
ended "a remark" 0 'complete already'
check "what a file changes" same "$("$GEOTRAIN" info changed.yaml --set sync.period=4 --resume run)" "$(printf 'train.until.steps=44\ncheckpoint.keep=3')"
plain info changed.yaml --resume run
ended "what a file may not change" 2 'sync.period is 4 there and 5 here; a resume may change'

cp run/job.yaml before.yaml
train "a changed key" 4 job.yaml --run-dir run --resume --set sync.period=5
ended "a changed key" 2 'sync.period' '4' '5'
check "a changed key: the run's job stays" cmp -s before.yaml run/job.yaml
train "a changed option of the strategy" 4 job.yaml --run-dir run --resume --set sync.period_unit=pass
ended "a changed option of the strategy" 2 'sync.period_unit is step there and pass here'
train "a changed learning rate" 4 job.yaml --run-dir run --resume --set train.optimizer.lr=0.01
ended "a changed learning rate" 2 'train.optimizer.lr'

completes "longer" 4 job.yaml --run-dir run --resume --set train.until.steps=60 --set limits.local=20s --set checkpoint.every.steps=20
check "longer: samples" same "$(field run samples)" $((2 * 60 * 16))
check "longer: resumes are counted" same "$(field run resumes)" 3
train "undisturbed" 4 job.yaml --run-dir whole --set train.until.steps=60
check "longer: model of a whole run" same "$(field run params_sha256)" "$(field whole params_sha256)"

"$GEOTRAIN" data synth less.h5 --train 2000 --test 100 >/dev/null || fail "data synth less.h5"
sed -e 's/{steps: 40}/{epochs: 8}/' -e 's/data.h5/less.h5/' -e 's/every: {steps: 10}/every: {steps: 5}/' job.yaml >both.yaml
sed -e 's/{name: east, ranks: 2}/{name: east, ranks: 3}/' both.yaml >five.yaml
start 5 five.yaml --run-dir moved
wait_round moved 2
kill -USR1 "$launcher"
wait_end "stopped with 1 + 2 and 1 + 1" 60
gone "stopped with 1 + 2 and 1 + 1"
ended "stopped with 1 + 2 and 1 + 1" 75
completes "resumed with 1 + 1 and 1 + 3" 6 five.yaml --run-dir moved --resume --set regions.0.ranks=2 --set regions.1.ranks=4
check "other workers: every sample was seen once" same "$(field moved samples)" 16000

# kill -9 of everything; ssgd, where one region has two workers.
sed -e 's/strategy: sma/strategy: ssgd/' -e 's/{name: east, ranks: 2}/{name: east, ranks: 3}/' -e 's/{steps: 40}/{steps: 60}/' -e 's/latency: 1 ms/latency: 10 ms/' job.yaml >ssgd.yaml
completes "ssgd undisturbed" 5 ssgd.yaml --run-dir ssgd_whole
start 5 ssgd.yaml --run-dir ssgd
wait_round ssgd 3
kill -KILL "$launcher" $(living)
wait_end "ssgd killed" 60
gone "ssgd killed"
completes "ssgd resumed" 5 ssgd.yaml --run-dir ssgd --resume
check "ssgd: model of a whole run" same "$(field ssgd params_sha256)" "$(field ssgd_whole params_sha256)"
finish
