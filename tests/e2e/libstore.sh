# Shared by the end-to-end scripts of regions that meet in a store.  Sourced after lib.sh and
# libregions.sh: job.yaml, of one MPI job, and apart.yaml, of two with a folder; credentials for S3.
unset http_proxy https_proxy AWS_PROFILE AWS_SESSION_TOKEN HTTP_PROXY HTTPS_PROXY
export HOME=$PWD AWS_REGION=eu-central-1 AWS_ACCESS_KEY_ID=somekey AWS_SECRET_ACCESS_KEY=some/secret+key
job job.yaml
sed -i -e 's/emulate: true/emulate: false/' -e '/links:/d' -e 's/wan_patience: 30 s/wan_patience: 10 s/' job.yaml
sed "s|^wan:|wan:\n  transport: store\n  store: {url: 'file://$PWD/objects', poll: 10 ms}|" job.yaml >apart.yaml

# both NAME RUN WORDS...: both regions, to their end, with the bits of one MPI job, $bits.
both() {
  local name=$1 run=$2
  shift 2
  begin east "$run" "$@"
  begin west "$run" "$@"
  end east "$name" 0
  end west "$name" 0
  check "$name: the bits of one MPI job" same "$(field "$run-east" params_sha256) $(field "$run-west" params_sha256)" "$bits $bits"
}

# serves: starts a server of S3 with the files in `files`, which checks signatures; its pid is $server.
serves() {
  local port
  mkdir files
  read -r port <<<"$(free_ports 1)"
  /usr/bin/python3 "$GEOTRAIN_SOURCE/tests/e2e/file_server.py" "$port" files log --s3 somekey "some/secret+key" eu-central-1 2>server.err &
  server=$!
  trap 'kill $server 2>/dev/null; at_exit' EXIT
  for _ in $(seq 100); do (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; pause 0.05; done
  export AWS_ENDPOINT_URL=http://127.0.0.1:$port
}
