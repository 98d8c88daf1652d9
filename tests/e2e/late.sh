# labels: full
# processors: 2
# Regions that are MPI jobs of their own, with sync.min_regions: the run begins without one that is
# not there, which joins later; a region whose data do not fit is refused, and the others continue.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
sites=(east west north)
three_sites 200
meet_over "${over:-tcp}"
sed -i -e 's/on_loss: continue,/on_loss: continue, min_regions: 2,/' -e 's/ranks: 2/ranks: 2, samples: 400/' apart.yaml

# steps_of REGION RUN: by the summary.
steps_of() { /usr/bin/python3 -c 'import json, sys; print(*(r["steps"] for r in json.load(open(sys.argv[2] + "/summary.json"))["regions"] if r["name"] == sys.argv[1]))' "$@"; }

# all_join NAME: all end with the same model, north too.
all_join() {
  local site
  for site in east west north; do
    end "$site" "$1" 0
    check "$1, $site: north joins" grep -q 'epoch [2-9] begins with the regions east, west, north' "$site.err"
    check "$1, $site: the same model" same "$(model_of "$1-$site" params_sha256)" "$(model_of "$1-east" params_sha256)"
  done
  alike "$1"
}

# joins NAME WORDS...: north starts when the others have begun; all end with the same model.
joins() {
  local name=$1
  shift
  begin east "$name" "$@"
  begin west "$name" "$@"
  epoch east 1
  epoch west 1
  begin north "$name" "$@"
  all_join "$name"
  check "$name: it was not there" grep -q 'epoch 1 begins with the regions east, west, without north' west.err
  check "$name: the map of ranks" same "$(grep -c '^region east: ranks 0 (PS), 1 on\|^region north: it is not there yet' east.err)" 2
  check "$name: the first says so" grep -q 'the run begins without region north, which can join later' east.err
  check "$name: north has made its 200 steps" same "$(steps_of north "$name-north")" 200
}

# resumes NAME PAUSE WORDS...: as joins, but all get a signal so long after north has joined, and
# start again: all resume the run, also where it began without a region.
resumes() {
  local name=$1 after=$2 site
  shift 2
  for site in east west; do begin "$site" "$name" "$@"; done
  epoch east 1
  begin north "$name" "$@"
  for site in east west north; do epoch "$site" 2; done
  pause "$after"
  for site in east west north; do kill -USR1 "${pids[$site]}"; done
  for site in east west north; do end "$site" "$name" 75; done
  for site in east west north; do begin "$site" "$name" --resume=auto "$@"; done
  for site in east west north; do
    end "$site" "$name: again" 0
    check "$name, $site: it resumes" grep -q '"event":"resumed"' "$name-$site/$site.jsonl"
    check "$name, $site: from a round with north" sh -c '! grep -q "training continues from round 1$" "$1"' - "$site.err"
    check "$name, $site: the same model" same "$(model_of "$name-$site" params_sha256)" "$(model_of "$name-east" params_sha256)"
  done
}

# north comes for the first time when the others resume: --resume finds no run of it, and ends all.
first_at_resume() {
  local name=first site
  for site in east west; do begin "$site" "$name"; done
  for site in east west; do epoch "$site" 1; done
  pause 2
  for site in east west; do kill -USR1 "${pids[$site]}"; done
  for site in east west; do end "$site" "$name" 75; done
  for site in east west north; do begin "$site" "$name" --resume; done
  end north "$name: with --resume" 4 'holds no run to resume; --resume=auto begins one'
  for site in east west; do end "$site" "$name: with --resume" 4; done
  for site in east west; do begin "$site" "$name" --resume; done
  begin north "$name"
  all_join "$name"
}

# west comes and goes before the run begins: it begins without west, with north.
came_and_left() {
  local name=left site
  for site in east west; do begin "$site" "$name" --set limits.wan_patience=6s; done
  pause 3
  kill -USR1 "${pids[west]}"
  end west "$name" 75
  begin north "$name" --set limits.wan_patience=6s
  epoch east 1
  check "$name: it begins without west" grep -q 'the run begins without region west' east.err
  begin west "$name" --set limits.wan_patience=6s
  all_join "$name"
}

# probes: the second and third site start after the patience; all are measured.
probes() {
  local site
  for site in east west north; do
    $MPIRUN -n 2 "$GEOTRAIN" probe apart.yaml --region "$site" "${choices[@]}" >"$site.out" 2>"$site.err" </dev/null &
    pids[$site]=$!
    [ "$site" = north ] || pause 5
  done
  for site in east west north; do end "$site" probe 0 '^GO$'; done
}

# misfit NAME CODE WORDS...: north does not fit; the others end without it.
misfit() {
  local name=$1 code=$2 words=$3 site
  shift 3
  begin east "$name" "$@"
  begin west "$name" "$@"
  epoch east 1
  begin north "$name" "$@" ${north:+--set regions.2.data.path=$north}
  end north "$name" "$code" "$words"
  for site in east west; do
    end "$site" "$name" 0
    check "$name, $site: north does not join" sh -c "! grep -q 'epoch 2' $site.err"
  done
}

# The first region dies while the run begins, and starts again: the regions that begin are the same,
# although north has come.
chosen_once() {
  local name=once
  GEOTRAIN_FAILPOINT=hello.greeted begin east "$name"
  begin west "$name"
  wait "${pids[east]}" 2>/dev/null
  check "$name: it has chosen" grep -q 'the run begins without region north' west.err
  begin north "$name"
  pause 1
  begin east "$name"
  all_join "$name"
  check "$name: the same choice" grep -q 'the run begins without region north' east.err
}

# The first region alone is not enough.
not_enough() {
  begin east few
  for _ in $(seq 600); do
    grep -q 'the run waits for more regions' east.err && break
    pause 0.05
  done
  pause 4
  check "one region waits" sh -c '! grep -q begins east.err'
  check "it says so, once" same "$(grep -c 'the run waits for more regions' east.err)" 1
  kill -USR1 "${pids[east]}"
  end east few 75 'stopped by a signal before the other regions had started'
}

not_enough
chosen_once
misfit samples 3 'region north has 400 training samples, and regions.2.samples is 300; expected as many' --set regions.2.samples=300
# with another number in the first region the majority would not be that of the job
begin east wrong --set regions.0.samples=300
begin west wrong --set regions.0.samples=300
end east wrong 3 'region east has 400 training samples, and regions.0.samples is 300'
end west wrong 3
came_and_left
first_at_resume
resumes resumes 1.5 --set sync.strategy=sma
probes
for strategy in sma ssgd asgd-ga; do joins "$strategy" --set sync.strategy=$strategy; done
joins hub --set sync.strategy=sma --set sync.topology=hub

# Each region has a file of its own, with another mean and deviation.
seed=0
for site in "${sites[@]}"; do "$GEOTRAIN" data synth "$site.h5" --seed $((++seed)) --train 400 --test 100 >/dev/null; done
"$GEOTRAIN" data synth five.h5 --classes 5 --train 400 --test 100 >/dev/null
sed -i -e 's/^data: .*/data: {partition: {by: file}}/' -e 's/{name: \(east\|west\|north\), /&data: {path: \1.h5}, /' apart.yaml
joins files --set sync.strategy=sma
resumes again 1.5 --set sync.strategy=ssgd
resumes early 0.1 --set sync.strategy=ssgd # before a checkpoint of all
# the paths of a site can differ from those of the others
north=five.h5 misfit classes 3 'region north has samples of .*five.h5.*all regions need the same'
north=east.h5 misfit twin 3 'region north joins a run that has begun without it, and its training samples .east.h5. are those of another region; expected samples of its own'
sed -i 's/^data: .*/data: {path: east.h5}/' apart.yaml # each has a path of its own, without by: file
joins paths --set sync.strategy=sma
finish
