# processors: 2
# sync.quorum, with regions that are MPI jobs of their own: the others do not wait for one that stands
# still, and all end with the same model; one that is killed does not stop the rounds.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
sites=(east west north)
three_sites 120
quorum=(--set sync.strategy=sma --set sync.topology=hub --set sync.hub=east --set sync.quorum=0.6 --set 'sync.grace=50 ms' --set wan.outbox=32)

# signal_site SIGNAL SITE: to all its ranks.
signal_site() {
  local p
  for p in $(living); do
    tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q -- "--region $2 " && kill "-$1" "$p"
  done
}

# holds RUN CONDITION: of its summary, s, whose regions have a name each.
holds() {
  /usr/bin/python3 -c 'import json, sys
s = json.load(open(sys.argv[1] + "/summary.json"))
of = {r["name"]: r for r in s["regions"]}
others = [of[n] for n in ("east", "west")]
print("      missed", [r.get("missed", 0) for r in of.values()], "wan_wait_s", [r["wan_wait_s"] for r in of.values()])
sys.exit(not eval(sys.argv[2]))' "$@"
}

for site in "${sites[@]}"; do begin "$site" still "${quorum[@]}" --set 'limits.wan_patience=30 s'; done
trains still-north
signal_site STOP north
pause 4
signal_site CONT north
for site in "${sites[@]}"; do
  end "$site" "a region that stands still" 0
  check "$site: it is no loss" [ "$(grep -c 'epoch 1 begins' "$site.err")" = 0 ]
  check "$site: the same model" same "$(model_of "still-$site" params_sha256)" "$(model_of still-east params_sha256)"
done
alike still
check "rounds ended without it" holds still-east 'of["north"].get("missed", 0) > 3'
check "the others waited less than it stood still" holds still-east 'all(r["wan_wait_s"] < 3 for r in others)'

if [ "$full" = yes ]; then
  for site in "${sites[@]}"; do begin "$site" killed "${quorum[@]}"; done
  trains killed-north
  signal_site KILL north
  wait "${pids[north]}" 2>/dev/null
  for site in east west; do
    end "$site" "a region that is killed" 0
    check "$site: it is lost" grep -q 'epoch 1 begins with the regions .*, without north' "$site.err"
  done
  check "the same model" same "$(model_of killed-west params_sha256)" "$(model_of killed-east params_sha256)"
  alike killed
  check "they did not wait for the patience" holds killed-east 'all(r["wan_wait_s"] < 2.5 for r in others)'
fi
finish
