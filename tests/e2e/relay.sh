# Three regions as MPI jobs of their own, of which two only dial: the third one relays between them,
# and the bits are those of one MPI job.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

data_train=1000
job job.yaml
port=$(/usr/bin/python3 -c '
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
sed -i -e 's/shares: \[1, 1\]/shares: [1, 1, 1]/' -e 's/emulate: true/emulate: false/' -e "s/name: west, ranks: 2}/name: west, ranks: 2}\n  - {name: north, ranks: 2, address: '127.0.0.1:$port'}/" job.yaml
sed 's/^wan:/wan:\n  transport: tcp\n  streams: 2\n  tls: {ca: ca\/ca.pem, cert: <region>.pem, key: <region>.key}/' job.yaml >apart.yaml
"$GEOTRAIN" cert init ca >/dev/null
for region in east west north; do
  "$GEOTRAIN" cert request $region >/dev/null && "$GEOTRAIN" cert sign ca $region.csr >/dev/null || fail "certificate of $region"
done
hub=(--set sync.strategy=sma --set sync.topology=hub) mesh=(--set sync.strategy=ssgd)

declare -A pids
# by NAME WORDS...: a run of three jobs; its bits are those of one MPI job of the same strategy.
by() {
  local name=$1
  shift
  train "$name" 6 job.yaml --run-dir "$name" "$@"
  ended "$name, one job" 0
  for region in west north east; do
    $MPIRUN -n 2 "$GEOTRAIN" train apart.yaml --region "$region" --run-dir "$name-$region" "$@" "${choices[@]}" >"$region.out" 2>"$region.err" </dev/null &
    pids[$region]=$!
  done
  for region in east west north; do
    launcher=${pids[$region]}
    wait_end "$name, $region" 90
    cp "$region.out" out
    cp "$region.err" err
    ended "$name, $region" 0
  done
  check "$name: the bits of one job" same "$(field "$name-east" params_sha256)" "$(field "$name" params_sha256)"
}

by mesh "${mesh[@]}"
by hub "${hub[@]}"

finish
