# processors: 1
# What tests/run.sh installs as root: Slurm's daemons if there is no Slurm; if there is one, only
# with --slurm.  Nothing is installed here: apt-get, dpkg-query and id are stand-ins.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

stand_in() { # FOLDER NAME WORDS: a program that does what the words say
  mkdir -p "$1" && printf '#!/bin/sh\n%s\n' "$3" >"$1/$2" && chmod +x "$1/$2"
}
stand_in bin id 'echo 0'
stand_in bin dpkg-query 'exit 1' # nothing is installed
stand_in bin apt-get 'echo "$@" >>"$ASKED"; exit 1'
for tool in bash sh env awk sed grep tr tail cut cat rm mktemp uname nproc dirname basename printf seq; do
  [ -e "bin/$tool" ] || ln -s "$(command -v "$tool")" "bin/$tool"
done
stand_in slurm scontrol 'exit 0'
export ASKED=$PWD/asked

# asks PATH [WORD...]: what run.sh requests from apt-get, and the Slurm daemons among it.
asks() {
  local path=$1
  shift
  : >asked
  (unset SLURM_CONF; PATH=$path bash "$GEOTRAIN_SOURCE/tests/run.sh" "$@") >out 2>err
  grep -q libcmocka-dev asked || fail "run.sh $* asks for what tests need" "$(cat out err | tail -n 3)"
  daemons=$(grep -oE 'slurmctld|slurmd|munge' asked | sort -u | tr '\n' ' ')
}

asks "$PWD/bin:$PWD/slurm"
check "on a machine with its own Slurm no other is installed" same "$daemons" ""
check "on a machine with its own Slurm it says so" grep -q 'has a Slurm of its own' out
asks "$PWD/bin:$PWD/slurm" --slurm
check "asked for, it is" same "$daemons" "munge slurmctld slurmd "
asks "$PWD/bin:$PWD/slurm" --full
check "on a machine with its own Slurm --full installs none either" same "$daemons" ""
if compgen -G '/etc/slurm*/slurm.conf' >/dev/null || [ -e /usr/local/etc/slurm.conf ]; then
  skip "on a machine without a Slurm" "this one has its own"
else
  asks "$PWD/bin"
  check "on a machine without a Slurm it is installed" same "$daemons" "munge slurmctld slurmd "
fi
finish
