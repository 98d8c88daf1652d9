# processors: 1
# jobs/install on machines that are not Debian with root: names that apt does not know, optional
# packages, libraries that were installed in other ways.  Nothing is installed: apt-get, dpkg-query
# and id are stand-ins.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

stand_in() { # FOLDER NAME WORDS: a program that does what the words say
  mkdir -p "$1" && printf '#!/bin/sh\n%s\n' "$3" >"$1/$2" && chmod +x "$1/$2"
}
for tool in bash sh env awk sed grep tr cat rm tail; do
  mkdir -p tools && ln -s "$(command -v "$tool")" "tools/$tool"
done
stand_in root id 'echo 0'
stand_in user id 'echo 1000'
stand_in debian dpkg-query 'exit 1' # nothing is installed
# An apt-get that refuses every list with an unknown name.
stand_in debian apt-get 'case "$*" in *update*) exit 0 ;; esac
for name in $UNKNOWN; do case " $* " in *" $name "*) echo "E: Unable to locate package $name" >&2; exit 100 ;; esac; done
echo "$@" >>"$INSTALLED"'
for tool in cc cmake ninja mpicc mpirun h5cc; do stand_in built $tool 'exit 0'; done
stand_in built pkg-config 'exit 0'
export INSTALLED=$PWD/installed GEOTRAIN_ROOT=$GEOTRAIN_SOURCE

# installs FOLDERS GROUP...: install_packages with these folders of programs in PATH.
installs() {
  local path=$PWD/tools folder
  for folder in $1; do path=$PWD/$folder:$path; done
  rm -f installed
  PATH=$path bash -c '. "$GEOTRAIN_ROOT/jobs/install"; install_packages "$@"' - "${@:2}" >out 2>err
  code=$?
}

UNKNOWN=libdnnl-dev installs "debian root"
ended "an optional package that apt does not know" 0 'libdnnl-dev could not be installed, and is optional: '
check "an optional package that apt does not know: the others come" grep -qw libyaml-dev installed
UNKNOWN=dataset-fashion-mnist installs "debian root" images
ended "images that apt does not know" 0 'dataset-fashion-mnist could not be installed, and is optional: '
UNKNOWN='libyaml-dev libdnnl-dev' installs "debian root"
ended "a package that apt does not know" 1 'missing packages: libyaml-dev; apt-get could not install'
check "a package that apt does not know: the others come" grep -qw libhdf5-dev installed
check "a package that apt does not know: no other is named" same "$(grep 'missing packages:' err | grep -c hdf5)" 0
UNKNOWN='' installs "debian user"
ended "without root" 1 'they need root' 'GEOTRAIN_PACKAGES=no'
GEOTRAIN_PACKAGES=no installs "debian user built"
ended "libraries by other means" 0
GEOTRAIN_PACKAGES=no installs "debian user"
ended "nothing there" 1 'missing: cc cmake ninja pkg-config mpicc mpirun hdf5' 'CMAKE_PREFIX_PATH'
MODULEPATH=/etc/modulefiles installs "user"
ended "environment modules" 1 'module load mpi'

# cmake --install: submit finds the installed program without options.
cmake --install "$GEOTRAIN_HELPERS/.." --prefix "$PWD/prefix" >install.out 2>&1
check "cmake --install" same "$?" 0
check "installed" test -x prefix/share/geotrain/datasets/get -a -x prefix/share/geotrain/netem/lab -a -x prefix/share/geotrain/slurm/submit
job job.yaml
(unset GEOTRAIN; exec prefix/share/geotrain/slurm/submit job.yaml --dry-run) >out 2>err
code=$?
ended "submit as installed" 0 "^GEOTRAIN=$PWD/prefix/bin/geotrain\$" "^. $PWD/prefix/share/geotrain/slurm/steps\$"

# netem/lab, too: a job of one region is refused after geotrain has read it.
sed '/name: west/d; s/shares: \[1, 1\]/shares: [1]/; /links:/d' job.yaml >one.yaml
stand_in lab id 'echo 0'
for tool in ip tc ethtool nsenter unshare flock; do stand_in lab $tool 'exit 0'; done
(unset GEOTRAIN; PATH=$PWD/lab:/usr/bin:/bin exec prefix/share/geotrain/netem/lab up one.yaml) >out 2>err
code=$?
ended "netem/lab as installed" 2 'the job has 1 region'

# Man pages and completions: every command has a page; every option that it reads is in its help, and
# every option that the help lists is read.
share=prefix/share completion=prefix/share/bash-completion/completions/geotrain
read -ra commands <<<"$(sed -nE 's/^ +commands="(.*)"$/\1/p' $completion)"
check "commands" test ${#commands[@]} -gt 10
for command in "${commands[@]}"; do
  check "man page of $command" grep -qi "^.TH geotrain..$command " $share/man/man1/geotrain-"$command".1
  prefix/bin/geotrain help "$command" >help
  read_here=$(sed -nE "s/^ +$command\) .* options=\"(.*)\" ;;\$/\1/p" $completion)
  for option in $read_here; do grep -qF -- "$option" help || fail "help $command" "has no $option"; done
  for option in $(grep -oE '^  --[a-z-]+' help); do
    [[ " $read_here " == *" $option "* ]] || fail "completions of $command" "have no $option"
  done
done
complete_words() {
  bash -c "source $completion"'; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _geotrain; echo ${COMPREPLY[*]}' - "$@"
}
check "completion of commands" same "$(complete_words geotrain pr)" "probe predict"
check "completion of actions" same "$(complete_words geotrain cert s)" "sign show"
check "completion of options" same "$(complete_words geotrain watch run --)" "--once --json --progress"
check "completion of zsh" grep -q -- '--once' $share/zsh/site-functions/_geotrain
check "completion of fish" grep -qE -- 'watch.* -l once' $share/fish/vendor_completions.d/geotrain.fish
command -v groff >/dev/null && check "man pages without errors of groff" same "$(for page in $share/man/man?/*; do groff -man -ww -Tutf8 -z "$page" 2>&1; done)" ""
prefix/bin/geotrain --version >version
check "--version" grep -qE '^libraries: +.*MPI.*, OpenBLAS [0-9].*HDF5 [0-9]' version
commit=$(git -C "$GEOTRAIN_SOURCE" describe --always --abbrev=12 --exclude='*' 2>/dev/null)
[ -z "$commit" ] || check "--version: the commit" grep -qE "^commit: +[0-9a-f]{12}(-dirty)?$" version

# The installed program tests itself; a launcher without enough ranks, and another result at the
# second start.
mkdir tests
TMPDIR=$PWD/tests prefix/bin/geotrain selftest >out 2>err
code=$?
ended "selftest" 0 '^selftest: passed in'
check "selftest: nothing is left" same "$(ls -A tests)" ""
(cd tests && TMPDIR=. exec ../prefix/bin/geotrain selftest) >out 2>err
code=$?
ended "selftest in a relative TMPDIR" 0 '^selftest: passed in'
check "selftest in a relative TMPDIR: nothing is left" same "$(ls -A tests)" ""
rm -rf tests/*
program=$PWD/prefix/bin/geotrain # of living
TMPDIR=$PWD/tests prefix/bin/geotrain selftest >out 2>err &
selftest=$!
until compgen -G 'tests/*/run/*.jsonl' >/dev/null || ! kill -0 $selftest; do pause 0.05; done
kill -TERM $selftest
{ wait $selftest; } 2>/dev/null
check "selftest ended by a signal" same $? 143
check "selftest ended by a signal: no rank is left" same "$(living)" ""
check "selftest ended by a signal: nothing is left" same "$(ls -A tests)" ""
end_ranks
rm -rf tests/*
TMPDIR=$PWD/tests prefix/bin/geotrain selftest --launcher 'mpirun -n 1' >out 2>err
code=$?
ended "selftest on one rank" 7 'selftest: training: the launcher ended with exit code 2; the output is in .*/selftest.log'
cat >other <<'SH'
#!/bin/sh
case "$*" in *--resume=run*) rm -rf run && set -- "$1" train job.yaml --run-dir run --set train.optimizer.lr=0.04 ;; esac
exec $MPIRUN -n 4 "$@"
SH
chmod +x other
TMPDIR=$PWD/tests prefix/bin/geotrain selftest --launcher "$PWD/other" >out 2>err
code=$?
ended "selftest with other bits" 7 'selftest: resume: the parameters differ from those of the first run'
prefix/bin/geotrain selftest --launcher "no-such-launcher -n 4" >out 2>err
code=$?
ended "selftest without a launcher" 2 'no-such-launcher cannot be started'

# datasets/get finds the installed program, and writes where the user is.
mkdir idx
printf '\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdabcd' | tee idx/train-images-idx3-ubyte >idx/t10k-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\2\0\1' | tee idx/train-labels-idx1-ubyte >idx/t10k-labels-idx1-ubyte
before=$(find prefix | sort)
PATH=/usr/bin:/bin prefix/share/geotrain/datasets/get mnist --from idx --no-check >out 2>err
code=$?
ended "datasets/get as installed" 0 '^datasets/mnist.h5$'
"$GEOTRAIN" data info datasets/mnist.h5 >info 2>&1
check "datasets/get as installed: the data set is here" grep -q '^name  *mnist$' info
check "datasets/get as installed: nothing is written in the prefix" same "$(find prefix | sort)" "$before"
finish
