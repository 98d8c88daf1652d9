# processors: 1
# What plan, simulate, placement, fleet and train print keeps to 80 columns, for the jobs that come
# with geotrain.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# narrow NAME FILE: no line has more than 80 columns.
narrow() {
  check "$1" same "$(awk 'length($0) > 80 { print FILENAME ": " $0 }' "$2")" ""
}
printf '%081d\n' 0 >wide
check "a line of 81 columns is found" test "$(narrow wide wide | grep -c '^FAIL')" = 1

mkdir -p datasets && data datasets/fashion-mnist.h5
tried=0
for job in "$GEOTRAIN_SOURCE"/jobs/*.yaml; do
  name=$(basename "$job" .yaml)
  for command in plan simulate; do
    "$GEOTRAIN" "$command" "$job" --set regions.0.samples=8640 >out 2>err || continue
    tried=$((tried + 1))
    narrow "$command $name" out
  done
done
check "$tried outputs of plan and simulate" test "$tried" -ge 20
"$GEOTRAIN" placement --model-bytes 17MB --catalogue "$GEOTRAIN_SOURCE/jobs/prices" --hierarchy >out 2>err
narrow placement out
mkdir -p apart && printf 'a,h,x,1,1e9\nb,h,x,1,1e9\nc,g,y,2,1e9\n' >apart/devices.csv && printf 'x,x,0.001,0.1\nx,y,0.1,1\n' >apart/links.csv
"$GEOTRAIN" fleet apart --devices >out 2>err
check "a fleet" same $? 0
narrow fleet out
data data.h5
job job.yaml
train table 4 job.yaml --run-dir run --clock virtual --set 'compute.step=10 ms' --set train.until.steps=10
sed -n '/^drill: /,/^WAN traffic/p' out >table
check "the final table" test -s table
narrow "the final table" table
finish
