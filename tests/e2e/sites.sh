# processors: 2
# What a site of a run does before and during it: check its part of the job, measure the links to the
# other sites, follow the run from its own run directory; and the commands that a plan prints for it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
data_train=1000
job job.yaml
read -r port < <(free_ports 1)
certify east west
sed -e "s/name: east, ranks: 2/name: east, ranks: 2, address: '127.0.0.1:$port'/" -e 's/emulate: true/emulate: false/' -e "s|^wan:|wan:\n  transport: tcp\n  $tls|" job.yaml >apart.yaml

# tell NAME CODE WORD... -- COMMAND...: its code and words.
tell() {
  local name=$1 want=$2 words=()
  shift 2
  while [ "$1" != -- ]; do words+=("$1") && shift; done
  shift
  "$@" >out 2>err </dev/null
  code=$?
  ended "$name" "$want" "${words[@]}"
}

# ---- info --check --region ---------------------------------------------------------------------------------------------------------------
check=("$GEOTRAIN" info apart.yaml --check --region)
tell "a site that listens" 0 "^site east: mpirun -n 2; certificate east.pem, valid until .* UTC; listens at 127.0.0.1:$port" '^check: ok$' -- "${check[@]}" east
tell "a site that dials" 0 '^site west: .* dials the others$' -- "${check[@]}" west
tell "no such region" 2 '.--region is "wets", which is no region of the job; did you mean "west"' -- "${check[@]}" wets
for key in ca cert key; do
  tell "no file of wan.tls.$key" 3 "wan.tls.$key: nowhere.pem cannot be read.*: No such file or directory" -- "${check[@]}" west --set wan.tls.$key=nowhere.pem
  tell "a folder for wan.tls.$key" 3 "wan.tls.$key: ca cannot be read.*: Is a directory" -- "${check[@]}" west --set wan.tls.$key=ca
done
tell "another region's certificate" 2 'east.pem has the name east; expected that of region west' -- "${check[@]}" west --set wan.tls.cert=east.pem --set wan.tls.key=east.key
tell "an expired certificate" 2 'west.pem: the certificate expires at .*, before the end of a job of 86400000 s \(slurm.time\)' -- "${check[@]}" west --set slurm.time=1000d
tell "its data" 3 'nowhere.h5' -- "${check[@]}" west --set data.partition.by=file --set data.partition.shares=null --set regions.0.data.path=far.h5 --set regions.1.data.path=nowhere.h5
tell "another site's data are not looked for" 0 '^check: ok$' -- "${check[@]}" west --set data.partition.by=file --set data.partition.shares=null --set regions.0.data.path=far.h5 --set regions.1.data.path=data.h5
"$GEOTRAIN" data synth own.h5 --train 1 --test 1 >/dev/null || fail "own data"
own=(--set data.partition.by=file --set data.partition.shares=null --set regions.0.data.path=own.h5 --set regions.1.data.path=own.h5)
tell "another site's data of the same path" 0 '^region east: not checked here: own.h5$' '^region west: 1 training' '^check: ok$' -- "${check[@]}" west "${own[@]}"
tell "the same on a machine that submits" 0 '^region west: not checked here: own.h5$' -- "$GEOTRAIN" info apart.yaml --check=here "${own[@]}"
mkdir objects
for url in "file://$PWD/objects" "file://$PWD/none" s3://bucket/prefix; do
  [[ $url = */objects ]] && words='a folder that can be written$' || words='which is not checked; '
  tell "a store, ${url##*/}" 0 "^site west: mpirun -n 2; meets the others in $url, $words" '^check: ok$' -- "${check[@]}" west --set "wan={transport: store, store: {url: '$url'}}"
done
tell "one MPI job" 2 '.--region is given; expected a job of two or more regions, with wan.transport tcp' -- "$GEOTRAIN" info job.yaml --check --region west

# ---- plan --write ------------------------------------------------------------------------------------------------------------------------
cp apart.yaml plan.yaml
cat >>plan.yaml <<'YAML'
compute: {samples_per_s: 1000, local: 1 ms}
plan: {strategies: [ssgd, sma]}
YAML
tell "a plan" 0 '^as one MPI job for each region, with out.yaml at every site:$' \
  '^  mpirun -n [0-9]+ geotrain train out.yaml --region east --run-dir runs/drill$' '^  slurm/submit out.yaml --region west$' -- \
  "$GEOTRAIN" plan plan.yaml --write out.yaml --set regions.1.slurm.partition=gpu
tell "its job is one of sites" 0 '^check: ok$' -- "$GEOTRAIN" info out.yaml --check --region east
tell "the plan of one MPI job" 0 -- "$GEOTRAIN" plan plan.yaml --write one.yaml --set wan.transport=mpi
check "the plan of one MPI job: no commands of sites" [ "$(grep -c region= out)$(grep -c -e '--region' out)" = 00 ]

# ---- probe --region ----------------------------------------------------------------------------------------------------------------------
# probes REGION WORDS...: starts the site's probe.
probes() {
  local region=$1
  shift
  $MPIRUN -n 2 "$GEOTRAIN" probe apart.yaml --region "$region" "$@" >"$region.out" 2>"$region.err" </dev/null &
  pids[$region]=$!
}
probes west
probes east
end west "probe" 0 '^west +dials only +west.pem, of west, until .* UTC$' '^ +ms +Mbit/s$' '^east +west +[0-9.]+ +[0-9.]+$' '^west +east +[0-9.]+ +[0-9.]+$' '^GO$'
end east "probe" 0 "^east +127.0.0.1:$port +east.pem" '^GO$'
check "the same at both sites" cmp east.out west.out
check "a probe leaves nothing" [ ! -e runs -a ! -e profile.yaml ]
probes west --set slurm.time=1000d
probes east --set slurm.time=1000d
end west "probe, certificates too short" 7 '^NO-GO$' 'the certificate of region east expires at .* before the end of a job of 86400000 s'
end east "probe, certificates too short" 7 '^NO-GO$'
gone "probes"

# ---- watch ----------------------------------------------------------------------------------------------------------------------------------
begin west run --set train.until.steps=100000 --set log.every=1s
begin east run --set train.until.steps=100000 --set log.every=1s
trains run-west
pause 2
for site in east west; do tell "watch at $site" 0 'epoch .*samples/s' -- "$GEOTRAIN" watch --once run-$site; done
kill -USR1 "${pids[east]}"
end east "stopped" 75
end west "stopped" 75
for site in east west; do tell "watch at $site after a stop" 0 'stopped by a signal at step [0-9]+, checkpoint of round [0-9]+ written' -- "$GEOTRAIN" watch --once run-$site; done

finish
