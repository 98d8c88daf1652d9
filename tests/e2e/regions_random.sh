# processors: 2
# timeout: 900
# Regions that are MPI jobs of their own, of which random ranks, or all ranks of one, are killed,
# stopped for a time, or asked to stop, at random times: every job ends in a named state within the
# deadline, and after a resume the run has the bits of an undisturbed one.
# By hand, with the variables of lib.sh: regions_random.sh [--events N] [--seed S]
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
events=2 seed=1
[ $full = no ] || events=12
while [ $# -gt 0 ]; do
  case $1 in
    --events) events=$2 ;;
    --seed) seed=$2 ;;
    *) echo "usage: regions_random.sh [--events N] [--seed S]" >&2 && exit 2 ;;
  esac
  shift 2
done
deadline=60 # seconds for all jobs to end after an event; the limits below are 5 s
sites=(east west north)

data_train=1200
job job.yaml
read -r port second < <(free_ports 2)
certify "${sites[@]}"
sed -i -e 's/shares: \[1, 1\]/shares: [1, 1, 1]/' -e '/name: west, ranks: 2/a\  - {name: north, ranks: 2}' -e 's/emulate: true/emulate: false/' -e '/links:/d' \
  -e 's/steps: 60/steps: 300/' -e 's/steps: 10/steps: 20/' -e 's/wan_patience: 30 s, local: 30 s/wan_patience: 5 s, local: 5 s/' job.yaml
sed -e "s/name: east, ranks: 2/name: east, ranks: 2, address: '127.0.0.1:$port'/" -e "s/name: west, ranks: 2/name: west, ranks: 2, address: '127.0.0.1:$second'/" \
  -e "s|^wan:|wan:\n  transport: tcp\n  $tls|" job.yaml >apart.yaml

# The same numbers for the same seed; $(...) would have its own.
RANDOM=$seed
below() { drawn=$(((RANDOM << 15 | RANDOM) % $1)); }
one_of() { below $# && shift "$drawn" && drawn=$1; }

# targets_of SITE: process ids of its ranks; before the ranks exist, that of its launcher.
targets_of() {
  local found
  found=$(ranks_of "$1")
  echo ${found:-${pids[$1]}}
}

begin_all() {
  local site
  for site in "${sites[@]}"; do begin "$site" run "$@"; done
}

running() { kill -0 "${pids[$1]}" 2>/dev/null; }

# look_after: every 15 s.  mpirun sometimes does not see that all of its ranks were killed while they
# started; it is ended.  A job that waits for others to start, when one has ended, is told to stop.
look_after() {
  local site gone=no
  for site in "${sites[@]}"; do
    if running "$site" && [ "$(targets_of "$site")" = "${pids[$site]}" ]; then
      echo "      the launcher of $site has no ranks: it is killed"
      kill -KILL "${pids[$site]}"
    fi
    running "$site" || gone=yes
  done
  if [ "$gone" = no ] || grep -q '^region east: ranks' east.err; then return; fi
  for site in "${sites[@]}"; do running "$site" && kill -USR1 "${pids[$site]}"; done
}

# await: waits until all jobs have ended, at most the deadline; their codes are in $codes.
declare -A codes
await() {
  local site left=$((deadline * 20)) living=3
  while [ "$living" -gt 0 ] && [ "$left" -gt 0 ]; do
    living=0
    for site in "${sites[@]}"; do running "$site" && living=$((living + 1)); done
    pause 0.05
    left=$((left - 1))
    [ "$living" -gt 0 ] && [ $((left % 300)) -eq 0 ] && look_after
  done
  for site in "${sites[@]}"; do
    codes[$site]=hangs
    if running "$site"; then
      kill -KILL "${pids[$site]}"
      end_ranks
      continue
    fi
    reap "${pids[$site]}"
    codes[$site]=$code
  done
}

# named NAME SITE CODE...: the site's job ended with one of these codes, and says why.
named() {
  local name=$1 site=$2 code=${codes[$2]} word=.
  shift 2
  case $code in
    5) word='^geotrain: .*(waited [0-9]+ s|has ended with code|was lost|no sign|connection)' ;;
    75) word='stopped by a signal' ;;
  esac
  if [[ " $* " != *" $code "* ]]; then
    fail "$name: $site ends with one of $*" "it ended with $code: $(grep geotrain: "$site.err" | tail -n 3 | cut -c 1-250)"
  elif [ "$word" != . ] && ! grep -qE "$word" "$site.err"; then
    fail "$name: $site says why it ended with $code" "$(tail -n 3 "$site.err" | cut -c 1-250)"
  elif grep -qE 'Segmentation|Assertion|AddressSanitizer|broken invariant' "$site.err"; then
    fail "$name: $site" "$(grep -E 'Segmentation|Assertion|AddressSanitizer|broken invariant' "$site.err" | head -n 2)"
  fi
}

# strike SITE: sends the signal to one rank of the site, or to all; a stop ends after $for seconds.
strike() {
  local victims
  read -ra victims < <(targets_of "$1")
  [ "$whole" = yes ] || { below ${#victims[@]} && victims=("${victims[$drawn]}"); }
  kill "-$signal" "${victims[@]}" 2>/dev/null
  [ "$signal" = STOP ] || return
  pause "$for"
  kill -CONT "${victims[@]}" 2>/dev/null
}

completes "undisturbed" 6 job.yaml --run-dir whole
sha=$(field whole params_sha256)

for event in $(seq "$events"); do
  one_of KILL KILL STOP STOP TERM USR1 && signal=$drawn
  one_of yes no && whole=$drawn
  one_of "${sites[@]}" && victim=$drawn
  one_of 1 2 12 && for=$drawn
  below 2000 && delay=$drawn
  one_of train train train start && when=$drawn
  name="event $event of seed $seed: $signal to $([ $whole = yes ] && echo all ranks || echo a rank) of $victim, $when + $delay ms$([ $signal = STOP ] && echo ", for $for s")"
  rm -rf run-*
  begin_all
  [ "$when" = start ] || trains "run-$victim"
  pause "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
  failed=$failures
  strike "$victim"
  await
  case $signal in
    KILL) mine=(137 0) others=(5 0 75) ;;
    STOP) mine=(0 5 137) others=(0 5) ;;
    TERM) mine=(75 0 143 5) others=(75 0 5) ;;
    USR1) mine=(75 0 138 5) others=(75 0 5) ;;
  esac
  for site in "${sites[@]}"; do
    if [ "$site" = "$victim" ]; then named "$name" "$site" "${mine[@]}"; else named "$name" "$site" "${others[@]}"; fi
  done
  none_living || { fail "$name: no process left" "$(living | tr '\n' ' ')" && end_ranks; }
  mkdir -p "kept-$event" && cp -- *.err *.out "kept-$event"
  ended_with="${codes[east]} ${codes[west]} ${codes[north]}"
  begin_all --resume=auto
  await
  for site in "${sites[@]}"; do named "$name, resumed" "$site" 0; done
  check "$name ($ended_with): the bits of an undisturbed run" same "$(field run-west params_sha256)" "$sha"
  [ "$failures" -gt "$failed" ] || rm -r "kept-$event"
done
finish
