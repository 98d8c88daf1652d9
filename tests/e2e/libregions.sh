# Shared by the end-to-end scripts of regions that are MPI jobs of their own: ports, certificates,
# jobs that begin and end, and what each leaves.  Sourced after lib.sh.

# free_ports N: ports of this host that nobody listens on, below those that the kernel gives to
# connections: such a port could be taken again before the test listens on it.
free_ports() {
  /usr/bin/python3 -c '
import random, socket, sys
sockets = []
for _ in range(1000):
    if len(sockets) == int(sys.argv[1]): break
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", random.randrange(20000, 32000)))
        sockets.append(s)
    except OSError:
        pass
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

# certify REGION...: a CA, and a certificate of each region.
certify() {
  local region
  "$GEOTRAIN" cert init ca >/dev/null
  for region in "$@"; do
    "$GEOTRAIN" cert request "$region" >/dev/null && "$GEOTRAIN" cert sign ca "$region.csr" >/dev/null || fail "certificate of $region"
  done
}
tls='tls: {ca: ca/ca.pem, cert: <region>.pem, key: <region>.key}'

# carry: what people send to each other: requests to the first of the sites, which has the CA in ca, and
# certificates back.  The first site sends nothing to itself.  Each site has a folder.
carry() {
  local site
  for site in "${sites[@]:1}"; do
    cp -n "$site/$site.csr" "${sites[0]}/" 2>/dev/null
    cp -n "${sites[0]}/ca/ca.pem" "$site/" 2>/dev/null
    cp -n "${sites[0]}/$site.pem" "$site/" 2>/dev/null
  done
}

# at SITE COMMAND: runs it in the site's folder; its code is in $code, its output in out and err.
at() {
  (cd "$1" && bash -c "$2") >out 2>err </dev/null
  code=$?
}

# three_sites STEPS: apart.yaml, of three regions of which one only dials, with sync.on_loss continue
# and steps of 50 ms.
three_sites() {
  local port second
  data_train=1200
  job job.yaml
  read -r port second < <(free_ports 2)
  certify east west north
  sed -e 's/shares: \[1, 1\]/shares: [1, 1, 1]/' -e '/name: west, ranks: 2/a\  - {name: north, ranks: 2}' -e 's/emulate: true/emulate: false/' -e '/links:/d' \
    -e "s/steps: 60/steps: $1/" -e 's/steps: 10/steps: 20/' -e 's/wan_patience: 30 s/wan_patience: 3 s/' \
    -e "s|^wan:|wan:\n  transport: tcp\n  $tls|" -e 's/^sync: {/sync: {on_loss: continue, /' -e '$a compute: {step: 50 ms, emulate: true}' job.yaml |
    sed -e "s/name: east, ranks: 2/name: east, ranks: 2, address: '127.0.0.1:$port'/" -e "s/name: west, ranks: 2/name: west, ranks: 2, address: '127.0.0.1:$second'/" >apart.yaml
}

# meet_over TRANSPORT: of apart.yaml; store: a folder here.
meet_over() {
  [ "$1" = tcp ] || sed -i "s|transport: tcp|transport: store\n  store: {url: 'file://$PWD/objects', poll: 20 ms}|" apart.yaml
}

# epoch SITE N: waits until the site has entered epoch N.
epoch() {
  for _ in $(seq 600); do
    grep -q "epoch $2 begins" "$1.err" && return
    pause 0.05
  done
  fail "$1" "it does not enter epoch $2"
}

# begin REGION RUN WORDS...: starts the region's MPI job; its run directory is RUN-REGION.
declare -A pids
begin() {
  local region=$1 run=$2
  shift 2
  : >"$region.out"
  : >"$region.err"
  $MPIRUN -n "${ranks:-2}" "$GEOTRAIN" train "${apart:-apart.yaml}" --region "$region" --run-dir "$run-$region" "$@" "${choices[@]}" \
    >"$region.out" 2>"$region.err" </dev/null &
  pids[$region]=$!
}

# ranks_of REGION: the process ids of its ranks.
ranks_of() {
  local p
  for p in $(living); do
    tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q -- "--region $1 " && echo "$p"
  done
}

# end REGION NAME CODE WORD...: waits for it, and checks its code and words.
end() {
  local region=$1 name=$2
  shift 2
  launcher=${pids[$region]}
  wait_end "$name, $region" 60
  cp "$region.out" out
  cp "$region.err" err
  ended "$name, $region" "$@"
}

# alike NAME: with a strategy that gives all regions one model, each had it at the end: the lead, whose
# model every final.h5 has, says if not.
alike() { check "$1: each region had this model" sh -c '! grep -q "the final model of region .* differs" -- *.err'; }

# trains RUN: waits until the region has a round; older ones are removed.
trains() {
  for _ in $(seq 1200); do
    [ -n "$(newest_round "$1")" ] && return
    pause 0.05
  done
  fail "$1" "it does not train"
}

# results NAME: both sites have the same summary, table and final model.
results() {
  check "$1: the same summary everywhere" cmp "$1-east/summary.json" "$1-west/summary.json"
  check "$1: the same table everywhere" cmp <(grep -v '^geotrain' east.out | table) <(table <west.out)
  check "$1: the same final model everywhere" same "$(model_of "$1-west" params_sha256 step samples mean_of)" "$(model_of "$1-east" params_sha256 step samples mean_of)"
  check "$1: that of the summary" same "$(model_of "$1-west" params_sha256)" "$(field "$1-west" params_sha256)"
}

# The final table, with the run's folder left out.
table() { sed -n '/^region /,$p'; }

# model_of RUN KEY...: of final.h5, whose bits are checked.
model_of() {
  /usr/bin/python3 -c '
import h5py, hashlib, sys
f = h5py.File(sys.argv[1] + "/final.h5")
assert hashlib.sha256(f["model/params"][:].tobytes()).hexdigest() == f.attrs["params_sha256"].decode()
print(*(f.attrs[k] for k in sys.argv[2:]))' "$@" | sed "s/^b'\\(.*\\)'$/\\1/"
}

# id_of FILE: the id of its run.
id_of() { /usr/bin/python3 -c 'import h5py, sys; print(h5py.File(sys.argv[1]).attrs["run_id"].decode())' "$1"; }
