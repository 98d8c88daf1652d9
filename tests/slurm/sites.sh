# labels: full
# timeout: 900
# Two Slurm clusters, each with one region of a job as its own: the second starts later; a signal to
# one job, or its requeue, requeues both, and they resume by themselves; the job of one is killed, and
# both continue after another submission.  All end with the model of one MPI job.
# SITES_LATE: seconds between the two submissions (5).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/libregions.sh"
declare -A clusters confs ids

# at SITE: the commands of Slurm, and the functions of lib.sh, then mean this site's cluster.
at() { cluster=${clusters[$1]} SLURM_CONF=${confs[$1]}; }

end_sites() {
  local site
  for site in "${!clusters[@]}"; do at "$site" && cluster_down; done
  at_exit
}
trap end_sites EXIT

for site in east west; do
  cluster_up
  clusters[$site]=$cluster confs[$site]=$SLURM_CONF
done
slurm_job job.yaml
undisturbed job.yaml
read -r port < <(free_ports 1)
certify east west
sed -e "s/{name: east, ranks: 2,/{name: east, ranks: 2, address: '127.0.0.1:$port',/" -e "s|^wan:|wan:\n  transport: tcp\n  $tls|" job.yaml >sites.yaml

# send SITE NAME: submits the site's job; its id is in ${ids[SITE]}.
send() {
  at "$1"
  submitted "$2, $1" sites.yaml "$2-$1" --region "$1" && ids[$1]=$id
}

# trains_at RUN ROUND: waits until the site has a file of a round that is at least as new.
trains_at() {
  local newest
  for _ in $(seq 1200); do
    newest=$(newest_round "$1")
    [ "${newest:-0}" -ge "$2" ] && return
    pause 0.05
  done
  fail "$1: round $2" "it did not come: $(log_end "$1")"
}

# end_at SITE NAME CODE: the site's job ends with this code.
end_at() {
  at "$1"
  wait_job "$2, $1" "${ids[$1]}" 150 "$2-$1"
  job_ended "$2, $1" "$2-$1" "$3"
  nothing_runs "$2, $1"
}

# well NAME: both end with 0, the same results, and the model of one MPI job.
well() {
  end_at east "$1" 0
  end_at west "$1" 0
  check "$1: the same summary everywhere" cmp "$1-east/summary.json" "$1-west/summary.json"
  same_model "$1" "$1-west"
}

# requeued NAME: both jobs were requeued, and their runs resumed.
requeued() {
  local site
  well "$1"
  for site in east west; do
    at "$site"
    check "$1, $site: requeued" test "$(show "${ids[$site]}" Restarts)" -ge 1
  done
  check "$1: resumed from a round" test "$(field "$1-west" resumes)" -ge 1
}

send west late
pause "${SITES_LATE:-5}"
check "late: the first waits" same "$(show "${ids[west]}" JobState)" RUNNING
send east late
well late
check "late: one host each" same "$(region_on late-east/slurm.log east) $(region_on late-east/slurm.log west)" "eu1 us1"

send east signal
send west signal
trains_at signal-west 3
at west
scancel --batch --signal=USR1 "${ids[west]}"
requeued signal

send east requeue
send west requeue
trains_at requeue-east 4
at east
scontrol requeue "${ids[east]}"
requeued requeue

send east killed
send west killed
trains_at killed-west 3
at west
for p in $(job_processes); do
  tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q 'geotrain train .*--region west' && kill -KILL "$p"
done
end_at east killed 5
end_at west killed 137
for site in east west; do
  at "$site"
  check "killed: $site is submitted again" submits --again "killed-$site"
  ids[$site]=$(awk 'END { print $1 }' "killed-$site/slurm-jobs")
done
well killed

for site in east west; do
  at "$site"
  token=$(cat "$cluster/token")
  cluster_down
  unset "clusters[$site]"
  check "nothing of the cluster of $site is left" same "$(grep -lsF "/hosts-$token " /proc/[0-9]*/mountinfo)" ""
done
check "no rank is left" same "$(living)" ""
finish
