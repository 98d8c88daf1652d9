# processors: 1
# Commands without ranks that stand on the pages print what stands below them (pages.py says which
# blocks these are).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=$(command -v python3) || { skip "the pages" "no python3" && finish; }

"$python" "$GEOTRAIN_SOURCE/tests/e2e/pages.py" "$GEOTRAIN_SOURCE" "$GEOTRAIN" >out 2>err
code=$?
grep '^ok' out
check "the pages" same "$code $(cat err)" "0 "
[ "$code" -eq 0 ] || grep -v '^ok' out
finish
