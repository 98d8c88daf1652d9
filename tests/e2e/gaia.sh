# labels: full
# processors: all
# Gaia's 11 regions, 22 ranks, under the virtual clock: asgd and sma end, and while all of them wait
# for one rank they use next to no CPU time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LIMIT=120

"$GEOTRAIN" data synth data.h5 >/dev/null || fail "data synth"
job=$GEOTRAIN_SOURCE/jobs/gaia-11-regions.yaml
few=(--clock virtual --set data.path=data.h5 --set train.batch=16 --set train.until.epochs=4 --set train.eval_every.epochs=0)

# cpu_ticks: the clock ticks that all ranks have used.
cpu_ticks() {
  local p
  for p in $(living); do cat "/proc/$p/stat" 2>/dev/null; done | sed 's/.*) //' | awk '{ sum += $12 + $13 } END { print sum + 0 }'
}

for strategy in asgd sma; do
  train "$strategy" 22 "$job" --run-dir "$strategy" "${few[@]}" --set sync.strategy=$strategy
  ended "$strategy" 0 "virtual time"
  check "$strategy: every sample was seen" same "$(field "$strategy" samples)" 16000
  awk -v name="$strategy" '/"compute_s"/ { gsub(/[",:]/, ""); compute += $2 } /"wan_wait_s"/ { gsub(/[",:]/, ""); wait += $2 }
    END { printf "      %s: %.0f %% of the region'"'"'s time in compute and waits is WAN wait\n", name, 100 * wait / (wait + compute) }' "$strategy/summary.json"
done

# One worker is stopped: all others wait.
start 22 "$job" --run-dir stopped "${few[@]}" --set sync.strategy=sma --set train.until.epochs=400
wait_file stopped/virginia.jsonl && sleep 2
check "stopped: 22 ranks" same "$(living | wc -l)" 22
worker=$(rank_pid 1)
kill -STOP "$worker"
sleep 1
before=$(cpu_ticks)
sleep 10
ticks=$(($(cpu_ticks) - before))
check "stopped: still 22" same "$(living | wc -l)" 22
kill -CONT "$worker"
share=$(awk -v t="$ticks" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.1f", 100 * t / hz / 10 / 21 }')
echo "      21 ranks that wait use $share % of a core each"
check "waiting ranks sleep" awk -v s="$share" 'BEGIN { exit !(s < 3) }'
end_ranks
wait_end "stopped" 30
finish
