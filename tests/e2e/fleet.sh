# processors: 1
# geotrain fleet: ranks at the ends of measured links fall into their regions, a thousand devices are
# grouped in time, and one sentence for every mistake.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# fleet WORDS...: one run.
fleet() {
  plain fleet "$@"
}

# refused NAME WORD -- WORDS...: exit 2, one sentence with this word.
refused() {
  local name=$1 word=$2
  shift 3
  fleet "$@"
  ended "$name" 2 "$word"
  check "$name: one sentence" same "$(wc -l <err)" 1
}

# ---- measured links --------------------------------------------------------------------------------------------------------------

# cloud FILE RANKS: a folder with a fleet of this many devices in each region of a matrix of links;
# inside a region 200 us and 1 Gbit/s; every third device is half as fast.
cloud() {
  mkdir -p "$1"
  awk -F, -v ranks="$2" -v folder="$1" '
    function times(ms, mbit) { return sprintf("%.9g,%.9g", ms / 1e3 + 64 * 8 / mbit / 1e6, ms / 1e3 + 4194304 * 8 / mbit / 1e6) }
    /^#/ || $1 == "from" { next }
    { links = links $1 "," $2 "," times($4, $3) "\n"; seen[$1]; seen[$2] }
    END {
      for (r in seen) {
        links = links r "," r "," times(0.2, 1000) "\n"
        for (i = 0; i < ranks; i++) devices = devices r "." i ",," r "," (i % 3 == 2 ? 50 : 100) ",4e9\n"
      }
      printf "%s", devices >(folder "/devices.csv")
      printf "%s", links >(folder "/links.csv")
    }' "$GEOTRAIN_SOURCE/jobs/links/$1.csv"
}

for case in "aws-4 4" "gaia-11 11"; do
  read -r name regions <<<"$case"
  cloud "$name" 5
  fleet "$name" --devices
  ended "$name" 0 "^$name: $((5 * regions)) devices, $regions regions, $((2 * regions)) groups\$"
  check "$name: devices of a region are together, those of two are not" same \
    "$(sed -n '/its region/,$p' out | awk 'NR > 1 { print $2, $4 }' | sort -u | wc -l)" "$regions"
done

# ---- many devices ----------------------------------------------------------------------------------------------------------------

mkdir -p many
awk 'BEGIN {
  for (i = 0; i < 1000; i++) {
    print "d" i ",h" int(i / 8) ",r" i % 10 "," 100 + i % 7 ",1e9" >"many/devices.csv"
    for (j = 0; j < 1000; j++)
      if (i != j) print "d" i ",d" j "," (i % 10 == j % 10 ? "0.0002,0.034" : "0.03," 0.3 + (i + j) % 10 / 100) >"many/links.csv"
  }
}'
TIMEFORMAT='%U %S'
{ time fleet many; } 2>took
took=$(awk 'END { print $1 + $2 }' took)
ended "1000 devices and 999,000 links" 0 '^many: 1000 devices, 10 regions, 10 groups$' ' and 94 more$'
# a build with sanitizers, or without optimisation, has more time
limit=$("$GEOTRAIN" info | awk '/^build:/ { print $2 == "Debug," ? 30 : 3 }')
check "they take $took s of CPU, $limit s at most" awk -v a="$took" -v b="$limit" 'BEGIN { exit !(a < b) }'

# ---- options ---------------------------------------------------------------------------------------------------------------------

fleet aws-4 --theta '70 ms'
ended "a threshold" 0 'above 70.0 ms are separate' '\(--theta\)$' '^aws-4: 20 devices, 3 regions'
fleet aws-4 --bytes 1B
ended "small messages" 0 '^time of 1 B from the group' ', 4 regions'
mkdir -p one && printf 'a,,x,1,1e9\n' >one/devices.csv && : >one/links.csv
fleet one
ended "one device" 0 '^one: 1 device, 1 region, 1 group$' 'no two consecutive mean times'
mkdir -p apart && printf 'a,,x,1,1e9\nb,,x,1,1e9\n' >apart/devices.csv && printf 'a,b,inf,inf\n' >apart/links.csv
fleet apart
ended "two that do not reach each other" 0 '^apart: 2 devices, 2 regions, 2 groups$' ' never$'

# ---- mistakes --------------------------------------------------------------------------------------------------------------------

refused "no file" 'nowhere.yaml: cannot be opened' -- nowhere.yaml
refused "no folder" 'expected one profile or folder, found 0' --
refused "two folders" 'expected one profile or folder, found 2' -- one apart
refused "an option" '--thet' -- one --thetas 5
refused "a threshold without unit" '--theta: "5"' -- one --theta 5
refused "a threshold of 0" '--theta is 0 s; expected more than 0' -- one --theta '0 s'
refused "a size of 0" '--bytes is 0 B; expected more than 0' -- one --bytes '0 B'
printf 'regions: []\n' >plain.yaml
refused "a profile without a fleet" 'has no section fleet' -- plain.yaml
finish
