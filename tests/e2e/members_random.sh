# processors: 2
# timeout: 900
# Regions that are MPI jobs of their own, with sync.on_loss continue: random ranks, or all ranks of one
# region, are killed or stopped for a time, one after the other, and start again as a scheduler would
# start them.  Every job ends in a named state within the deadline; the run goes on to its end, and
# all regions that are there then have the same model.
# By hand, with the variables of lib.sh: members_random.sh [--runs N] [--seed S]
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
runs=1 seed=1
[ $full = no ] || runs=3
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=$2 ;;
    --seed) seed=$2 ;;
    *) echo "usage: members_random.sh [--runs N] [--seed S]" >&2 && exit 2 ;;
  esac
  shift 2
done
deadline=240 # seconds for a run; without events it takes 20 s
sites=(east west north)
three_sites 400

# The same numbers for the same seed; $(...) would have its own.
RANDOM=$seed
below() { drawn=$(((RANDOM << 15 | RANDOM) % $1)); }
one_of() { below $# && shift "$drawn" && drawn=$1; }

ranks_of() {
  local p
  for p in $(living); do
    tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q -- "--region $1 " && echo "$p"
  done
}

# strike: kills or stops a rank, or all ranks, of a random site that has a checkpoint.
strike() {
  local victims
  one_of "${sites[@]}" && victim=$drawn
  one_of KILL KILL KILL STOP && signal=$drawn
  one_of yes no && whole=$drawn
  one_of 1 2 9 && for=$drawn
  read -r -d '' -a victims < <(ranks_of "$victim")
  [ ${#victims[@]} -gt 0 ] && [ -n "$(newest_round "$name-$victim")" ] || return
  events=$((events + 1))
  said="$said $signal-$([ $whole = yes ] && echo all || echo one)-$victim"
  [ "$whole" = yes ] || { below ${#victims[@]} && victims=("${victims[$drawn]}"); }
  kill "-$signal" "${victims[@]}" 2>/dev/null
  [ "$signal" = STOP ] || return
  pause "$for"
  kill -CONT "${victims[@]}" 2>/dev/null
}

# look_after SITE WORDS...: starts it again when it has ended, as a scheduler would.
look_after() {
  local site=$1 code
  shift
  kill -0 "${pids[$site]}" 2>/dev/null && return
  [ -n "${over[$site]}" ] && return
  reap "${pids[$site]}"
  cp "$site.err" "$name-$site.$starts.err"
  starts=$((starts + 1))
  case $code in
    0) over[$site]=yes ;;
    4) grep -q 'the run is at its end' "$site.err" && over[$site]=late || over[$site]="4: $(tail -n 3 "$site.err")" ;;
    5 | 75 | 137 | 143) begin "$site" "$name" --resume "$@" ;;
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
  name=run-$run events=0 starts=0 said=
  words=(--set "sync.strategy=$strategy" --set "sync.topology=$topology")
  declare -A over=([east]= [west]= [north]=)
  rm -rf "$name"-*
  for site in "${sites[@]}"; do begin "$site" "$name" "${words[@]}"; done
  until=$((SECONDS + deadline)) next=$((SECONDS + 4))
  while [ "$SECONDS" -lt "$until" ]; do
    for site in "${sites[@]}"; do look_after "$site" "${words[@]}"; done
    [ -n "${over[east]}" ] && [ -n "${over[west]}" ] && [ -n "${over[north]}" ] && break
    pause 0.2
    dismiss
    [ "$SECONDS" -ge "$next" ] && [ "$events" -lt 5 ] || continue
    strike
    below 6 && next=$((SECONDS + 2 + drawn))
  done
  what="run $run of seed $seed, $strategy over $topology:$said"
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
  alike "$what"
  end_ranks
done
finish
