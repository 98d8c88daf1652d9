# processors: 1
# sync.codec, sync.fragments, sync.delay: the same model with the real and the virtual clock, after a resume and over topologies
# that add alike; fewer bytes, as simulate predicts them; combinations that are refused.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
topk=(--set sync.strategy=sma --set sync.codec.name=topk --set sync.codec.decay=0.95 --set sync.outer.name=nesterov --set sync.outer.momentum=0.5)
step=(--clock virtual --set compute.step='1 ms')
completes "real clock" 4 job.yaml --run-dir real "${topk[@]}"
completes "virtual clock" 4 job.yaml --run-dir virtual "${topk[@]}" "${step[@]}"
check "virtual clock: the same model" same "$(field virtual params_sha256)" "$(field real params_sha256)"
cp -r real again
rm again/summary.json again/ckpt/"$(newest_round again)"/west.h5
train "resumed" 4 job.yaml --run-dir again --resume
ended "resumed" 0 'continues from round'
check "resumed: the same model" same "$(field again params_sha256)" "$(field real params_sha256)"

# coded NAME STRATEGY CODEC SETTING...: trains and simulates; both give the same figures.
coded() {
  local name=$1 sets=(--set "sync.strategy=$2" --set "sync.codec.name=$3" --set compute.step='1 ms')
  shift 3
  sets+=("${@/#/--set=}")
  completes "$name" 4 job.yaml --run-dir "$name" --clock virtual "${sets[@]}"
  simulates "$name" "$name" 1e-4 job.yaml "${sets[@]}"
}
coded float32 sma none
for codec in bf16 fp16 int8 e3m0 topk mask powersgd; do
  coded $codec sma $codec
  check "$codec: fewer bytes" test "$(field $codec bytes_sent)" -lt "$(field float32 bytes_sent)"
done
for topology in hub tree ring; do
  coded mask-$topology sma mask sync.topology=$topology
  check "mask over a $topology: the model of a mesh" same "$(field mask-$topology params_sha256)" "$(field mask params_sha256)"
done
coded topk-hub sma topk sync.topology=hub
coded topk-auto sma topk sync.topology=auto
coded asgd asgd topk
coded asgd-ga asgd-ga topk sync.topology=hub
coded ama ama int8
coded streaming sma topk sync.fragments=4 sync.delay=1 sync.outer.name=nesterov sync.outer.momentum=0.5
coded delayed sma none sync.delay=1 'compute.encode=10 ms' 'compute.apply=5 ms'
coded fragments-tree sma none sync.fragments=2 sync.topology=tree
completes "streaming, real clock" 4 job.yaml --run-dir streaming-real --set sync.fragments=4 --set sync.delay=1 "${topk[@]}" --set sync.codec.decay=1 --set sync.outer.lr=0.7
check "streaming: the same model" same "$(field streaming-real params_sha256)" "$(field streaming params_sha256)"
coded ssgd ssgd int8 sync.codec.rounding=stochastic

# Encoding and decoding take time: 247 kB at these rates about 20 ms and 10 ms.
# costly CODEC NAME SETTING...
costly() {
  local codec=$1 name=$2
  shift 2
  coded "$name" sma "$codec" "compute.codec.$codec.encode=100 Mbit/s" "compute.codec.$codec.decode=200 Mbit/s" "$@"
}
# work NAME: what the codec of its first region did.
work() {
  /usr/bin/python3 -c 'import json, sys
c = json.load(open(sys.argv[1] + "/summary.json"))["regions"][0]["codec"]
print(c["name"], "%.6f %.6f" % (c["encode_s"] / c["raw_bytes"] * 1e8 / 8, c["decode_s"] / c["decoded_bytes"] * 2e8 / 8), c["wire_bytes"] < c["raw_bytes"])' "$1"
}
costly topk topk-costs
check "topk: the codec works at its rates" same "$(work topk-costs)" "topk 1.000000 1.000000 True"
check "topk: the same model, whatever encoding costs" same "$(field topk-costs params_sha256)" "$(field topk params_sha256)"
check "topk: encoding takes virtual time" /usr/bin/python3 -c 'import sys; sys.exit(float(sys.argv[1]) <= float(sys.argv[2]))' "$(field topk-costs virtual_s)" "$(field topk virtual_s)"
check "topk: a warning, once" same "$(grep -c '"event":"warning".*sync.codec topk takes' topk-costs/west.jsonl)" 1
check "topk: no warning without costs" same "$(grep -c 'sync.codec topk takes' topk/west.jsonl)" 0
costly topk topk-hub-costs sync.topology=hub
costly powersgd powersgd-costs
costly int8 streaming-costs sync.fragments=4 sync.delay=1
completes dgc 4 job.yaml --run-dir dgc "${step[@]}" --set sync.strategy=ssgd --set sync.codec.name=dgc --set sync.codec.density=0.01 --set sync.codec.warmup=10 --set train.optimizer.momentum=0
"$GEOTRAIN" simulate job.yaml --out dgc-sim "${step[@]:2}" --set sync.strategy=ssgd --set sync.codec.name=dgc --set sync.codec.density=0.01 --set sync.codec.warmup=10 --set train.optimizer.momentum=0 >dgc-sim.out 2>&1
check "dgc: simulate has its bytes, to a tenth" /usr/bin/python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a / b - 1) > 0.1)' "$(field dgc-sim bytes_sent)" "$(field dgc bytes_sent)"

plain plan job.yaml --set sync.strategy=sma --set 'plan.strategies=[sma, ama]' --set 'plan.codecs=[none, topk]' --set compute.step='1 ms'
ended "plan" 0 'sma 4 topk' 'ama 4 none' 'no candidate has strategy ama and codec topk: the strategy sends models'
check "plan: no unsound pair" same "$(grep -c 'ama 4 topk' out)" 0

# refused NAME WHY SETTING...
refused() {
  local name=$1 why=$2
  shift 2
  train "$name" 4 job.yaml --run-dir refused "${@/#/--set=}"
  ended "$name" 2 "$why"
}
refused "topk and ama" 'the codec encodes updates only' sync.strategy=ama sync.codec.name=topk
refused "topk over a ring" 'over a ring only codecs' sync.strategy=sma sync.codec.name=topk sync.topology=ring
refused "powersgd and asgd" 'it requires ssgd or sma' sync.strategy=asgd sync.codec.name=powersgd
refused "dgc and sma" 'which only ssgd sends' sync.strategy=sma sync.codec.name=dgc
refused "dgc and momentum" 'requires optimizer sgd with momentum 0' sync.strategy=ssgd sync.codec.name=dgc train.optimizer.momentum=0.9
refused "int8 and central" 'sync.central takes float32' sync.strategy=sma sync.codec.name=int8 sync.central=west
refused "3 bits" 'it must be 2 or 8' sync.strategy=sma sync.codec.name=topk sync.codec.bits=3
refused "density of dgc" 'sync.codec.density is 0.7; with sync.codec.name dgc it must be from 1/4096 to 0.5' sync.strategy=ssgd sync.codec.name=dgc sync.codec.density=0.7 train.optimizer.momentum=0
refused "density of mask" 'it must be from 1/4096 to 1' sync.strategy=sma sync.codec.name=mask sync.codec.density=0.0001
refused "a strategy that a plan compares" 'with strategy ama and topology mesh' sync.strategy=sma sync.codec.name=topk 'plan.strategies=[sma, ama]'
refused "a codec that a plan compares" 'plan.codecs is topk with strategy ama and topology mesh' sync.strategy=ama 'plan.codecs=[int8, topk]'
refused "a plan without a sound pair" 'plan.codecs is powersgd with strategy asgd' sync.strategy=sma 'plan.strategies=[ama, asgd]' 'plan.codecs=[dgc, powersgd]'
refused "fragments and period" 'the period must be a multiple of the fragments' sync.strategy=sma sync.fragments=3
refused "delay and period" 'the delay must be less' sync.strategy=sma sync.delay=4
refused "too many fragments" 'model lenet5 has 10 tensors' sync.strategy=sma sync.period=20 sync.fragments=20
refused "bits of int8" 'it is for sync.codec.name topk only' sync.strategy=sma sync.codec.name=int8 sync.codec.bits=8
refused "no messages" 'sync.codec.name is given and sync.strategy is none' sync.strategy=none sync.codec.name=int8
finish
