# Regions that are MPI jobs of their own, joined by TCP: the bits of one MPI job, a resume, a late
# start; what does not fit is refused, and the end of one region ends the others.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"

data_train=1000
job job.yaml
read -r port through web < <(free_ports 3)
sed -i -e "s/name: east, ranks: 2/name: east, ranks: 2, address: '127.0.0.1:$port'/" -e 's/emulate: true/emulate: false/' job.yaml
sed "s|^wan:|wan:\n  transport: tcp\n  $tls|" job.yaml >apart.yaml
certify east west
hub=(--set sync.strategy=sma --set sync.topology=hub) mesh=(--set sync.strategy=ssgd)

# by NAME WORDS...: a run of two jobs; its bits are those of one MPI job of the same strategy.
by() {
  local name=$1
  shift
  begin west "$name" "$@"
  begin east "$name" "$@"
  end east "$name" 0
  end west "$name" 0
  gone "$name"
  check "$name: the bits of one job" same "$(field "$name-east" params_sha256)" "$(field "${name%%-*}" params_sha256)"
  results "$name"
}

train mesh 4 job.yaml --run-dir mesh "${mesh[@]}"
train hub 4 job.yaml --run-dir hub "${hub[@]}"
by mesh-apart "${mesh[@]}"
by hub-apart "${hub[@]}"
check "a run without trouble says nothing of connections" sh -c '! grep -i connection east.err'

# One region starts later; then both are stopped, and go on.
begin west mesh-late "${mesh[@]}" --set train.until.steps=30
pause 1
check "west waits" kill -0 "${pids[west]}"
begin east mesh-late "${mesh[@]}" --set train.until.steps=30
end east "a late start" 0
end west "a late start" 0
check "each region keeps its own files" [ -e mesh-late-east/ckpt/3/east.h5 -a -e mesh-late-west/ckpt/3/west.h5 -a ! -e mesh-late-east/ckpt/3/west.h5 ]
first=$(id_of mesh-late-east/ckpt/3/east.h5)
by mesh-late "${mesh[@]}" --resume --set train.until.steps=60

# The id of a run: in every checkpoint; files of another run, and a start beside a resume, are refused.
newest=$(newest_round mesh-late-west)
check "an id of 128 bits" grep -qxE '[0-9a-f]{32}' <<<"$first"
check "the same in both regions, after the resume" same "$(id_of mesh-late-west/ckpt/$newest/west.h5)" "$first"
check "and in the final model" same "$(id_of mesh-late-east/final.h5)" "$first"
other=$(id_of mesh-apart-west/ckpt/$(newest_round mesh-apart-west)/west.h5)
check "another in another run" [ "$other" != "$first" ]
cp -r mesh-apart-west foreign-west
cp -r mesh-late-east foreign-east
begin east foreign "${mesh[@]}" --resume
begin west foreign "${mesh[@]}" --resume
end east "checkpoints of two runs" 4 "region west has checkpoints of run $other, and region east of run $first; resume every region"
end west "checkpoints of two runs" 4 "$first.*$other|$other.*$first"
rm -r foreign-west
begin east foreign "${mesh[@]}" --resume
begin west foreign "${mesh[@]}"
end east "one begins" 4 "region east resumes run $first, and region west begins a new run; start all regions with --resume"
end west "one begins" 4 "region east resumes run $first, and region west begins"
rm -rf foreign-east foreign-west
cp -r mesh-late-west foreign-west
begin east foreign "${mesh[@]}"
begin west foreign "${mesh[@]}" --resume
end east "the first begins" 4 "region west resumes run $first, and region east begins run [0-9a-f]{32}; start all regions"
end west "the first begins" 4 "region west resumes run $first, and region east begins run [0-9a-f]{32}"

# Sites may differ in paths.
mkdir elsewhere && cp data.h5 west.pem west.key elsewhere
begin west mesh-places "${mesh[@]}" --set data.path=elsewhere/data.h5 --set wan.tls.cert=elsewhere/west.pem --set 'regions.0.listen=0.0.0.0:1' --set slurm.partition=gpu
begin east mesh-places "${mesh[@]}"
end east "other paths" 0
end west "other paths" 0
check "other paths: the bits of one job" same "$(field mesh-places-east params_sha256)" "$(field mesh params_sha256)"

# One site fetches its data and measures, the other one has a file and takes the rule.
mkdir files && cp data.h5 files
/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/file_server.py" "$web" files log 2>server.err &
server=$!
for _ in $(seq 100); do (: <"/dev/tcp/127.0.0.1/$web") 2>/dev/null && break || pause 0.05; done
rule=("${choices[@]}") choices=()
GEOTRAIN_CACHE=$PWD/cache begin west other "${mesh[@]}" --set "data.path=http://127.0.0.1:$web/data.h5" --set train.choices=measure
choices=("${rule[@]}")
begin east other "${mesh[@]}"
end east "other choices, and a URL" 0
end west "other choices, and a URL" 0 'chosen by measurement'
kill "$server"

# A signal to one job stops both.
begin west stopped "${mesh[@]}" --set train.until.steps=100000
begin east stopped "${mesh[@]}" --set train.until.steps=100000
trains stopped-west
kill -USR1 "${pids[west]}"
end west "a signal" 75 '--resume'
end east "the other has a signal" 75 '--resume'
gone "a signal"

# Connections are cut all the time.
/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/tcp_proxy.py" "$through" "$port" cuts 2>/dev/null &
proxy=$!
cp apart.yaml direct.yaml
sed -i "s/address: '127.0.0.1:$port'/address: '127.0.0.1:$through', listen: '127.0.0.1:$port'/" apart.yaml
by mesh-cut "${mesh[@]}"
check "connections were cut" [ "$(cat cuts)" -ge 1 ]
kill "$proxy"
mv direct.yaml apart.yaml

# A region that fails says so; one that is killed is missed.
long=(--set train.until.steps=100000 --set limits.wan_patience=5s)
begin west broken "${mesh[@]}" "${long[@]}"
begin east broken "${mesh[@]}" "${long[@]}"
trains broken-west
mv broken-west/ckpt away && : >broken-west/ckpt
end west "its disk fails" 4
end east "its disk fails" 5 'region west has ended with code 4'
gone "its disk fails"
begin west killed "${mesh[@]}" "${long[@]}"
begin east killed "${mesh[@]}" "${long[@]}"
trains killed-west
for p in $(living); do
  tr '\0' ' ' <"/proc/$p/cmdline" | grep -q -- '--region west' && kill -KILL "$p"
done
end east "the other was killed" 5 'waited .* region west|region west .* waited|heard'
launcher=${pids[west]}
wait_end "the killed region" 30
gone "killed"

# What does not fit.
apart() {
  local name=$1 code=$2 text=$3
  shift 3
  begin east no
  begin west no "$@"
  end east "$name" "$code" "$text"
  end west "$name" "$code" "$text"
}
apart "own data at one site" 2 'regions.1.data.path is not given there and a path of the site here' --set regions.1.data.path=data.h5
apart "another job" 2 'rank 2 was started with another job .* seed' --set seed=4
begin norht no
end norht "no such region" 2 '.--region is "norht", which is no region of the job'
ranks=3 begin east no
end east "too many ranks" 2 '.--region east was started with 3 ranks; the job gives it 2'
begin east no --set wan.transport=mpi
end east "by MPI" 2 '.--region is given; expected a job of two or more regions, with wan.transport tcp'
begin east no --clock virtual --set compute.step=0.01s
end east "virtual clock" 2 '.--region is given under --clock virtual'
begin west no
for _ in $(seq 600); do grep -q "no connection with region east" west.err && break || pause 0.05; done
kill -USR1 "${pids[west]}"
end west "stopped before the others start" 75 'stopped by a signal before the other regions had started'

finish
