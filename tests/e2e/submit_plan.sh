# processors: 1
# slurm/submit --plan: the file of the plan is submitted, with its time limit and its ranks; --set
# changes the plan; mistakes give one sentence.  No Slurm is needed: sbatch is a script here that
# stores its arguments.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
submit=$GEOTRAIN_SOURCE/slurm/submit
job job.yaml
sed -i 's/{name: west, ranks: 2}/{name: west, ranks: 4}/' job.yaml

# A stand-in for the planner: its arguments go to told; the plan has 3 ranks in the west and 90
# minutes.
cat >planner <<SH
#!/usr/bin/env bash
[ "\$1" = plan ] || exec '$program' "\$@"
printf '%s\n' "\${@:2}" >told
[ ! -e refuse ] || { echo "geotrain: no candidate is feasible" >&2; exit 2; }
while [ \$# -gt 1 ] && [ "\$1" != --write ]; do shift; done
'$program' info job.yaml --set regions.1.ranks=3 --set slurm.time=90min --set plan.predicted.wall=60min --set plan.predicted.strategy=sma >"\$2"
printf '%s\n' "the table of the plan" "" "wrote \$2; it is for 5 ranks: mpirun -n 5" "  geotrain train \$2"
SH
mkdir bin
cat >bin/sbatch <<'SH'
#!/usr/bin/env bash
cp "${@: -1}" "$SENT" && echo 77
SH
chmod +x planner bin/sbatch
export SENT=$PWD/sent PATH=$PWD/bin:$PATH

submits() { # NAME WORDS...
  rm -f told sent
  "$submit" --geotrain "$PWD/planner" "${@:2}" >out 2>err </dev/null
  code=$?
}

submits "dry run" job.yaml --plan --margin 0.2 --set plan.deadline=2h --run-dir run --dry-run
ended "dry run" 0 '^#SBATCH --time=0-01:30:00$' '^#SBATCH --ntasks=5$' '^# job.yaml, written by'
check "dry run: the table is beside the script" same "$(grep -c 'the table of the plan' err) $(grep -c 'the table of the plan' out)" "1 0"
check "dry run: not the temporary file" same "$(grep -c 'plan.yaml\|geotrain train' err)" 0
check "dry run: what the plan is told" same "$(head -n 6 told | paste -sd' ')" "job.yaml --set plan.deadline=2h --margin 0.2 --write"
check "dry run: nothing is written" [ ! -e run ]
check "dry run: nothing is left" [ ! -e "$(tail -n 1 told)" ]

submits "submitted" job.yaml --plan --set regions.1.ranks=4 --run-dir run
ended "submitted" 0 'submitted as job 77'
check "submitted: with the plan's ranks" grep -qx '#SBATCH --ntasks=5' sent
check "submitted: with the plan's time" grep -qx '#SBATCH --time=0-01:30:00' sent
check "submitted: the plan is there" same "$(cat run/plan.txt)" "the table of the plan"
check "submitted: the run reads the plan" same "$("$GEOTRAIN" info run/submitted.yaml --flat | grep -E '^(regions.1.ranks|plan.predicted.wall|slurm.time)=' | sort | paste -sd' ')" \
  "$("$GEOTRAIN" info run/plan.yaml --flat | grep -E '^(regions.1.ranks|plan.predicted.wall|slurm.time)=' | sort | paste -sd' ')"
check "submitted: as said" same "$("$GEOTRAIN" info run/submitted.yaml --flat | sed -n 's/^regions.1.ranks=//p')" 3

# --again: as it was, or not at all.
submits "again, dry" --again run --dry-run
ended "again, dry" 0 '^#SBATCH --ntasks=5$'
check "again, dry: nothing is submitted" same "$(ls sent 2>/dev/null) $(wc -l <run/slurm-jobs)" " 1"
submits "again, changed" --again run --set train.until.epochs=9
ended "again, changed" 2 'continues with the run as it was submitted'
sed -i '1i 70 1' run/slurm-jobs # an earlier job of the run, of which squeue knows
printf '#!/bin/sh\ncase "$*" in *"-j 70 "*) echo 70 ;; esac\n' >bin/squeue
chmod +x bin/squeue
submits "again, while it runs" --again run
ended "again, while it runs" 2 'job 70 of .*/run has not ended'
check "again, while it runs: nothing is submitted" [ ! -e sent ]
printf '#!/bin/sh\necho "slurm_load_jobs error: Socket timed out on send/recv operation" >&2\necho >>asked\nexit 1\n' >bin/squeue
export GEOTRAIN_ASK_PAUSE=0
submits "again, Slurm is busy" --again run
ended "again, Slurm is busy" 5 'squeue was asked five times: .*timed out' 'whether job [0-9]+ of .*/run has ended is not known, so nothing is submitted'
check "again, Slurm is busy: asked five times" same "$(wc -l <asked)" 5
check "again, Slurm is busy: nothing is submitted" [ ! -e sent ]
printf '#!/bin/sh\necho "slurm_load_jobs error: Invalid job id specified" >&2\nexit 1\n' >bin/squeue
# What submitted.yaml changes of the run that has begun is checked before anything is submitted.
cp run/submitted.yaml submitted && cp run/submitted.yaml run/job.yaml
sed -i 's/seed: .*/seed: 99/' run/submitted.yaml
submits "again, another seed" --again run
ended "again, another seed" 2 'seed is .* there and 99 here; a resume may change'
check "again, another seed: nothing is submitted" [ ! -e sent ]
sed 's/keep: .*}/keep: 7}/; s/keep: [0-9]*$/keep: 7/' submitted >run/submitted.yaml
submits "again, another keep" --again run --dry-run
submits "again, another keep" --again run
ended "again, another keep" 0 'is resumed with --set checkpoint.keep=7' 'submitted as job 77'
cp submitted run/submitted.yaml
rm sent
submits "again" --again run
ended "again" 0 'submitted as job 77'

# A real plan: ranks that are auto, a time limit from the prediction.
sed 's/{name: west, ranks: 4}/{name: west, ranks: auto, devices: [{type: x, count: 2, power: 2000}]}/' job.yaml >auto.yaml
echo 'compute: {samples_per_s: 2000}' >>auto.yaml
"$submit" --geotrain "$GEOTRAIN" auto.yaml --plan --run-dir own >out 2>err
code=$?
ended "a real plan" 0 '^choice ' 'submitted as job 77'
check "a real plan: what the plan file asks for" grep -qx "#SBATCH --ntasks=$("$GEOTRAIN" info own/plan.yaml --flat | awk -F= '/^regions.[0-9]+.ranks=/ { n += $2 } END { print n }')" sent
check "a real plan: a time limit" grep -qE '^#SBATCH --time=0-00:[0-9:]+$' sent
check "a real plan: the run carries it" grep -qE '^plan.predicted.made=geotrain ' <("$GEOTRAIN" info own/submitted.yaml --flat)

submits "without" job.yaml --run-dir plain
ended "without --plan" 0 'submitted as job 77'
check "without --plan: no plan" [ ! -e told ]
check "without --plan: the job's ranks" grep -qx '#SBATCH --ntasks=6' sent
check "without --plan: no plan is left behind" [ ! -e plain/plan.yaml ]

touch refuse
submits "refused" job.yaml --plan --run-dir none
ended "refused" 2 'no candidate is feasible'
check "refused: nothing is written" [ ! -e none ]
rm refuse
submits "margin alone" job.yaml --margin 0.2
ended "margin alone" 2 'submit: --margin belongs to --plan'
submits "a sweep" job.yaml --plan --sweep sync.period=4,8
ended "a sweep" 2 'submit: --plan and --sweep exclude each other'
submits "again" --again run --plan
ended "again" 2 'submit: --again continues with the run as it was planned'
finish
