#!/usr/bin/env bash
# Checks that a part includes only its own header, its own modules and parts in lower layers, and
# MPI only if the table links it.
#   layers.sh            first tests itself on a small tree, then checks this repository
#   layers.sh --tree DIR checks DIR only
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

check_tree() { # directory: prints a line for each violation; fails if there is one
  local tree=$1
  (cd "$tree" && awk '
    FILENAME == "src/CMakeLists.txt" {
      if (match($0, /^geotrain_part\([a-z0-9_]+ +[0-9]+/)) {
        split(substr($0, RSTART + 14, RLENGTH - 14), word, / +/)
        layer[word[1]] = word[2]; mpi[word[1]] = ($0 ~ /MPI::MPI_C/); parts++
      }
      next
    }
    function violation(text) { print FILENAME ":" FNR ": " text; bad++ }
    FNR == 1 {
      files++
      part = FILENAME
      if (part ~ /^include\//) { sub(/^include\/geotrain\//, "", part); sub(/[._\/].*/, "", part) } else { sub(/^src\//, "", part); sub(/\/.*/, "", part) }
      if (!(part in layer)) violation("part \"" part "\" is not in the table of src/CMakeLists.txt")
    }
    /^[ \t]*#[ \t]*include[ \t]/ && part in layer {
      name = $0; sub(/^[^<"]*[<"]/, "", name); sub(/[>"].*/, "", name)
      if (name ~ /^geotrain\//) {
        to = name; sub(/^geotrain\//, "", to); sub(/[._\/].*/, "", to)
        if (!(to in layer)) violation("includes " name ", which is no part in the table")
        else if (to != part && layer[to] >= layer[part]) violation(part " (layer " layer[part] ") includes " to " (layer " layer[to] ")")
      } else if ($0 ~ /"/ && name ~ /\//) violation("includes \"" name "\": modules of other parts are private")
      else if (name == "mpi.h" && !mpi[part]) violation(part " includes mpi.h, and the table does not link it with MPI")
    }
    END {
      if (!parts || !files) { print "no parts or no files were found: the check itself is broken"; exit 1 }
      if (bad) exit 1
      print parts " parts, " files " files: every include goes down"
    }' src/CMakeLists.txt $(find src include/geotrain -name '*.[ch]' | LC_ALL=C sort))
}

# Self-test: the check must detect each kind of violation.
prove() {
  local tree line
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' RETURN
  mkdir -p "$tree"/{src/base,src/wan,include/geotrain}
  printf 'geotrain_part(base    0    Threads::Threads)\ngeotrain_part(wan     4    MPI::MPI_C)\ngeotrain_part(ckpt    4)\n' >"$tree/src/CMakeLists.txt"
  printf '#include <stdio.h>\n' >"$tree/include/geotrain/base.h"
  printf '#include "geotrain/wan.h"\n#include "geotrain/base.h"\n#include "module.h"\n#include <mpi.h>\n' >"$tree/src/wan/a.c"
  check_tree "$tree" >/dev/null || { echo "layers.sh refuses a tree that is right"; return 1; }
  for line in '#include "geotrain/wan.h"' ' #  include "geotrain/wan.h"' '#include <geotrain/ckpt.h>' '#include "geotrain/nowhere.h"' '#include "geotrain/wan/types.h"' '#include "../wan/module.h"' '#include <mpi.h>'; do
    echo "$line" >"$tree/src/base/b.c"
    if check_tree "$tree" >/dev/null; then echo "layers.sh does not see: $line in base"; return 1; fi
  done
  rm "$tree/src/base/b.c"
  echo '#include "geotrain/ckpt.h"' >>"$tree/src/wan/a.c"
  if check_tree "$tree" >/dev/null; then echo "layers.sh does not see an include in the same layer"; return 1; fi
}

if [ "${1:-}" = --tree ]; then
  check_tree "$2"
else
  prove
  check_tree "$root"
fi
