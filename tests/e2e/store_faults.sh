# processors: 1
# Stores that fail: files that are seen late, a full disk, and an object that is deleted before it is
# read.  A run goes on with the same bits, or ends with one sentence.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libstore.sh"
sed -i -e 's/wan_patience: 10 s/wan_patience: 4 s/' -e 's/steps: 60/steps: 20/' job.yaml apart.yaml

completes "one MPI job" 4 job.yaml --run-dir one
bits=$(field one params_sha256)

# ---- seen late -------------------------------------------------------------------------------------

serves
echo 0.2 >files/.lag
both "objects that are seen late" late --set wan.store.url=s3://private/run
rm files/.lag

# ---- a session token that expires --------------------------------------------------------------------

# token TEXT: the file of credentials has this token.
mkdir .aws
token() {
  printf '[default]\naws_access_key_id = somekey\naws_secret_access_key = some/secret+key\naws_session_token = %s\n' "$1" >.aws/new
  mv .aws/new .aws/credentials
}
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
token old
for site in east west; do begin $site token --set wan.store.url=s3://private/token --set train.until.steps=400; done
trains token-east
printf old >files/.expired
pause 0.5
token new
for site in east west; do end $site "a session token that expires" 0; done

# ---- a message that takes longer than the patience ---------------------------------------------------

echo 3 >files/.slow
slow=(--set wan.store.url=s3://private/slow --set train.until.steps=4 --set 'limits.wan_patience=2 s')
begin east slow "${slow[@]}"
begin west slow "${slow[@]}"
for site in east west; do end $site "a message that takes longer than the patience" 0; done
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
