# processors: 1
# geotrain placement: its tables from the repository's catalogue, a user's own catalogue, and one
# sentence for every mistake.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prices=$GEOTRAIN_SOURCE/jobs/prices

# place NAME WORDS...: one run.
place() {
  shift
  plain placement --model-bytes 17MB "$@"
}

# refused NAME WORD... -- WORDS...: exit 2, one sentence with these words.
refused() {
  local name=$1 words=()
  shift
  while [ "$1" != -- ]; do words+=("$1") && shift; done
  shift
  place "$name" "$@"
  ended "$name" 2 "${words[@]}"
  check "$name: one sentence" same "$(wc -l <err)" 1
}

# ---- the tables ------------------------------------------------------------------------------------------------------------------

place plain --catalogue "$prices" --hierarchy --csv all.csv
ended "the repository's catalogue" 0 '^workers on aws' '^workers on azure' '^workers on gcp' '^cheapest: ' '^one cloud for all' '^assumed '
check "every placement is in the CSV" same "$(grep -c . all.csv)" $((1 + 3 * 2 * 2 * 4 * 2))
check "terms add up to equation (1)" awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  { sum = $at["iaas_usd"] + $at["faas_usd"] + $at["stored_usd"] + $at["reads_usd"] + $at["writes_usd"] + $at["lists_usd"]
    sum += $at["dt_iaas_usd"] + $at["dt_faas_usd"] + $at["dt_to_function_usd"] + $at["dt_to_workers_usd"]
    if (sum < $at["total_usd"] * (1 - 1e-7) || sum > $at["total_usd"] * (1 + 1e-7)) bad++ }
  END { exit bad > 0 || NR != 97 }' all.csv
# 17 MB from Mumbai (0.086), Oregon and Sydney (0.02, 0.098) to London, and back at London's 0.02,
# by equations (7) and (9).
check "transfer to London on AWS by hand" awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  $1 == "aws" && $2 == "aws" && $3 == "aws" && $4 == "london" && $5 == "central" { need = 0.017 * (0.086 + 0.02 + 0.098 + 3 * 0.02); d = $at["transfer_usd"] / need - 1
    seen = d < 1e-8 && d > -1e-8 } END { exit !seen }' all.csv

cat >mine.csv <<'CSV'
# a private cluster beside a cloud
rate,cloud,place,to_cloud,to_place,from_gb,value,assumed
vm_hour,mine,*,,,,0.5,
vm_hour,aws,london,,,,1000,
egress_gb,mine,*,*,*,0,0,
link_mbit_s,mine,*,*,*,,1000,
link_rtt_ms,mine,*,*,*,,10,
link_mbit_s,aws,*,mine,*,,1000,
link_rtt_ms,aws,*,mine,*,,10,
CSV
place own --catalogue "$prices" --catalogue mine.csv --clouds aws,mine --functions aws --storage aws --workers-at london,oregon --csv own.csv
ended "one's own file beside the catalogue" 0 '^workers on mine'
check "its rates take the place of the others" awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  $1 == "aws" && $4 == "oregon" && $at["iaas_usd"] > 0.5 * $at["batch_s"] / 3600 * 1000 { seen = 1 } END { exit !seen }' own.csv

# speed of storage instead of the links', by direction: London to Oregon and back.
cat >storage.csv <<'CSV'
rate,cloud,place,to_cloud,to_place,from_gb,value,assumed
storage_up_mbit_s,aws,london,aws,oregon,,1360,
storage_down_mbit_s,aws,oregon,*,london,,13.6,
function_add_s_per_gb,aws,*,,,,100,
CSV
one=(--clouds aws --functions aws --storage aws --workers-at london --places oregon)
place links --catalogue "$prices" "${one[@]}" --csv links.csv
place storage --catalogue "$prices" --network storage.csv "${one[@]}" --csv storage.out.csv
# value FILE COLUMN: of its first line.
value() { awk -F, -v key="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at[key] }' "$1"; }
check "uploads at the storage's rate" awk -v a="$(value links.csv upload_s)" -v b="$(value storage.out.csv upload_s)" 'BEGIN { exit !(b < a / 2) }'
check "downloads at theirs" awk -v b="$(value storage.out.csv download_s)" 'BEGIN { exit !(b > 10 && b < 10.6) }'
check "the function adds in its catalogue's time" awk -v a="$(value links.csv aggregate_s)" -v b="$(value storage.out.csv aggregate_s)" \
  'BEGIN { d = b - a - 1.7 + 0.017; exit !(d > -0.01 && d < 0.01) }'
place by_hand --catalogue "$prices" --network storage.csv --add-s-per-gb 1 "${one[@]}" --csv by_hand.csv
check "an option precedes the catalogue" same "$(value by_hand.csv aggregate_s)" "$(value links.csv aggregate_s)"
place month --catalogue "$prices" --residency month "${one[@]}" --csv month.csv
check "an object for a month" awk -v b="$(value month.csv stored_usd)" 'BEGIN { exit !(b > 0.017 * 0.023 * 0.999999 && b < 0.017 * 0.023 * 1.000001) }'

# a worker each on three clouds
place several --catalogue "$prices" --workers-at aws:london,gcp:mumbai,azure:london --hierarchy --csv several.csv
ended "workers on several clouds" 0 '^workers on several' '^one cloud for'
check "every placement of theirs is in the CSV" same "$(grep -c . several.csv)" $((1 + 2 * 2 * 2 * 2))
check "they pay their clouds' machines" awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
  $at["iaas_usd"] > $at["batch_s"] * (0.111 + 0.08048436 + 0.116) / 3600 * 1.000001 || $at["iaas_usd"] < $at["train_s"] * 0.3 / 3600 { bad++ }
  END { exit bad > 0 }' several.csv
place sizes --catalogue "$prices" --clouds gcp --functions gcp --storage gcp --workers-at london --memory-gb 1.5 --csv sizes.csv
place bigger --catalogue "$prices" --clouds gcp --functions gcp --storage gcp --workers-at london --memory-gb 2 --csv bigger.csv
check "the next size of memory is billed" cmp sizes.csv bigger.csv

if command -v gnuplot >/dev/null; then
  place plot --catalogue "$prices" --plot "it's.png"
  ended "a plot" 0
  check "the plot is there" test -s "it's.png"
else
  skip "a plot" "there is no gnuplot here"
fi
(PATH=/nowhere && "$GEOTRAIN" placement --model-bytes 17MB --catalogue "$prices" --plot a.png >out 2>err)
check "without gnuplot one sentence says so" same "$? $(cat err)" \
  "2 geotrain: placement: --plot needs gnuplot, which is not in PATH; install it, or omit --plot (--csv writes the same figures)"

# ---- mistakes --------------------------------------------------------------------------------------------------------------------

# catalogue SED-EXPRESSION: the repository's catalogue in one file, with this change.
catalogue() { cat "$prices"/*.csv | sed -E -e '1b' -e '/^rate,cloud/d' -e "$1" >bad.csv; }

catalogue '/^function_gb_s,aws/d'
refused "a catalogue as the output" 'bad.csv is both the input and the output' -- --catalogue bad.csv --csv bad.csv
refused "a missing rate" bad.csv 'no function_gb_s of aws at london' 'function_gb_s,aws,london' -- --catalogue bad.csv
catalogue '/^egress_gb,aws,mumbai,/d'
refused "a missing tariff" 'no egress_gb of aws at mumbai' -- --catalogue bad.csv
catalogue '/^vm_hour,aws,london/s/0\.111/-0.111/'
refused "a negative price" 'bad.csv:[0-9]+: value of vm_hour is "-0.111"' '0 or more' -- --catalogue bad.csv
catalogue '/^vm_hour,aws,london/s/0\.111/cheap/'
refused "a price that is no number" 'value of vm_hour is "cheap"' -- --catalogue bad.csv
catalogue '/^link_mbit_s,aws,london,aws,oregon/s/,49.6,/,0,/'
refused "a link without rate" 'value of link_mbit_s is "0"' 'more than 0' -- --catalogue bad.csv
catalogue '/^vm_hour,aws,london/s/,0.111,//'
refused "a malformed line" 'bad.csv:[0-9]+: has [0-9]+ fields' -- --catalogue bad.csv
catalogue 's/^vm_hour,aws,london/vm_hours,aws,london/'
refused "an unknown rate" 'rate is "vm_hours"' 'did you mean vm_hour\?' -- --catalogue bad.csv
catalogue 's/^link_rtt_ms,aws,london,aws,oregon/link_rtt_ms,aws,london,aws,oregom/'
refused "an unknown receiving place" 'to_place is "oregom"' 'did you mean oregon\?' -- --catalogue bad.csv
catalogue 's/^link_rtt_ms,aws,london,gcp,oregon/link_rtt_ms,aws,london,gpc,oregon/'
refused "an unknown receiving cloud" 'to_cloud is "gpc"' 'did you mean gcp\?' -- --catalogue bad.csv
catalogue 's/^(egress_gb,aws,london,\*,\*),0,/\1,5,/'
refused "tiers without a first one" 'first tier' 'from 0' -- --catalogue bad.csv
catalogue '/^vm_hour,aws,london/{p}'
refused "a rate twice" 'bad.csv:[0-9]+: bad.csv:[0-9]+ gives this rate already' -- --catalogue bad.csv
catalogue '/^vm_hour,aws,london/s/,$/,maybe/'
refused "a mark that is none" 'assumed is "maybe"' -- --catalogue bad.csv
refused "an unknown place" '--workers-at' 'londn' 'did you mean london\?' -- --catalogue "$prices" --workers-at londn,oregon
refused "an unknown vendor" '--clouds' 'awz' 'did you mean aws\?' -- --catalogue "$prices" --clouds awz
refused "no such catalogue" 'nowhere.csv: cannot be opened' -- --catalogue nowhere.csv
mkdir -p empty
refused "a folder without catalogues" 'no file that ends in .csv' -- --catalogue empty
refused "an unknown option" 'placement: option --model-bites' -- --model-bites 3
refused "batches that are none" 'batches is "0"' -- --batches 0
refused "a place twice" 'twice' -- --places london,london
refused "a cloud for some workers" 'has oregon with and london without a cloud' -- --workers-at london,aws:oregon
refused "clouds twice" '--clouds is given' -- --workers-at aws:london --clouds gcp
refused "an unknown cloud of a worker" '--workers-at names the cloud "awz"' -- --catalogue "$prices" --workers-at awz:london
refused "too little memory" 'memory-gb is 0.03' 'at least 0.034' -- --memory-gb 0.03
refused "too much memory" 'memory-gb is 9' 'at most 8, the largest function of gcp at london' -- --catalogue "$prices" --memory-gb 9
refused "an unknown residency" 'residency is "week"' 'time or month' -- --residency week
refused "a model of nothing" 'model-bytes' -- --model-bytes 0B

finish
