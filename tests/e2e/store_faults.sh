# processors: 1
# Stores that fail: files that are seen late, a full disk, and an object that is deleted before it is
# read.  A run goes on with the same bits, or ends with one sentence.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"

unset http_proxy https_proxy AWS_PROFILE AWS_SESSION_TOKEN HTTP_PROXY HTTPS_PROXY
export HOME=$PWD AWS_REGION=eu-central-1 AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=some/secret+key
job job.yaml
sed -i -e 's/emulate: true/emulate: false/' -e '/links:/d' -e 's/wan_patience: 30 s/wan_patience: 4 s/' -e 's/steps: 60/steps: 20/' job.yaml
sed "s|^wan:|wan:\n  transport: store\n  store: {url: 'file://$PWD/objects', poll: 10 ms}|" job.yaml >apart.yaml

# both NAME RUN WORDS...: both regions, to their end, with the bits of one MPI job.
both() {
  local name=$1 run=$2
  shift 2
  begin east "$run" "$@"
  begin west "$run" "$@"
  end east "$name" 0
  end west "$name" 0
  check "$name: the bits of one MPI job" same "$(field "$run-east" params_sha256) $(field "$run-west" params_sha256)" "$bits $bits"
}

completes "one MPI job" 4 job.yaml --run-dir one
bits=$(field one params_sha256)

# ---- seen late -------------------------------------------------------------------------------------

mkdir files
read -r port <<<"$(free_ports 1)"
/usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/file_server.py" "$port" files log --s3 somekey "some/secret+key" eu-central-1 2>server.err &
server=$!
trap 'kill $server 2>/dev/null; at_exit' EXIT
for _ in $(seq 100); do (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; pause 0.05; done
export AWS_ENDPOINT_URL=http://127.0.0.1:$port
echo 0.2 >files/.lag
both "objects that are seen late" late --set wan.store.url=s3://private/run
kill $server

# ---- deleted by someone else -------------------------------------------------------------------------

begin east robbed --set wan.store.poll=200ms --set train.until.steps=10000
begin west robbed --set wan.store.poll=200ms --set train.until.steps=10000
trains robbed-east
for _ in $(seq 200); do # until one has gone that its reader had not seen
  rm -f objects/0-1/*/[1-9]* && pause 0.02
done
end west "objects deleted before they are read" 5 'region east'
end east "objects deleted before they are read" 5

# ---- a full disk -------------------------------------------------------------------------------------

mkdir small
if [ "$(id -u)" -ne 0 ] || ! mount -t tmpfs -o size=1m none small 2>/dev/null; then
  skip "a full disk" "a tmpfs can be mounted by root only, and not in every container"
  finish
fi
trap 'at_exit; umount small' EXIT
head -c 900000 /dev/zero >small/other
full_disk=(--set "wan.store.url=file://$PWD/small/objects")
begin east full "${full_disk[@]}"
begin west full "${full_disk[@]}"
for site in east west; do end $site "a full disk" 5; done
check "a full disk: it is said" grep -q 'the store fails, and is tried again for [0-9]* s: .*small/objects/.*: No space left on device' east.err west.err
begin east space "${full_disk[@]}"
begin west space "${full_disk[@]}"
pause 2
rm small/other
end east "a disk that is full for 2 s" 0
end west "a disk that is full for 2 s" 0
check "the bits of one MPI job" same "$(field space-west params_sha256)" "$bits"
finish
