# processors: 2
# timeout: 900
# Regions that are MPI jobs of their own, with sync.on_loss continue: random ranks, or all ranks of one
# region, are killed or stopped for a time, or the links of a pair or of one region are cut, in one
# direction or both, one after the other; jobs that end start again as a scheduler would start them.
# Every job ends in a named state within the deadline; the run goes on to its end, and all regions that
# are there then have the same model.
# By hand, with the variables of lib.sh: members_random.sh [--runs N] [--seed S] [--coordinator]
# --coordinator: all ranks of the first region that is there are killed each time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
runs=1 seed=1 coordinator=no
[ $full = no ] || runs=3
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=$2 ;;
    --seed) seed=$2 ;;
    --coordinator) coordinator=yes && shift && continue ;;
    *) echo "usage: members_random.sh [--runs N] [--seed S] [--coordinator]" >&2 && exit 2 ;;
  esac
  shift 2
done
deadline=240 # seconds for a run; without events it takes 20 s
sites=(east west north)
three_sites 400
sed "/name: west/s/, address: '[^']*'//" apart.yaml >relayed.yaml # east relays between the two others
read -r port second < <(sed -n "s/.*address: '127.0.0.1:\([0-9]*\)'.*/\1/p" apart.yaml | tr '\n' ' ')
declare -A proxies
read -r proxies[east] proxies[west] proxies[north] < <(free_ports 3)
/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/partition.py" held "east=${proxies[east]}:$port" "west=${proxies[west]}:$second" "north=${proxies[north]}:0" 2>proxy.err &
proxy=$!
stop_proxy() {
  kill "$proxy"
  at_exit
}
trap stop_proxy EXIT

# The same numbers for the same seed; $(...) would have its own.
RANDOM=$seed
below() { drawn=$(((RANDOM << 15 | RANDOM) % $1)); }
one_of() { below $# && shift "$drawn" && drawn=$1; }

# first_there: the first site that trains.
first_there() {
  local site
  for site in "${sites[@]}"; do
    grep -q '^region east: ranks' "$site.err" && [ -n "$(ranks_of "$site")" ] && echo "$site" && return
  done
}

# steady RECORD...: a region that was not lost repeats no step.
steady() {
  /usr/bin/python3 -c '
import json, sys
for name in sys.argv[1:]:
    last = 0
    for line in map(json.loads, open(name)):
        if last and line["event"] in ("start", "resumed"): break
        assert line.get("step", last) >= last, f"{name}: after step {last}: {line}"
        last = line.get("step", last)' "$@"
}

# cut: holds what is sent between the victim and others, for a time.
cut() {
  local others=() other
  for other in "${sites[@]}"; do [ "$other" = "$victim" ] || others+=("$other"); done
  [ "$whole" = yes ] || { below 2 && others=("${others[$drawn]}"); }
  one_of both to from
  said="$said-$drawn-${others[*]}"
  for other in "${others[@]}"; do
    [ "$drawn" = from ] || echo "$other $victim"
    [ "$drawn" = to ] || echo "$victim $other"
  done >held.new
  mv held.new held
  pause "$for"
  : >held
}

# strike: kills or stops a rank, or all ranks, of a random site that has a checkpoint, or cuts its links.
strike() {
  local victims
  one_of "${sites[@]}" && victim=$drawn
  one_of KILL KILL KILL STOP CUT CUT && signal=$drawn
  one_of yes no && whole=$drawn
  one_of 1 2 9 && for=$drawn
  [ $coordinator = no ] || { victim=$(first_there) signal=KILL whole=yes && [ -n "$victim" ] || return; }
  read -r -d '' -a victims < <(ranks_of "$victim")
  [ ${#victims[@]} -gt 0 ] && [ -n "$(newest_round "$name-$victim")" ] || return
  events=$((events + 1))
  said="$said $signal-$([ $whole = yes ] && echo all || echo one)-$victim"
  [ "$signal" = CUT ] && cut && return
  [ "$whole" = yes ] || { below ${#victims[@]} && victims=("${victims[$drawn]}"); }
  kill "-$signal" "${victims[@]}" 2>/dev/null
  [ "$signal" = STOP ] || return
  pause "$for"
  kill -CONT "${victims[@]}" 2>/dev/null
}

# join SITE WORDS...: through its proxy.
join() {
  local site=$1
  shift
  begin "$site" "$name" "$@" "${words[@]}" --set "wan.proxy=http://127.0.0.1:${proxies[$site]}"
}

# look_after SITE: starts it again when it has ended, as a scheduler would.
look_after() {
  local site=$1 code
  kill -0 "${pids[$site]}" 2>/dev/null && return
  [ -n "${over[$site]}" ] && return
  reap "${pids[$site]}"
  cp "$site.err" "$name-$site.$starts.err"
  starts=$((starts + 1))
  case $code in
    0) over[$site]=yes ;;
    4) grep -q 'the run is at its end' "$site.err" && over[$site]=late || over[$site]="4: $(tail -n 3 "$site.err")" ;;
    5 | 75 | 137 | 143) join "$site" --resume ;;
    *) over[$site]="$code: $(tail -n 3 "$site.err")" ;;
  esac
  ! grep -qE 'Segmentation|Assertion|AddressSanitizer|broken invariant' "$site.err" || over[$site]="$(grep -E 'Segmentation|Assertion|AddressSanitizer|broken invariant' "$site.err" | head -n 2)"
}

# dismiss: regions that start when another one has ended wait for it; a signal ends them.
dismiss() {
  local site
  [[ "${over[*]}" == *yes* ]] || return
  for site in "${sites[@]}"; do
    [ -z "${over[$site]}" ] && ! grep -q '^region east: ranks' "$site.err" && kill -USR1 "${pids[$site]}" && over[$site]=late
  done
}

for run in $(seq "$runs"); do
  one_of ssgd sma asgd-ga && strategy=$drawn
  one_of mesh hub && topology=$drawn
  one_of apart apart relayed && apart=$drawn.yaml
  name=run-$run events=0 starts=0 said=
  words=(--set "sync.strategy=$strategy" --set "sync.topology=$topology")
  declare -A over=([east]= [west]= [north]=)
  rm -rf "$name"-*
  for site in "${sites[@]}"; do join "$site"; done
  until=$((SECONDS + deadline)) next=$((SECONDS + 4))
  while [ "$SECONDS" -lt "$until" ]; do
    for site in "${sites[@]}"; do look_after "$site"; done
    [ -n "${over[east]}" ] && [ -n "${over[west]}" ] && [ -n "${over[north]}" ] && break
    pause 0.2
    dismiss
    [ "$SECONDS" -ge "$next" ] && [ "$events" -lt 5 ] || continue
    strike
    below 6 && next=$((SECONDS + 2 + drawn))
  done
  what="run $run of seed $seed, ${apart%.yaml}, $strategy over $topology:$said"
  first=
  for site in "${sites[@]}"; do
    case ${over[$site]} in
      yes)
        check "$what: $site has the model of all" same "$(model_of "$name-$site" params_sha256)" "$(model_of "$name-${first:-$site}" params_sha256)"
        first=$site
        ;;
      late) ;;
      *) fail "$what: $site" "${over[$site]:-it hangs: $(tail -n 2 "$site.err" | cut -c 1-300)}" ;;
    esac
  done
  check "$what: some region ends well" [ -n "$first" ]
  check "$what: no region repeats a step, except when it returns" steady "$name"-*/*.jsonl
  alike "$what"
  end_ranks
done
finish
