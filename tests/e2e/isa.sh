# GEOTRAIN_ISA: a lower instruction set applies to every rank and to the libraries, is shown and
# recorded; a higher one or a wrong name is refused.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE GEOTRAIN_ISA

"$GEOTRAIN" data synth few.h5 --train 64 --test 8 >/dev/null
cat >job.yaml <<'YAML'
name: isa
model: {name: lenet5}
data: {path: few.h5}
train: {until: {steps: 2}, batch: 8, optimizer: {name: sgd, lr: 0.01}, eval_every: {epochs: 0}}
regions: [{name: east, ranks: 2}, {name: west, ranks: 2}]
sync: {local: sync, strategy: ssgd}
wan: {emulate: true, links: [{between: [east, west], bandwidth: 1 Gbit/s, latency: 1 ms}]}
YAML
info() { "$GEOTRAIN" info 2>&1 | sed -n "s/^$1: *//p"; }
sets() { jq_py "$1" '[r["isa"] for r in s["regions"]]'; }
jq_py() { python3 -c 'import json, sys; s = json.load(open(sys.argv[1] + "/summary.json")); print(*eval(sys.argv[2]))' "$1" "$2"; }

best=$(info "instruction set")
check "the best is one of the three" grep -qx "plain\|avx2\|avx512" <<<"$best"
completes "as it comes" 4 job.yaml --run-dir best
[ "$best" = plain ] || check "OpenBLAS uses it" grep -vqx Prescott <<<"$(info "openblas core")"
check "every region's set is recorded" same "$(sets best)" "$best $best"

GEOTRAIN_ISA=avx51 "$GEOTRAIN" info >words 2>&1
check "an unknown set: exit 2" same $? 2
check "an unknown set: what is needed" same "$(cat words)" 'geotrain: GEOTRAIN_ISA is "avx51"; expected one of plain, avx2, avx512; did you mean avx512?'

if [ "$best" = plain ]; then
  GEOTRAIN_ISA=avx2 "$GEOTRAIN" info >words 2>&1
  check "more than the CPU has: exit 2" same $? 2
  check "more than the CPU has: said" same "$(cat words)" 'geotrain: GEOTRAIN_ISA is avx2, but this CPU supports at most plain; choose that or a lower one'
  finish
fi

export GEOTRAIN_ISA=plain
check "plain is shown" same "$(info "instruction set")" "plain (GEOTRAIN_ISA; this CPU has more)"
check "plain holds OpenBLAS" same "$(info "openblas core")" Prescott
completes "plain" 4 job.yaml --run-dir plain
check "plain is recorded" same "$(sets plain)" "plain plain"
check "plain holds OpenBLAS in a run" same "$(field plain blas_core)" Prescott
unset GEOTRAIN_ISA

# A launcher that passes the variable to rank 0 only.
cat >lonely <<'SH'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && export GEOTRAIN_ISA=plain
exec "$@"
SH
chmod +x lonely
$MPIRUN -n 4 ./lonely "$GEOTRAIN" train job.yaml --run-dir lonely-run >words 2>&1
check "rank 0's wish reaches every rank" same "$(sets lonely-run)" "plain plain"
check "what cannot be lowered any more is said" grep -q "did not reach this rank's environment: OpenBLAS keeps its core" words

# Ranks with different sets: the run continues, and warns once.
sed -i 's/= 0 \] && export GEOTRAIN_ISA=plain/= 3 ] \&\& export GEOTRAIN_ISA=plain/' lonely
$MPIRUN -n 4 ./lonely "$GEOTRAIN" train job.yaml --run-dir mixed >words 2>&1
check "a region of two sets is recorded" same "$(sets mixed)" "$best plain+$best"
check "the difference is noted once" same "$(grep -c "instruction sets differ (east $best, west plain+$best)" words)" 1
finish
