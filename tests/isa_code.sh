#!/usr/bin/env bash
# Checks the compiled vector code: an object for a lower instruction set uses no register of a
# higher one, and the blocks of the direct convolution, of attention and of panels keep no vector in memory.
#   isa_code.sh FOLDER    the folder of the object libraries: BUILD/src/CMakeFiles
set -euo pipefail
folder=$1
failed=0

complain() { echo "$1" && failed=1; }

# Lists functions that use a register matching the pattern.
uses() { objdump -d "$1" | grep -cE "$2" || true; }

# Lists innermost loops with at least six sums, and their stack accesses.  A loop that also compares
# or shifts, like that of the exponential, is not a block of sums.
blocks() {
  objdump -d --no-show-raw-insn "$1" | awk '
    /^[ ]*[0-9a-f]+:/ {
      at = $1; sub(/:/, "", at); line[++n] = $0; place[at] = n
      if ($2 ~ /^j/ && ($3 in place)) {
        sums = stack = 0
        split("", seen)
        for (i = place[$3]; i <= n; i++) {
          if ((i < n && line[i] ~ /\tj[a-z]+ /) || line[i] ~ /(min|max|cmp[a-z]*)ps|pcmp|psll/) {
            sums = 0
            break
          }
          register = line[i]
          sub(/.*,/, "", register)
          if (line[i] ~ /vfmadd|addps/ && !(register in seen)) { sums++; seen[register] = 1 }
          if (line[i] ~ /[xyz]mm/ && line[i] ~ /\(%rsp/ && line[i] !~ /broadcast|[^d]movss/) stack++
        }
        if (sums >= 6) { loops++; spilled += stack }
      }
      next
    }
    { split("", place); n = 0 }
    END { print loops + 0, spilled + 0 }'
}

for part in tensor nn; do
  for object in "$folder/gt_${part}_plain.dir/$part"/isa/*.o; do
    [ "$(uses "$object" '%[yz]mm')" -eq 0 ] || complain "$object: registers of AVX in plain code"
  done
  for object in "$folder/gt_${part}_avx2.dir/$part"/isa/*.o; do
    [ "$(uses "$object" '%zmm|%[xy]mm(1[6-9]|2[0-9]|3[01])|%k[0-7]')" -eq 0 ] || complain "$object: registers of AVX-512 in AVX2 code"
  done
done
for isa in plain avx2 avx512; do
  for file in attention direct_forward direct_input direct_weight panels; do
    object=$folder/gt_tensor_$isa.dir/tensor/isa/$file.c.o
    read -r loops spilled < <(blocks "$object")
    echo "$isa $file: $loops blocks, $spilled vector accesses to the stack in them"
    [ "$loops" -gt 0 ] || complain "$object: no block was found, so the check itself is broken"
    [ "$spilled" -eq 0 ] || complain "$object: vectors live in memory"
  done
done
exit $failed
