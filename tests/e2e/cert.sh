# processors: 1
# The certificates of regions: a CA, requests, signatures, revocation; secret keys, no file
# overwritten, and requests that are refused.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# cert CODE WORDS...: runs `geotrain cert WORDS`; its output is in out and err.
cert() {
  local want=$1
  shift
  plain cert "$@"
  check "cert $*: code $want" same "$code" "$want"
}
mode() { stat -c %a "$1"; }

cert 0 init runs/ca
check "the CA's key is secret" same "$(mode runs/ca/ca.key)" 600
cert 2 init runs/ca
check "a second CA is refused" grep -q 'ca.key: cannot be created: File exists' err
cert 0 request us
check "the region's key is secret" same "$(mode us.key)" 600
cert 2 request us
cert 2 request ../us
check "a name of another folder is refused" grep -q "is not a region's name" err
cert 0 sign runs/ca us.csr --days 30
cert 0 show us.pem
check "the certificate has the region's name" grep -qx 'name       us' out
check "its issuer is the CA" grep -qx 'issuer     geotrain CA' out
serial=$(sed -n 's/^serial *//p' out)
check "it ends in 30 days" grep -q "^until      $(date -u -d '+30 days' +%Y-%m-)" out
cert 0 revoke runs/ca us.pem
check "the list has its serial number" same "$(cat runs/ca/revoked)" "$serial"
cert 0 init other
cert 2 revoke other us.pem
check "another CA's certificate is not revoked" grep -q 'the CA in other has not signed it' err
cert 2 sign runs/ca us.pem
cert 3 sign runs/ca none.csr
sed '3s/^./A/;4s/^../zz/' us.csr >bad.csr
"$GEOTRAIN" cert sign runs/ca bad.csr >out 2>err
check "a damaged request is refused" [ $? -ge 2 -a ! -e bad.pem ]
cert 2 sign runs/ca us.csr --days 0
cert 2 init
cert 2 make runs/ca
check "an unknown action is refused" grep -q "unknown action 'make'" err
check "no key is printed" sh -c "! grep -l PRIVATE out err"

finish
