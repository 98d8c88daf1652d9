# labels: full
# processors: 1
# Damaged checkpoints: an older round that is whole everywhere is used, with a warning; if there is
# none, exit 4 with the name of the file.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
completes "undisturbed" 4 job.yaml --run-dir whole --set train.until.steps=80
sha=$(field whole params_sha256)
completes "a run to damage" 4 job.yaml --run-dir run --set checkpoint.keep=3
newest=$(newest_round run)

# damaged NAME FILE: the run resumes from an older round and ends like the undisturbed run.
damaged() {
  local name=$1 file=$2
  train "$name" 4 job.yaml --run-dir copy --resume --set train.until.steps=80 --set checkpoint.keep=3
  ended "$name" 0 "$file"
  check "$name: same model as undisturbed" same "$(field copy params_sha256)" "$sha"
}

# One PS dies with half of its second round written (failpoints.sh tests all points).
half="GEOTRAIN_FAILPOINT=ckpt.half:2"
run "killed while writing" -n 2 "$GEOTRAIN" train job.yaml --run-dir copy : -n 2 env $half "$GEOTRAIN" train job.yaml --run-dir copy
ended "killed while writing" 137
completes "killed while writing: resume" 4 job.yaml --run-dir copy --resume --set train.until.steps=80
check "killed while writing: same model as undisturbed" same "$(field copy params_sha256)" "$sha"
rm -rf copy

cp -r run copy
truncate -s -1000 "copy/ckpt/$newest/west.h5"
damaged "cut short in one region" "ckpt/$newest/west.h5"
rm -rf copy
cp -r run copy
printf 'damaged!' | dd of="copy/ckpt/$newest/east.h5" bs=1 seek=100000 conv=notrunc status=none
damaged "bytes changed in one region" "ckpt/$newest/east.h5"
rm -rf copy
cp -r run copy
: >"copy/ckpt/$newest/east.h5"
printf 'damaged!' | dd of="copy/ckpt/$((newest - 1))/west.h5" bs=1 seek=100000 conv=notrunc status=none
damaged "one round in each region" "ckpt/$newest/east.h5"
rm -rf copy
cp -r run copy
rm "copy/ckpt/$newest/east.h5"
completes "one file missing" 4 job.yaml --run-dir copy --resume --set train.until.steps=80
check "one file missing: same model as undisturbed" same "$(field copy params_sha256)" "$sha"
rm -rf copy

# A file in the folder of another round, or of another region, is none of its place.
cp -r run copy
cp "copy/ckpt/$((newest - 1))/east.h5" "copy/ckpt/$newest/east.h5"
damaged "the file of another round" "ckpt/$newest/east.h5: it is the file of round $((newest - 1)) of region east; expected round $newest of region east"
rm -rf copy
cp -r run copy
mv "copy/ckpt/$newest/east.h5" x && mv "copy/ckpt/$newest/west.h5" "copy/ckpt/$newest/east.h5" && mv x "copy/ckpt/$newest/west.h5"
damaged "two regions' files swapped" "it is the file of round $newest of region west; expected round $newest of region east"
rm -rf copy
cp -r run copy
cp -r "copy/ckpt/$newest" copy/ckpt/99
damaged "a round copied to another number" "expected round 99"
rm -rf copy

# Training does not begin again where a checkpoint or a final model was.
cp -r run copy
rm -rf copy/ckpt/[0-9]*
train "all rounds are lost" 4 job.yaml --run-dir copy --resume --set train.until.steps=80
ended "all rounds are lost" 4 'copy/ckpt: a checkpoint was whole in every region, and all its rounds are lost'
check "all rounds are lost: the final model stays" cmp -s run/final.h5 copy/final.h5
rm -rf copy/ckpt
train "the folder is lost" 4 job.yaml --run-dir copy --resume
ended "the folder is lost" 4 'copy holds a final model and no checkpoint to resume from'
check "the folder is lost: the final model stays" cmp -s run/final.h5 copy/final.h5
rm -rf copy

cp -r run copy
for file in copy/ckpt/*/west.h5; do printf 'damaged!' | dd of="$file" bs=1 seek=100000 conv=notrunc status=none; done
train "every round damaged" 4 job.yaml --run-dir copy --resume --set train.until.steps=80
ended "every round damaged" 4 'west.h5' 'SHA-256'
train "every round damaged, auto" 4 job.yaml --run-dir copy --resume=auto --set train.until.steps=80
ended "every round damaged, auto" 4 'west.h5'
rm -rf copy

# Each region has a whole round, but no round is whole in both.
cp -r run copy
for round in $(rounds run); do
  if [ $((round % 2)) -eq 0 ]; then file=copy/ckpt/$round/east.h5; else file=copy/ckpt/$round/west.h5; fi
  printf 'damaged!' | dd of="$file" bs=1 seek=100000 conv=notrunc status=none
done
train "no common round" 4 job.yaml --run-dir copy --resume --set train.until.steps=80
ended "no common round" 4 'no round'
finish
