# labels: full
# processors: all
# The laboratory (netem/lab): its links have the rates and delays of the job, geotrain runs over
# them, and nothing of it is left.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

lab=$GEOTRAIN_SOURCE/netem/lab
python=/usr/bin/python3
one=e2e-$$-one two=e2e-$$-two three=e2e-$$-three

if setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$lab" 2>/dev/null; then
  setpriv --reuid=65534 --regid=65534 --clear-groups bash "$lab" up job.yaml >out 2>err
  code=$?
  ended "without root" 2 'root is needed'
fi
if [ "$(id -u)" -ne 0 ]; then
  bash "$lab" up job.yaml >out 2>err
  code=$?
  ended "without root" 2 'root is needed'
  skip "the laboratory" "namespaces can be made by root only"
  finish
fi
if ! unshare --net --mount --uts true 2>/dev/null; then
  skip "the laboratory" "this machine lets nobody make namespaces"
  finish
fi
for tool in ip tc ethtool ping "$python"; do
  command -v "$tool" >/dev/null || { skip "the laboratory" "$tool is not installed (jobs/packages, netem)" && finish; }
done

end() {
  local name
  for name in "$one" "$two" "$three"; do bash "$lab" --name "$name" down >/dev/null 2>&1; done
  at_exit
}
trap end EXIT

# Must be the same before and after: the machine's interfaces, and no namespace, process or file of
# this script's laboratories.
world() {
  local file
  ip -o link | cut -d: -f 2 | sort
  ip netns list | grep -F "e2e-$$-"
  for file in /proc/[0-9]*/exe; do
    [ "$(readlink "$file")" = /usr/bin/linux.uml ] && tr '\0' '\n' <"${file%exe}cmdline" | grep "^geotrain_lab=.*/e2e-$$-"
  done
  ls /run/geotrain-netem 2>/dev/null | grep "^e2e-$$-"
}

# lab_says NAME CODE WORDS-REGEX LAB-ARGUMENTS...
lab_says() {
  local name=$1 want=$2 words=$3
  shift 3
  timeout 60 bash "$lab" "$@" >out 2>err
  code=$?
  ended "$name" "$want" "$words"
}

# near NAME VALUE WANTED: within a tenth.
near() { check "$1: ${2:-none}, $3 wanted" awk -v a="${2:-0}" -v b="$3" 'BEGIN { exit !(a >= 0.9 * b && a <= 1.1 * b) }'; }

round_trip() { bash "$lab" --name "$1" status | sed -nE 's/^  east <-> west +([0-9.]+) ms$/\1/p'; }

cat >rate.py <<'PYTHON'
import socket, sys, time
if sys.argv[1] == "send":
    with socket.create_connection(("west", 5001)) as s:
        s.sendall(bytes(int(sys.argv[2]) << 20))
else:
    listener = socket.create_server(("0.0.0.0", 5001))
    open(sys.argv[2], "w").close()
    peer, _ = listener.accept()
    marks, total, room = [], 0, bytearray(1 << 20)
    while n := peer.recv_into(room):
        total += n
        marks.append((time.monotonic(), total))
    middle = next(m for m in marks if m[1] >= total / 2)  # slow start is over
    print("%.2f" % ((total - middle[1]) * 8e-6 / (marks[-1][0] - middle[0])))
PYTHON

# rate NAME MIB WANTED: Mbit/s of the second half of a TCP transfer from east to west; the best of
# three, because a busy machine lowers it.
rate() {
  for try in 1 2 3; do
    rate_once "$1" "$2"
    awk -v a="$(cat mbit)" -v b="$3" 'BEGIN { exit !(a >= 0.9 * b) }' && break
  done
  cat mbit
}

rate_once() {
  rm -f listening
  timeout 60 bash "$lab" --name "$1" exec west "$python" rate.py receive listening >mbit &
  local receiver=$! i
  for i in $(seq 100); do [ -e listening ] && break || sleep 0.05; done
  timeout 60 bash "$lab" --name "$1" exec east "$python" rate.py send "$2"
  wait "$receiver"
}

# ---- building -------------------------------------------------------------------------------------------------------------------

world >before
job job.yaml
sed -i 's/bandwidth: 1 Gbit\/s, latency: 1 ms/bandwidth: 100 Mbit\/s, latency: 25 ms/' job.yaml
lab_says "a job that is none" 2 'nothing.yaml' --name "$one" up nothing.yaml
lab_says "no laboratory" 2 'no laboratory' --name "$one" status
bash "$lab" --name "$one" up job.yaml >out 2>err
code=$?
if grep -q 'apt-get install\|/dev/net/tun' err; then
  skip "the laboratory" "$(cat err)"
  finish
fi
ended "up" 0 'is up: 2 regions'
lab_says "up again" 2 'up already' --name "$one" up job.yaml
lab_says "a second laboratory" 0 'is up: 2 regions' --name "$two" up job.yaml --set 'wan.links.0.bandwidth=40 Mbit/s' \
  --set 'wan.links.0.latency=5 ms' --set 'regions.0.access=20 Mbit/s'
lab_says "which of the two" 2 "$one" status

near "ping of the first" "$(round_trip "$one")" 50
near "ping of the second" "$(round_trip "$two")" 10
near "Mbit/s of a link" "$(rate "$one" 32 100)" 100
near "Mbit/s of an access limit" "$(rate "$two" 8 20)" 20
lab_says "lossy" 0 'is up' --name "$three" up job.yaml --set wan.links.0.loss=0.2 --set 'wan.links.0.latency=1 ms' --set 'wan.links.0.jitter=100 us'
bash "$lab" --name "$three" exec east ping -q -i 0.005 -c 1000 west >out
near "share of pings that survive two losses of 20%, %" "$(sed -nE 's/.* ([0-9.]+)% packet loss.*/\1/p' out | awk '{ print 100 - $1 }')" 64
lab_says "down" 0 'removed' --name "$three" down

# ---- running --------------------------------------------------------------------------------------------------------------------

MPIRUN="bash $lab --name $one run"
run "train" "$GEOTRAIN" train job.yaml --run-dir run --set wan.emulate=false --set train.until.steps=20
ended "train" 0 'region east: ranks 0 \(PS\), 1 on east' 'region west: ranks 2 \(PS\), 3 on west'
check "train: no warning" same "$(grep -c warning err)" 0
run "train, emulating too" "$GEOTRAIN" train job.yaml --run-dir twice --set train.until.steps=4
ended "train, emulating too" 0 'warning: .*wan.emulate'
run "exit code" sh -c 'exit 7'
ended "exit code" 7
# Nothing of a run may hold its output open until someone has asked for its exit code.
check "a caller that reads until the end of a run" timeout 60 "$python" -c "import subprocess; subprocess.run(['bash', '$lab', '--name', '$one', 'run', 'true'], capture_output=True)"
run "ranks" --ranks 3 -- sh -c hostname
ended "ranks" 0
check "ranks of each host" same "$(sort out | uniq -c | tr -s ' \n' ' ')" " 3 east 3 west "
launch sleep 61
sleep 1
kill -TERM "$launcher"
LIMIT=10 wait_end "TERM" 10
check "TERM: mpirun's exit code" same "$code" 1

launch "$GEOTRAIN" train job.yaml --run-dir stopped --set wan.emulate=false --set train.until.steps=100000
wait_file stopped/east.jsonl
wait_round stopped 1
kill -USR1 "$launcher"
wait_end "USR1" 30
ended "USR1" 75
gone "USR1"

# ---- cutting --------------------------------------------------------------------------------------------------------------------

# silent A B: no answer, and no error message.
silent() { [ "$(bash "$lab" --name "$one" exec "$1" ping -c 1 -W 1 "$2" 2>&1 | grep -cE 'bytes from|[Uu]nreachable|not')" = 0 ]; }
answers() { bash "$lab" --name "$one" exec "$1" ping -q -c 2 -i 0.2 -W 1 "$2" >/dev/null; }
lab_says "block" 0 '' --name "$one" block east west
check "a blocked link is silent" silent east west
check "the other way too" silent west east
lab_says "status says blocked" 0 'east <-> west +blocked' --name "$one" status
lab_says "unblock" 0 '' --name "$one" unblock east west
check "an unblocked link answers" answers east west
bash "$lab" --name "$one" outage east west 2 &
outage=$!
sleep 0.7
check "silent in an outage" silent east west
wait "$outage"
check "an answer after the outage" answers west east
lab_says "a region that is none" 2 'no region nort' --name "$one" block east nort

# ---- crashes --------------------------------------------------------------------------------------------------------------------

if [ -e "/run/geotrain-netem/$one/router.pid" ]; then
  launch sleep 62
  sleep 1
  kill -KILL "$(cut -d' ' -f 1 "/run/geotrain-netem/$one/router.pid")"
  wait_end "the router dies in a run" 10
  check "the router dies in a run: it is said" grep -q 'router of laboratory .* is gone' err
  lab_says "status without a router" 1 'is gone' --name "$one" status
  lab_says "run without a router" 1 'is gone' --name "$one" run true
  lab_says "up without a router" 2 'not whole' --name "$one" up job.yaml
fi
lab_says "down after the crash" 0 'removed' --name "$one" down
for wait in 0.1 0.3 0.6; do
  bash "$lab" --name "$three" up job.yaml >/dev/null 2>&1 &
  sleep "$wait"
  { kill -KILL $! && wait $!; } 2>/dev/null
  bash "$lab" --name "$three" down >out 2>err || grep -q 'no laboratory' err || fail "down after a killed up ($wait s)" "$(cat err)"
done
lab_says "the second is untouched" 0 'east <-> west +1[01]' --name "$two" status
bash "$lab" --name "$two" exec east sleep 63 2>/dev/null &
lab_says "down with a process inside" 0 'removed' --name "$two" down
wait 2>/dev/null
for i in $(seq 20); do
  world >after
  cmp -s before after && break
  sleep 0.1
done
check "all is as it was before" diff before after
finish
