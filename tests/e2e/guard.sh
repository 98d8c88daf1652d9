# processors: 1
# sync.guard: a region whose part of a mean is excluded does not move the others; the same model with
# the real and the virtual clock and after a resume; events, summary, and the norm of the residual.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
# With so low a limit, ordinary parts are outliers.
guard=(--set sync.strategy=sma --set sync.period=2 --set sync.codec.name=topk --set sync.guard.outlier=0.01 --set sync.guard.warmup=1 --set sync.guard.clip=100)
completes "real clock" 4 job.yaml --run-dir real "${guard[@]}"
completes "virtual clock" 4 job.yaml --run-dir virtual "${guard[@]}" --clock virtual --set compute.step='1 ms'
check "virtual clock: the same model" same "$(field virtual params_sha256)" "$(field real params_sha256)"
# excluded RUN: the number of parts that all regions left out.
excluded() { sed -nE 's/^ *"excluded": ([0-9]+),?$/\1/p' "$1/summary.json" | awk '{ n += $1 } END { print n + 0 }'; }
excluded=$(excluded virtual)
check "parts are excluded" test "$excluded" -gt 0
check "the record has each" same "$(grep -h '"event":"excluded"' virtual/*.jsonl | grep -c '"norm":[1-9]\|"norm":0\.')" "$excluded"
check "the summary has the residual of each region" same "$(grep -c '"residual": ' virtual/summary.json)" 2
check "so has the record" same "$(grep -h '"event":"complete"' virtual/*.jsonl | grep -c '"residual":')" 2

cp -r real again
rm again/summary.json again/ckpt/"$(newest_round again)"/west.h5
train "resumed" 4 job.yaml --run-dir again --resume
ended "resumed" 0 'continues from round'
check "resumed: the same model" same "$(field again params_sha256)" "$(field real params_sha256)"
check "resumed: as many are excluded" same "$(excluded again)" "$excluded"

train "central" 4 job.yaml --run-dir refused "${guard[@]}" --set sync.codec.name=none --set sync.central=west
ended "central" 2 'sync.guard is given with sync.central'
train "ssgd" 4 job.yaml --run-dir refused --set sync.strategy=ssgd --set sync.guard.outlier=3
ended "ssgd" 2 'sync.guard.outlier'
finish
