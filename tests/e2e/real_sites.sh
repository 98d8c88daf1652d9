# processors: 2
# Every command of docs/real-sites.md, in its order, each in the folder of the site after "# at": on one
# host, with ports of this host for the addresses, and with scripts that stand for Slurm.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
page=$GEOTRAIN_SOURCE/docs/real-sites.md
export HERE=$PWD PROGRAM=$program SOURCE=$GEOTRAIN_SOURCE
read -r eu us < <(free_ports 2)

# ---- what stands for Slurm: a job is its script, run here; its number is that of its folder ------------------------------------------------
mkdir bin
cat >bin/sbatch <<'SH'
#!/usr/bin/env bash
script=${*: -1}
id=$(($(ls -d "$HERE"/slurm-* 2>/dev/null | wc -l) + 1))
mkdir "$HERE/slurm-$id" && cp "$script" "$HERE/slurm-$id/script"
run_job "$id" && echo "$id"
SH
cat >bin/run_job <<'SH'
#!/usr/bin/env bash
script=$HERE/slurm-$1/script
cd "$(sed -n 's/^#SBATCH --chdir=//p' "$script")" || exit
export SLURM_JOB_ID=$1 SLURM_NTASKS SLURM_STEP_ID=
SLURM_NTASKS=$(sed -n 's/^#SBATCH --ntasks=//p' "$script")
unset SLURM_STEP_ID
setsid bash "$script" >>"$(sed -n 's/^#SBATCH --output=//p' "$script")" 2>&1 </dev/null &
echo $! >"$HERE/slurm-$1/pid"
SH
cat >bin/srun <<'SH'
#!/usr/bin/env bash
[ "$1" != --mpi=list ] || { echo pmix && exit; }
while [[ $1 == -* ]]; do [[ $1 != --ntasks=* ]] || n=${1#*=}; shift; done
unset SLURM_JOB_ID SLURM_NTASKS
exec mpirun -n "$n" "$@"
SH
cat >bin/scontrol <<'SH'
#!/usr/bin/env bash
case $* in
  *'show job'*) echo "JobId=${*: -1} JobState=RUNNING Requeue=1" ;;
  requeue*) (sleep 1 && run_job "$2") >/dev/null 2>&1 & ;;
esac
SH
printf '#!/bin/sh\nkill -USR1 "$(cat "$HERE/slurm-$3/pid")"\n' >bin/scancel
printf '#!/bin/sh\nprintf "cpu\\nbatch\\n"\n' >bin/sinfo
printf '#!/bin/sh\n:\n' >bin/squeue
printf '#!/bin/sh\nexec "$PROGRAM" "$@"\n' >bin/geotrain
chmod +x bin/*
call_mpirun bin
PATH=$HERE/bin:$PATH

# ---- the sites ---------------------------------------------------------------------------------------------------------------------------------
awk '/^```yaml/ { on = 1; next } /^```/ { on = 0 } on' "$page" | sed -e "s/eu.example.org:7443\", listen: \"0.0.0.0:7443/127.0.0.1:$eu/" \
  -e "s/us.example.org:7443\", listen: \"0.0.0.0:7443/127.0.0.1:$us/" -e 's/epochs: 2}/epochs: 100000}, choices: rule/' -e 's/minutes: 5/steps: 20/' >page.yaml
echo 'limits: {wan_patience: 5 s, local: 5 s}' >>page.yaml
sites=(eu us laptop)
for site in "${sites[@]}"; do
  mkdir -p "$site/slurm" && cp page.yaml "$site/job.yaml"
  printf '#!/bin/sh\nexec "$SOURCE/slurm/submit" --geotrain "$PROGRAM" "$@"\n' >"$site/slurm/submit"
  chmod +x "$site/slurm/submit"
done
"$GEOTRAIN" data synth whole.h5 --train 600 --test 60 >/dev/null && "$GEOTRAIN" data split whole.h5 --regions 3 >/dev/null || fail "data"
for i in 1 2 3; do cp whole-$i.h5 "${sites[i - 1]}/data.h5"; done

# behind SITE COMMAND: the same in the background; its process is in ${pids[SITE]}.
behind() {
  (cd "$1" && eval "exec $2") >"$1.out" 2>"$1.err" </dev/null &
  pids[$1]=$!
}

# rounds_beyond N: waits until all sites have a round after it.
rounds_beyond() {
  local site i
  for site in "${sites[@]}"; do
    for i in $(seq 1200); do
      [ "$(newest_round "$site/runs/real" | grep . || echo 0)" -gt "$1" ] && continue 2
      pause 0.05
    done
    fail "a round after $1 at $site" "$(tail -n 3 "$site".err "$site/runs/real/slurm.log" 2>/dev/null)"
    return 1
  done
}

laptop_train= # the command, which is given again
mapfile -t commands < <(sed -n 's/^    \(.*[^ ]\) *$/\1/p' "$page")
check "the page has commands" [ "${#commands[@]}" -ge 20 ]
for line in "${commands[@]}"; do
  command=$(sed 's/ *#.*//' <<<"$line") site=$(sed -n 's/.*# at \([a-z]*\).*/\1/p' <<<"$line")
  case $command in
    'geotrain cert '* | 'cp '*)
      at "$site" "$command"
      ended "$command" 0
      carry
      ;;
    'geotrain info '*)
      at "$site" "$command"
      ended "$command" 0 '^check: ok$'
      ;;
    'mpirun '*' probe '*)
      behind "$site" "$command"
      [ "$site" = laptop ] || continue
      for site in "${sites[@]}"; do end "$site" "geotrain probe" 0 '^GO$'; done
      ;;
    'slurm/submit job.yaml '*)
      at "$site" "$command"
      ended "$command" 0 'submitted as job'
      ;;
    'mpirun -n 2 geotrain train '*)
      laptop_train=$command
      behind laptop "$command"
      rounds_beyond 2 && ok "$command: all sites train"
      ;;
    'geotrain watch '*)
      at "$site" "$command"
      ended "$command" 0 'epoch '
      ;;
    'geotrain report '*)
      at "$site" "$command"
      ended "$command" 0 'wrote report.html'
      ;;
    'scancel '*)
      before=$(newest_round eu/runs/real)
      at eu "${command/JOBID/$(awk 'END { print $1 }' eu/runs/real/slurm-jobs)}"
      ended "$command" 0
      end laptop "the laptop, after a signal at eu" 75 'stopped by a signal'
      behind laptop "$laptop_train"
      rounds_beyond $((before + 3)) && ok "$command: all are stopped, and continue"
      # the laptop is lost
      for p in $(living); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- '--region laptop' && kill -KILL "$p"; done
      for site in eu us; do
        for _ in $(seq 2400); do
          grep -q 'was lost (code 5)' "$site/runs/real/slurm.log" && continue 2
          pause 0.05
        done
        fail "the laptop is lost: $site ends" "$(tail -n 3 $site/runs/real/slurm.log)"
      done
      { wait "${pids[laptop]}"; } 2>/dev/null
      before=$(newest_round eu/runs/real)
      ;;
    'slurm/submit --again '*)
      at "$site" "$command"
      ended "$command" 0 'submitted as job'
      [ "$site" = us ] || continue
      behind laptop "$laptop_train"
      rounds_beyond $((before + 1)) && ok "$command: the run continues"
      sed -i 's/Requeue=1/Requeue=0/' bin/scontrol
      kill -USR1 "${pids[laptop]}"
      end laptop "the end" 75
      ;;
    'mpirun --host '*)
      cp -r eu one
      rm -rf one/runs
      sed -i 's/epochs: 100000/epochs: 2/' one/job.yaml
      at one "$(sed 's/--host [^ ]*/--host localhost:8/; s/geotrain train/geotrain train --set wan.transport=mpi/' <<<"$command")"
      ended "$command" 0 '^region laptop'
      check "$command: its results" [ -s one/runs/real/summary.json -a -s one/runs/real/final.h5 ]
      ;;
    *) fail "$line" "this test does not know the command" ;;
  esac
done
gone "all commands"
finish
