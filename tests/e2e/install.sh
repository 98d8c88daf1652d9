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
