# processors: 2
# Regions that are MPI jobs of their own, with sync.on_loss continue: when one is killed, the others
# continue, and it returns; also the first one.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
sites=(east west north)
three_sites 200
meet_over "${over:-tcp}"

# kill_site SITE: all its ranks, and its launcher.
kill_site() {
  kill -KILL $(ranks_of "$1")
  wait "${pids[$1]}"
}

# lose SITE NAME WORDS...: it is killed, and the others end well.
lose() {
  local lost=$1 name=$2 site first=
  shift 2
  for site in "${sites[@]}"; do begin "$site" "$name" "$@"; done
  trains "$name-$lost"
  kill_site "$lost" 2>/dev/null
  for site in "${sites[@]}"; do
    [ "$site" = "$lost" ] && continue
    end "$site" "$name: $lost is lost" 0
    cp "$site.err" "$name-$site.err"
    check "$name, $site: it says so" grep -q "epoch 1 begins with the regions .*, without $lost" "$site.err"
    check "$name, $site: a final model" [ -e "$name-$site/final.h5" ]
    [ -n "$first" ] && check "$name: the same model" same "$(model_of "$name-$site" params_sha256)" "$(model_of "$name-$first" params_sha256)"
    first=$site
  done
  alike "$name"
}

# all_end NAME WHAT [PATTERN]: all sites end with the same model, and have said PATTERN.
all_end() {
  local site
  for site in "${sites[@]}"; do
    end "$site" "$1: $2" 0
    cp "$site.err" "$1-$site.err"
    [ $# -eq 2 ] || check "$1, $site: it says '$3'" grep -q "$3" "$site.err"
    check "$1, $site: the same model" same "$(model_of "$1-$site" params_sha256)" "$(model_of "$1-east" params_sha256)"
  done
  alike "$1"
}

# continues RUN SITE: after its return it does not repeat the ten steps that the others have of it: its
# second checkpoint, at least 20 steps later, is further.
continues() {
  awk -F '"step":' '/"event":"resumed"/ { resumed = 1 } /"event":"members"/ && resumed { from = $2 + 0; inside = 1 }
    /"event":"checkpoint"/ && inside && ++n == 2 { exit $2 + 0 < from + 25 } END { if (n < 2) exit 1 }' "$1-$2/$2.jsonl"
}

# back SITE NAME WORDS...: it is killed, starts again when the others have gone on, and all end with
# the same model.
back() {
  local lost=$1 name=$2 site other
  shift 2
  for site in "${sites[@]}"; do begin "$site" "$name" "$@"; done
  trains "$name-$lost"
  pause 0.5 # ten steps
  kill_site "$lost" 2>/dev/null
  for other in "${sites[@]}"; do [ "$other" != "$lost" ] && epoch "$other" 1; done
  begin "$lost" "$name" --resume "$@"
  all_end "$name" "$lost returns" 'epoch 2 begins with the regions east, west, north'
  check "$name: $lost continues from the group" continues "$name" "$lost"
  "$GEOTRAIN" report "$name-west" "$name-north" --out "$name.html" --json "$name.json" >/dev/null
  check "$name: its report shows the members" grep -q 'Members of the run' "$name.html"
  check "$name: it says that the run has ended" same "$(grep -c 'runs, or was killed' "$name.html")" 0
  check "$name: watch says so, too" grep -q '^done' <("$GEOTRAIN" watch --once "$name-$lost")
}

# go_on RUN: east and west make two rounds of checkpoints without north, and are killed.
go_on() {
  local site first
  for site in east west; do epoch "$site" 1; done
  first=$(newest_round "$1-east")
  for _ in $(seq 600); do
    [ "$(newest_round "$1-east")" -ge $((first + 2)) ] && break
    pause 0.05
  done
  for site in east west; do kill_site "$site" 2>/dev/null; done
}

# North stands still until the others have gone on and started again: it leaves them the run.
forgotten() {
  local name=forgotten site frozen
  for site in "${sites[@]}"; do begin "$site" "$name" "$@"; done
  trains "$name-north"
  frozen=$(ranks_of north)
  kill -STOP $frozen
  go_on "$name"
  for site in east west; do begin "$site" "$name" --resume "$@"; done
  kill -CONT $frozen
  end north "$name" 75 'the other regions continue without region north'
  for site in east west; do end "$site" "$name" 5 'for the other regions to take region (east|west) back'; done
  for site in "${sites[@]}"; do begin "$site" "$name" --resume "$@"; done
  all_end "$name" "all start again"
}

# All are killed in epoch 1, in which north is no member, and start again: north returns.
all_again() {
  local name=again site
  for site in "${sites[@]}"; do begin "$site" "$name" "$@"; done
  trains "$name-north"
  kill_site north 2>/dev/null
  go_on "$name"
  for site in "${sites[@]}"; do begin "$site" "$name" --resume "$@"; done
  all_end "$name" "all start again" 'epoch [2-9] begins with the regions east, west, north'
}

# unfit RUN: the newest checkpoint of west is one from which the run does not resume.
unfit() {
  [ "$(/usr/bin/python3 -c 'import h5py, sys; print(h5py.File(sys.argv[1])["ps/epoch/unfit"][0])' "$1/ckpt/$(newest_round "$1")/west.h5")" = 1 ]
}

# Two of three are killed: the third has no majority, and ends with 75; then all continue.
minority() {
  local name=alone site
  for site in "${sites[@]}"; do begin "$site" "$name" "$@"; done
  for site in "${sites[@]}"; do trains "$name-$site"; done
  for site in east north; do kill_site "$site" 2>/dev/null; done
  end west "$name" 75
  check "$name: it says why" grep -q 'no majority of the weight is left with region west' err
  check "$name: its record too" grep -q '"event":"stopped","code":75,"reason":"members"' "$name-west/west.jsonl"
  check "$name: the last round is marked" unfit "$name-west"
  for site in "${sites[@]}"; do begin "$site" "$name" --resume "$@"; done
  all_end "$name" "all start again"
}

# worker_of SITE: the process id of its worker.
worker_of() {
  local p
  for p in $(ranks_of "$1"); do
    grep -qszFx -e OMPI_COMM_WORLD_RANK=1 -e PMI_RANK=1 "/proc/$p/environ" && echo "$p"
  done
}

# A worker of each gets a signal before a round is whole: each ends with a checkpoint that is unfit,
# and the run continues from one of them.
all_signalled() {
  local name=signalled site
  for site in "${sites[@]}"; do begin "$site" "$name" --set checkpoint.every.steps=100000 "$@"; done
  for site in "${sites[@]}"; do wait_file "$name-$site/$site.jsonl" || return; done
  pause 0.5 # ten steps
  # at one moment: the others would soon have a round without the first one
  kill -USR1 $(for site in "${sites[@]}"; do worker_of "$site"; done)
  for site in "${sites[@]}"; do
    end "$site" "$name" 75 'stopped by a signal'
    [ "$site" = west ] && check "$name: its round is marked" unfit "$name-west"
  done
  for site in "${sites[@]}"; do begin "$site" "$name" --resume "$@"; done
  all_end "$name" "all start again" 'the run continues from the newest checkpoint of region'
  check "$name: it does not begin anew" grep -qh '"event":"resumed"' "$name"-*/*.jsonl
}

# The lead dies when it has greeted the others, and starts again: all have the id of one run.
greeted() {
  local name=greeted site
  GEOTRAIN_FAILPOINT=hello.greeted begin east "$name" "$@"
  for site in west north; do begin "$site" "$name" "$@"; done
  wait "${pids[east]}" 2>/dev/null
  begin east "$name" "$@"
  all_end "$name" "the lead starts again"
  for site in west north; do
    check "$name, $site: the id of the run" same "$(id_of "$name-$site/ckpt/$(newest_round "$name-$site")/$site.h5")" \
      "$(id_of "$name-east/ckpt/$(newest_round "$name-east")/east.h5")"
  done
}

# Two of three stand still: the third gets a signal, and does not wait until they have its messages.
silent() {
  local name=silent site p
  for site in "${sites[@]}"; do begin "$site" "$name" --set limits.wan_patience=100s --set limits.local=100s "$@"; done
  trains "$name-west"
  for p in $(living); do
    tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- "--region west " || kill -STOP "$p"
  done
  pause 2 # heartbeats are in flight
  kill -USR1 "${pids[west]}"
  end west "$name" 75 'stopped by a signal'
  end_ranks
  wait "${pids[east]}" "${pids[north]}" 2>/dev/null
}

# Without losses: the bits of a run whose regions cannot be lost.
for run in continue stop; do
  for site in "${sites[@]}"; do begin "$site" "calm-$run" --set sync.strategy=sma --set train.until.steps=60 --set "sync.on_loss=$run"; done
  for site in "${sites[@]}"; do end "$site" "calm, $run" 0; done
done
check "calm: the same bits" same "$(field calm-continue-west params_sha256)" "$(field calm-stop-west params_sha256)"

back north back --set sync.strategy=sma
back east back-lead --set sync.strategy=ssgd --set sync.topology=hub
if [ "$full" = yes ]; then
  lose north sma --set sync.strategy=sma --set sync.codec.name=int8
  check "sma: the record has the residual that was dropped" grep -q '"event":"members".*"dropped":' sma-west/west.jsonl
  lose east ssgd --set sync.strategy=ssgd
  all_again --set sync.strategy=sma
  forgotten --set sync.strategy=sma
fi
minority --set sync.strategy=asgd-ga
all_signalled --set sync.strategy=sma
greeted --set sync.strategy=sma --set train.until.steps=30
silent --set sync.strategy=sma
finish
