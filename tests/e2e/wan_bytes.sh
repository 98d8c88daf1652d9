# labels: full
# processors: 1
# The bytes on the WAN are exactly proportional to 1/period: 64 steps are a whole number of
# exchanges with each of these periods.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libwan.sh"

"$GEOTRAIN" data synth data.h5 >/dev/null || fail "data synth"
few=(--set data.path=data.h5 --set train.batch=16 --set train.eval_every.epochs=0 --set checkpoint.every.epochs=0
  --set train.until.epochs=null --set train.until.steps=64 --set wan.links.0.bandwidth='1 Gbit/s' --set wan.links.0.latency='1 ms')

for strategy in asgd-ga sma; do
  for period in 1 2 4 8; do
    name=$strategy-period-$period
    completes "$name" 4 "$GEOTRAIN_SOURCE/jobs/$strategy-2-regions.yaml" --run-dir "$name" "${few[@]}" --set sync.period=$period
    check "$name: $((64 / period)) messages of $message bytes on both links" \
      same "$(links "$name" | cut -d' ' -f 2- | sort | uniq -c | tr -s ' ')" " 2 64 $((64 / period)) $((64 / period * message))"
  done
done
finish
