# Runs whose regions are joined by TCP: the bits of a run by MPI, with TLS and without, and with
# connections that are cut; files and keys that do not fit are refused.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"

data_train=1000
job job.yaml
read -r port through < <(free_ports 2)
certify east west
sed -i -e "s/name: east, ranks: 2/name: east, ranks: 2, address: '127.0.0.1:$port'/" -e 's/emulate: true/emulate: false/' job.yaml
tcp=(--set wan.transport=tcp)
tls=("${tcp[@]}" --set wan.tls.ca=ca/ca.pem --set 'wan.tls.cert=<region>.pem' --set 'wan.tls.key=<region>.key')
hub=(--set sync.strategy=sma --set sync.topology=hub) mesh=(--set sync.strategy=ssgd)

# by NAME WORDS...: a run that ends; its bits are those of the run by MPI of the same strategy.
by() {
  local name=$1
  shift
  completes "$name" 4 job.yaml --run-dir "$name" "$@"
  check "$name: the bits of MPI" same "$(field "$name" params_sha256)" "$(field "${name%%-*}-mpi" params_sha256)"
}

by mesh-mpi "${mesh[@]}"
by hub-mpi "${hub[@]}"
by mesh-tls "${mesh[@]}" "${tls[@]}"
check "a run without trouble says nothing of connections" sh -c '! grep -i connection err'
by hub-tls "${hub[@]}" "${tls[@]}"
by hub-streams "${hub[@]}" "${tls[@]}" --set wan.streams=auto --set "wan.links.0.latency=60 ms"
check "wan.streams auto" grep -q "wan.streams auto: 4 connections" err
by hub-plain "${hub[@]}" "${tcp[@]}"
[ $full = no ] || by mesh-emulated "${mesh[@]}" "${tls[@]}" --set wan.emulate=true

# Connections are cut all the time.
/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/tcp_proxy.py" "$through" "$port" cuts &
proxy=$!
sed "s/address: '127.0.0.1:$port'/address: '127.0.0.1:$through', listen: '127.0.0.1:$port'/" job.yaml >cut.yaml
mv cut.yaml job.yaml
by mesh-cut "${mesh[@]}" "${tls[@]}"
by mesh-cut-streams "${mesh[@]}" "${tls[@]}" --set wan.streams=3
check "connections were cut" [ "$(cat cuts)" -ge 2 ]
kill "$proxy"

# Through a proxy, which alone knows the name of the region that listens.
/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/http_proxy.py" "$through" east.invalid:7 "127.0.0.1:$port" requests 2>proxy.err &
proxy=$!
sed -i "s/address: '127.0.0.1:$through'/address: 'east.invalid:7'/" job.yaml
for _ in $(seq 200); do
  (: >"/dev/tcp/127.0.0.1/$through") 2>/dev/null && break
  pause 0.05
done
by mesh-proxy "${mesh[@]}" "${tls[@]}" --set wan.proxy="http://127.0.0.1:$through"
check "the proxy was asked" grep -q 'CONNECT east.invalid:7 HTTP/1.1' requests
timeout 3 $MPIRUN -n 4 "$GEOTRAIN" train job.yaml --run-dir refused "${mesh[@]}" "${tls[@]}" --set wan.proxy="http://127.0.0.1:$through" --set regions.0.address=west.invalid:7 "${choices[@]}" >out 2>err </dev/null
check "a proxy that refuses" grep -q 'no connection with region east: the proxy answers "HTTP/1.1 403 Forbidden"' err
# `timeout` ends mpirun; its ranks hold the port a moment longer.
for _ in $(seq 50); do [ -z "$(living)" ] && break || pause 0.1; done
train unknown 4 job.yaml --run-dir unknown "${mesh[@]}" "${tls[@]}"
ended "a name that nobody knows" 5 'regions\[\].address of region east is "east.invalid:7", for which this host knows no address'
train busy 4 job.yaml --run-dir busy "${mesh[@]}" "${tls[@]}" --set wan.proxy="http://127.0.0.1:$through" --set regions.0.listen="127.0.0.1:$through"
ended "a port in use" 5 "regions\[\].listen of region east is \"127.0.0.1:$through\", where this host cannot listen: Address already in use"
kill "$proxy"
sed -i "s/address: 'east.invalid:7'/address: '127.0.0.1:$port'/" job.yaml

# What does not fit.
wrong() {
  local name=$1 code=$2 text=$3
  shift 3
  train "$name" 4 job.yaml --run-dir no "$@"
  ended "$name" "$code" "$text"
}
wrong "a certificate of another region" 2 'west.pem has the name west; expected that of region east' "${tls[@]}" --set wan.tls.cert=west.pem --set wan.tls.key=west.key
wrong "virtual clock" 2 'wan.transport is tcp under --clock virtual' "${tcp[@]}" --clock virtual --set compute.step=0.01s
check "no port of a proxy" sh -c '"$0" info job.yaml --set wan.transport=tcp --set wan.proxy=http://proxy/ 2>&1 | grep -q "wan.proxy is \"http://proxy/\"; expected http://host:port"' "$GEOTRAIN"
check "no certificate" sh -c '"$0" info job.yaml --set wan.transport=tcp --set regions.0.address=eu.example.org:7 2>&1 | grep -q "wan.tls is missing"' "$GEOTRAIN"
check "no address" sh -c '"$0" info job.yaml --set wan.transport=tcp --set regions.0.address=null --set regions.0.listen=null 2>&1 | grep -q "no region has an address"' "$GEOTRAIN"
check "no key is printed" sh -c '! grep -rl "PRIVATE KEY" out err mesh-tls'

finish
