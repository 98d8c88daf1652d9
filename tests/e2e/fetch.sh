# processors: 1
# Data sets at a URL: copied once, resumed where they broke off, checked by their hash; S3 with a
# signature that the server checks; and one sentence for every refusal.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"

unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY AWS_PROFILE AWS_SESSION_TOKEN AWS_REGION AWS_ENDPOINT_URL
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
export GEOTRAIN_CACHE=$PWD/cache HOME=$PWD
read -r port secure <<<"$(free_ports 2)"
mkdir -p files/private
data files/a.h5
"$GEOTRAIN" data synth files/b.h5 --train 200 --test 50 --seed 5 >/dev/null
cp files/a.h5 "files/private/a b.h5"
certify localhost
# serve PORT LOG WORDS...: starts the server; it ends with this script.
serve() {
  /usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/file_server.py" "$1" files "$2" "${@:3}" 2>server.err &
  servers+=($!)
  for _ in $(seq 100); do (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; pause 0.05; done
  fail "the server" "$(tail -n 1 server.err)"
}
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; at_exit' EXIT
serve "$port" log --s3 somekey "some/secret+key" eu-central-1
serve "$secure" secure.log --tls localhost.pem localhost.key

url=http://127.0.0.1:$port
size=$(stat -c %s files/a.h5) hash=$(sha256sum files/a.h5 | cut -d ' ' -f 1)
asked() { grep -c . log; }
copy() { sed -n 's/^copy *//p' out; }

# fetch NAME WORDS...: data fetch, with an empty log.
fetch() {
  shift
  : >log
  plain data fetch "$@"
}

# ---- one copy ------------------------------------------------------------------------------------

fetch first $url/a.h5
ended "a first fetch" 0 "^copy *$PWD/cache/[0-9a-f]{16}-a.h5\$" "^sha256 *$hash\$"
check "the copy is the file" cmp "$(copy)" files/a.h5
check "only the copy and the lock stay" same "$(ls cache | sed 's/^.*-//' | paste -sd ' ')" "a.h5 a.h5.lock"
fetch second $url/a.h5
ended "a second fetch" 0 "$hash"
check "asks nothing" same "$(asked)" 0
fetch "a third, again" $url/a.h5 --again
check "--again asks" same "$(asked)" 1
plain data info "$url/a.h5"
ended "a data set by its URL" 0 "^file *$url/a.h5" '^train '
plain data info "$url/b.h5"
ended "without a copy" 3 "b.h5 has no copy here" 'geotrain data fetch URL'

# ---- broken connections ----------------------------------------------------------------------------

rm -r cache
echo 100000 >files/.break
fetch broken $url/a.h5
ended "a connection that breaks" 0 "$hash" 'asks again in 1 s'
check "the rest is asked for" same "$(paste -sd ' ' log)" "/a.h5 - /a.h5 bytes=100000-"

rm -r cache
echo 50000 >files/.stall
"$GEOTRAIN" data fetch $url/a.h5 >killed.out 2>&1 &
killed=$!
for _ in $(seq 200); do [ "$(stat -c %s cache/*.part 2>/dev/null)" = 50000 ] && break; pause 0.05; done
"$GEOTRAIN" data fetch $url/a.h5 >other.out 2>&1 &
other=$!
pause 0.5
check "a second process does not ask" same "$(grep -c . log)" 3
kill -KILL $killed $other
{ wait $killed $other; } 2>/dev/null
rm files/.stall
fetch resumed $url/a.h5
ended "a process that was killed" 0 "$hash" '50000 bytes are there; asks for the rest'
check "only the rest is asked for" same "$(cat log)" "/a.h5 bytes=50000-"

for server in "" "; the server ignores If-Range"; do
  rm -r cache
  echo 50000 >files/.break
  cp files/a.h5 files/c.h5
  fetch half $url/c.h5 & # changes while it is fetched
  for _ in $(seq 200); do [ "$(stat -c %s cache/*.part 2>/dev/null)" = 50000 ] && break; pause 0.02; done
  cp files/b.h5 files/c.h5
  wait $!
  check "a file that changes is fetched whole$server" cmp cache/*-c.h5 files/b.h5
  touch files/.mixes
done
rm files/.mixes

printf '503\n429\n' >files/.codes
rm -r cache
fetch busy $url/a.h5
ended "a busy server" 0 "$hash" 'the server answers 503; asks again in 1 s' 'answers 429; asks again in 2 s'

# ---- hashes, and refusals --------------------------------------------------------------------------

rm -r cache
fetch hash "$url/a.h5#sha256=$hash"
ended "the right hash" 0 "$hash"
wrong=$(printf '%064d' 0)
fetch wrong "$url/a.h5#sha256=$wrong"
ended "another hash than the copy's" 3 "SHA-256 is $hash; expected $wrong"
check "the copy was fetched again" same "$(asked)" 1
rm -r cache
fetch wrong "$url/a.h5#sha256=$wrong"
check "a file with another hash is no copy" same "$(ls cache | grep -c 'h5$')" 0
fetch short "$url/a.h5#sha256=12"
ended "a hash that is none" 3 '64 hexadecimal digits'
fetch missing $url/none.h5
ended "a missing file" 3 'none.h5: the server answers 404 .NoSuchKey.; expected the file'
fetch password http://me:hidden@127.0.0.1:$port/a.h5
ended "a password in a URL" 3 'has a password \(before @127'
check "is not printed" same "$(cat out err | grep -c hidden)" 0
fetch file files/a.h5
ended "a file" 2 'is no URL'
fetch nothing http://127.0.0.1:$port/
ended "no file" 3 'expected https://HOST/FILE'
GEOTRAIN_CACHE=/proc/none fetch nowhere $url/a.h5
ended "a folder that cannot be written" 3 '/proc/none/.*: cannot be written'

# ---- TLS, S3 ---------------------------------------------------------------------------------------

fetch untrusted "https://localhost:$secure/a.h5"
ended "an unknown certificate" 3 'cannot be fetched: '
SSL_CERT_FILE=ca/ca.pem fetch trusted "https://localhost:$secure/a.h5"
ended "a known one" 0 "$hash"

export AWS_ENDPOINT_URL=$url AWS_REGION=eu-central-1
fetch anonymous "s3://private/a b.h5"
ended "a blank in a name" 3 'blank'
cp "files/private/a b.h5" "files/private/a+b=.h5"
fetch anonymous "s3://private/a+b=.h5"
ended "a private bucket, anonymous" 3 'answers 403 \(AccessDenied\)' 'are AWS_ACCESS_KEY_ID'
AWS_ACCESS_KEY_ID=somekey fetch half "s3://private/a+b=.h5"
ended "half of the credentials" 3 'AWS_SECRET_ACCESS_KEY is not'
AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=another fetch secret "s3://private/a+b=.h5"
ended "another secret" 3 'SignatureDoesNotMatch'
check "no secret is printed" same "$(cat out err | grep -c another)" 0
AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=some/secret+key fetch signed "s3://private/a+b=.h5"
ended "signed" 0 "$hash"
AWS_SESSION_TOKEN=some/token== AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=some/secret+key fetch token "s3://private/a+b=.h5" --again
ended "signed, with a token" 0 "$hash"
echo 70000 >files/.break
AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=some/secret+key fetch signed "s3://private/a+b=.h5" --again
ended "signed, of which the connection breaks" 0 "$hash"
mkdir -p .aws
printf '[default]\naws_access_key_id = nobody\naws_secret_access_key = x\n[lab]\naws_access_key_id = somekey\n  aws_secret_access_key=some/secret+key\n' >.aws/credentials
AWS_PROFILE=lab fetch profile "s3://private/a+b=.h5" --again
ended "a profile" 0 "$hash"
fetch default "s3://private/a+b=.h5" --again
ended "another profile" 3 'InvalidAccessKeyId'
printf '[lab]\naws_access_key_id = somekey\naws_secret_access_key = some/secret+key\naws_session_token = %s\n' old >.aws/credentials
printf old >files/.expired
rm -r cache
AWS_PROFILE=lab fetch expired "s3://private/a+b=.h5" &
for _ in $(seq 100); do grep -q . log && break; pause 0.05; done
sed -i 's/= old/= new/' .aws/credentials
wait $!
check "a session token that has expired is read again" cmp cache/*-a_b_.h5 files/a.h5
AWS_SESSION_TOKEN=old AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=some/secret+key fetch expired "s3://private/a+b=.h5" --again
ended "a token of the environment that has expired" 3 'answers 400 \(ExpiredToken\)'
AWS_PROFILE=none fetch none "s3://private/a+b=.h5" --again
ended "no such profile" 3 'has no profile none'
fetch key "s3://private"
ended "no key" 3 'expected s3://BUCKET/KEY'

# ---- in a run --------------------------------------------------------------------------------------

job job.yaml
rm -r cache
: >log
completes "a run of a URL" 4 job.yaml --run-dir far --set "data.path=$url/a.h5#sha256=$hash"
check "all ranks share one copy" same "$(cat log)" "/a.h5 -"
completes "the run of the file" 4 job.yaml --run-dir near --set data.path=files/a.h5
check "the same parameters" same "$(field far params_sha256)" "$(field near params_sha256)"
rm -r cache
echo 50000 >files/.stall
train "a server that stalls" 4 job.yaml --run-dir stalls --set "data.path=$url/a.h5" --set 'limits.wan_patience=2 s'
ended "a server that stalls" 3 'a.h5: nothing arrived for 2 s'
rm files/.stall
for _ in $(seq 50); do echo 503; done >files/.codes
train "a server that is always busy" 4 job.yaml --run-dir stalls --set "data.path=$url/b.h5" --set 'limits.wan_patience=2 s'
ended "a server that is always busy" 3 'b.h5: nothing arrived for 2 s'
: >files/.codes
plain info job.yaml --check --set "data.path=$url/a.h5"
ended "info --check before a fetch" 3 'has no copy here'

finish
