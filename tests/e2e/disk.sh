# labels: full
# processors: 1
# A run directory that cannot be written, and one that is full: exit 4, a clear sentence, the
# previous round stays whole, and training continues when there is space.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job job.yaml
mkdir small
if [ "$(id -u)" -ne 0 ] || ! mount -t tmpfs -o size=4m none small 2>/dev/null; then
  skip "full and read-only disks" "a tmpfs can be mounted by root only, and not in every container"
  finish
fi
end() {
  at_exit
  umount small
}
trap end EXIT

# 4 MiB have space for three rounds of two files of half a megabyte, with the temporary files that
# are needed during writing, but not for nine.
train "full disk" 4 job.yaml --run-dir small/run --set checkpoint.keep=9 --set train.until.steps=200
ended "full disk" 4 'small/run/(ckpt/|east.jsonl|west.jsonl)' 'No space left on device'
# What a message says of the rounds is true.
whole() { ls -d small/run/ckpt/[0-9]* 2>/dev/null | grep -c .; }
if grep -q 'checkpoint could not be written' err; then
  if [ "$(whole)" -gt 1 ]; then told='checkpoint round [0-9]+ is whole, and --resume continues'; else told='no checkpoint round is whole yet; --resume starts from the beginning'; fi
  check "full disk: what is left is said" grep -qE "$told" err
fi
check "full disk: no summary" test ! -e small/run/summary.json
newest=$(newest_round small/run)
check "full disk: earlier rounds are there" test "${newest:-0}" -ge 2
check "full disk: no temporary file stays" same "$(find small -name '*.tmp*' | wc -l)" 0
check "full disk: east's previous round is whole" "$GEOTRAIN" eval "small/run/ckpt/$((newest - 1))/east.h5" data.h5
check "full disk: west's previous round is whole" "$GEOTRAIN" eval "small/run/ckpt/$((newest - 1))/west.h5" data.h5

train "still full" 4 job.yaml --run-dir small/run --resume --set checkpoint.keep=9 --set train.until.steps=200
ended "still full" 4 'No space left on device'
mount -o remount,size=64m small
completes "room again" 4 job.yaml --run-dir small/run --resume --set train.until.steps=80
train "undisturbed" 4 job.yaml --run-dir whole --set train.until.steps=80
check "same model as undisturbed" same "$(field small/run params_sha256)" "$(field whole params_sha256)"

dd if=/dev/zero of=small/filler bs=64k status=none 2>/dev/null
train "full from the start" 4 job.yaml --run-dir small/new
ended "full from the start" 4 'small/new' 'No space left on device'
rm small/filler
mount -o remount,ro small
train "read-only" 4 job.yaml --run-dir small/other
ended "read-only" 4 'small/other' 'Read-only file system'
train "read-only, resumed" 4 job.yaml --run-dir small/run --resume --set train.until.steps=100
ended "read-only, resumed" 4 'small/run' 'Read-only file system'
finish
