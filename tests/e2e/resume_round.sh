# processors: 1
# Which round a resume takes: the newest that is whole and finite everywhere, or the given one; what
# a stop for non-finite numbers leaves; and that older files are not read.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
poison() { "$GEOTRAIN_HELPERS/e2e.poison" "$@" || fail "poison $*"; }
ends=(--set checkpoint.keep=6 --set train.until.steps=36) # the run itself ends at 24

job job.yaml
sed -i 's/{steps: 60}/{steps: 36}/; s/every: {steps: 10}/every: {steps: 6}/' job.yaml
completes "undisturbed" 4 job.yaml --run-dir whole
sha=$(field whole params_sha256)
# Steps of 30 ms: a round that is due while another is being written is left out.
completes "a run" 4 job.yaml --run-dir run --set train.until.steps=24 --set checkpoint.keep=6 --set compute.emulate=true --set compute.step=30ms
check "a run: five rounds" same "$(rounds run | tr '\n' ' ')" "1 2 3 4 5 "
newest=$(newest_round run)

# fresh: a copy of the original run.
fresh() { rm -rf copy && cp -r run copy; }

fresh
poison copy "$newest" west model/params nan
train "one region's newest is not finite" 4 job.yaml --run-dir copy --resume "${ends[@]}"
ended "one region's newest is not finite" 0 "ckpt/$newest/west.h5: model/params has non-finite values" "continues from round $((newest - 1))"
check "one region's newest is not finite: the model of a whole run" same "$(field copy params_sha256)" "$sha"

fresh
for round in $(rounds copy); do poison copy "$round" east optim/momentum nan; done
train "none is finite" 4 job.yaml --run-dir copy --resume "${ends[@]}"
ended "none is finite" 4 "no round is whole and finite in every region: copy/ckpt/$newest/east.h5"
check "none is finite: nothing is removed" same "$(rounds copy | tr '\n' ' ')" "$(rounds run | tr '\n' ' ')"

# Older files are not read while a newer round is whole.
fresh
for round in $(rounds copy | head -n -1); do printf 'damaged!' | dd of="copy/ckpt/$round/east.h5" bs=1 seek=100000 conv=notrunc status=none; done
train "older files are damaged" 4 job.yaml --run-dir copy --resume "${ends[@]}"
ended "older files are damaged" 0 "continues from round $newest"
check "older files are damaged: none was looked at" same "$(grep -c SHA-256 err)" 0
check "older files are damaged: the model of a whole run" same "$(field copy params_sha256)" "$sha"

if strace -f -o /dev/null true 2>/dev/null; then
  fresh
  run "how often a file is read" -n 4 strace -ff --seccomp-bpf -e trace=openat -o trace "$GEOTRAIN" train job.yaml --run-dir copy --resume \
    "${ends[@]}" --set train.choices=measure
  ended "how often a file is read" 0
  check "how often a file is read: once" same "$(cat trace.* | grep -c "copy/ckpt/$newest/west.h5\", O_RDONLY")" 1
else
  skip "how often a file is read" "strace is not there, or may not trace"
fi

fresh
poison copy 2 west model/params inf
train "a round that is named" 4 job.yaml --run-dir copy --resume-round 3 "${ends[@]}"
ended "a round that is named" 0 'continues from round 3'
check "a round that is named: the model of a whole run" same "$(field copy params_sha256)" "$sha"
fresh
poison copy 2 west model/params inf
truncate -s 3000 copy/ckpt/1/east.h5
rm copy/ckpt/4/east.h5
# The message lists the others, so that one number stands for all.
for round in $([ $full = no ] || echo 1 4 77) 2; do
  train "round $round is named" 4 job.yaml --run-dir copy --resume-round $round "${ends[@]}"
  ended "round $round is named" 4 "--resume-round $round: copy holds no such round .* those that are: $(rounds run | sort -rn | grep -v '^[124]$' | tr '\n' ' ' | sed 's/ $//; s/ /, /g')\$"
done
check "rounds that are named: nothing is removed" same "$(rounds copy | tr '\n' ' ')" "$(rounds run | tr '\n' ' ')"
# Without ranks: mpirun may lose the output of a rank before MPI starts.
plain train job.yaml --run-dir copy --resume-round 3rd
ended "a round that is no number" 2 '--resume-round is "3rd"; expected the number of a round'
run "two rounds are named" -n 2 "$GEOTRAIN" train job.yaml --run-dir copy --resume-round 3 : \
  -n 2 "$GEOTRAIN" train job.yaml --run-dir copy --resume-round 5
ended "two rounds are named" 2 'region west was started with --resume-round 5, region east with 3'

# The run diverges and is stopped: the round from before that stays, though keep is one.
fresh
for region in east west; do poison copy "$newest" $region optim/momentum 3e38; done
train "astray" 4 job.yaml --run-dir copy --resume --set train.until.steps=36 --set checkpoint.keep=1
ended "astray" 6 'not finite' "round $((newest + 1)) is not sound .*--resume-round N"
check "astray: the round before stays" [ -e "copy/ckpt/$newest/east.h5" -a -e "copy/ckpt/$newest/west.h5" ]
check "astray: what it went to stays too" same "$(newest_round copy)" $((newest + 1))
train "astray: resume" 4 job.yaml --run-dir copy --resume --set checkpoint.keep=1
ended "astray: resume" 6 'gave only non-finite gradients' "continues from round $newest"
finish
