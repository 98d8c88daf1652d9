#!/usr/bin/env bash
# Checks that calls between the files of a part have no cycles, direct or indirect.  Reads the objects
# with nm; lower files call upper ones through tables of functions.
#   circles.sh BUILD          first tests itself on small examples, then checks this build
# NM names another nm.  Exits with 77 if it cannot read the objects (an LTO build without its plugin).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SKIP=77

# PART: FILES: REASON.  A line that is no longer a cycle is an error, too, if its part is built:
# delete it.
allowed=''

# Lines "PART FILE SYMBOL defined|wanted" of a build folder whose sources are in another one.
symbols() { # build, sources
  local object name part objects=()
  while read -r object; do
    name=${object#*/gt_*.dir/}
    part=${name%%/*}
    name=${name#*/}
    case $object in *"/gt_$part.dir/"*) ;; *) continue ;; esac # not an object of an instruction set
    if [ -f "$2/src/$part/${name%.o}" ]; then objects+=("$object"); fi # else its source was deleted
  done < <(find "$1/src/CMakeFiles" -path '*/gt_*.dir/*' -name '*.c.o' | LC_ALL=C sort)
  [ ${#objects[@]} -eq 0 ] || "${NM:-nm}" -A "${objects[@]}" 2>/dev/null | awk '{
      colon = index($0, ":")
      at = substr($0, 1, colon - 1)
      sub(/.*\/gt_[^\/]*\.dir\//, "", at)
      sub(/\.c\.o$/, "", at)
      sub(/\//, " ", at)
      n = split(substr($0, colon + 1), word, " ")
      if (n == 2 && word[1] == "U") print at, word[2], "wanted"
      if (n == 3 && word[2] ~ /^[TDBRVWC]$/) print at, word[3], "defined"
    }'
}

check() { # allowed: reads symbols; prints each circle that is not allowed, with its calls
  awk -v allowed="$1" '
    $4 == "defined" { home[$1, $3] = $2; defined++ }
    $4 == "wanted" { want[++nwant] = $0 }
    { if (!(($1, $2) in known)) { known[$1, $2] = 1; file[$1, ++nfiles[$1]] = $2; parts[$1] = 1 } total++ }
    function take_allowed(   n, i, field, j, m, names) {
      n = split(allowed, line, "\n")
      for (i = 1; i <= n; i++) {
        if (split(line[i], field, /: */) < 3) continue
        nallowed++
        of[nallowed] = field[1]
        text[nallowed] = field[1] ": " field[2]
        m = split(field[2], names, / +/)
        for (j = 1; j <= m; j++) may[field[1], names[j]] = may[field[1], names[j]] " " nallowed " "
      }
    }
    function reach(part,   i, j, k, n) {
      n = nfiles[part]
      for (k = 1; k <= n; k++) for (i = 1; i <= n; i++) {
        if (!((part, file[part, i], file[part, k]) in path)) continue
        for (j = 1; j <= n; j++) if ((part, file[part, k], file[part, j]) in path) path[part, file[part, i], file[part, j]] = 1
      }
    }
    function may_be(part, a, b,   n, i, lines) { # one line allows both
      n = split(may[part, a], lines, / +/)
      for (i = 1; i <= n; i++) if (lines[i] != "" && index(may[part, b], " " lines[i] " ")) { used[lines[i]] = 1; return 1 }
      return 0
    }
    function judge(part,   i, j, a, b) {
      for (i = 1; i <= nfiles[part]; i++) for (j = 1; j <= nfiles[part]; j++) {
        a = file[part, i]; b = file[part, j]
        if (!((part, a, b) in calls) || !((part, b, a) in path) || may_be(part, a, b)) continue
        print part ": " a " calls " b " (" calls[part, a, b] "), which leads back to " a
        bad++
      }
    }
    END {
      if (!total || !defined) { print "no symbols were found"; exit 77 }
      for (i = 1; i <= nwant; i++) {
        split(want[i], w, " ")
        if (!((w[1], w[3]) in home) || home[w[1], w[3]] == w[2]) continue
        b = home[w[1], w[3]]
        calls[w[1], w[2], b] = calls[w[1], w[2], b] (calls[w[1], w[2], b] == "" ? "" : ", ") w[3]
        path[w[1], w[2], b] = 1
        ncalls++
      }
      take_allowed()
      for (part in parts) { nparts++; reach(part); judge(part) }
      for (i = 1; i <= nallowed; i++) if (i in used) nused++; else if (of[i] in parts) { print "allowed, and no circle: " text[i]; bad++ }
      if (bad) exit 1
      print nparts " parts, " ncalls " calls between their files: all go one way but " nused + 0 " circles that are allowed"
    }'
}

check_build() { # build, sources, allowed
  local found
  found=$(symbols "$1" "$2")
  [ -n "$found" ] || { echo "nm finds nothing in $1/src/CMakeFiles: it is not built, or nm does not read it"; return $SKIP; }
  check "$3" <<<"$found"
}

# Self-test: the check must find each kind of cycle.  Objects are given as nm's output.
prove() {
  local tree
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' RETURN
  object() { # PART FILE: its symbols are read from the input
    local folder=$tree/src/CMakeFiles/gt_$1.dir/$1
    mkdir -p "$(dirname "$folder/$2")" "$(dirname "$tree/src/$1/$2")"
    : >"$tree/src/$1/$2.c"
    cat >"$folder/$2.c.o"
  }
  printf '%s\n' '#!/bin/sh' 'shift; for file; do sed "s|^|$file:|" "$file"; done' >"$tree/nm" # nm -A of these
  chmod +x "$tree/nm"
  judged() { NM="$tree/nm" check_build "$tree" "$tree" "${1:-}" >/dev/null; }
  object wan a <<<$'0000 T gt_a\n     U gt_b\n     U memcpy\n0010 t helper'
  object wan b <<<$'0000 T gt_b\n     U gt_c'
  object wan c <<<$'0000 D gt_c\n     U helper'
  object sync a <<<$'0000 T gt_sync\n     U gt_b' # of another part
  judged || { echo "circles.sh refuses calls that go one way"; return 1; }
  object wan c <<<$'0000 D gt_c\n     U gt_a'
  if judged; then echo "circles.sh does not see a circle of three"; return 1; fi
  judged 'wan: a b c: because' || { echo "circles.sh refuses what is allowed"; return 1; }
  if judged $'wan: a b c: because\nsync: a b: gone'; then echo "circles.sh keeps a line that says nothing"; return 1; fi
  if judged $'wan: a b: because'; then echo "circles.sh allows a part of a circle for all of it"; return 1; fi
  object wan import/d <<<$'0000 T gt_d\n     U gt_e' # of a folder of the part
  object wan e <<<$'0000 T gt_e\n     U gt_d'
  object wan c <<<'0000 D gt_c'
  if judged; then echo "circles.sh does not see a circle by a folder"; return 1; fi
  object wan e <<<'0000 T gt_e'
  judged || { echo "circles.sh sees a circle that is gone"; return 1; }
  object wan b <<<$'0000 T gt_b\n     U gt_a'
  if judged; then echo "circles.sh does not see a circle of two"; return 1; fi
  rm "$tree/src/wan/b.c"
  judged || { echo "circles.sh reads the object of a source that is gone"; return 1; }
  if NM="true" check_build "$tree" "$tree" '' >/dev/null; then echo "circles.sh is content with nothing"; return 1; fi
}

prove
check_build "$1" "$root" "$allowed"
