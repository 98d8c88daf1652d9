# processors: 1
# jobs/quickstart.sh when it is interrupted early and when it cannot write.  Nothing is built or
# trained: cmake, dpkg-query, mpirun and the program are stand-ins.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

stand_in() { # FILE WORDS: a program that does what the words say
  mkdir -p "$(dirname "$1")" && printf '#!/bin/bash\n%s\n' "$2" >"$1" && chmod +x "$1"
}
stand_in bin/cmake 'exit 0'
stand_in bin/dpkg-query 'echo install ok installed'
stand_in bin/mpirun 'echo "$*" >"$HERE/words"; env >"$HERE/environment"; touch "$HERE/started"; exec sleep 30'
export HERE=$PWD PATH=$PWD/bin:$PATH

# tree: a checkout in top, built, with its data.
tree() {
  rm -rf top started
  mkdir -p top/build/release top/datasets
  cp -r "$GEOTRAIN_SOURCE/jobs" top/
  stand_in top/build/release/geotrain 'echo part >"${5%/*}/.${5##*/}.tmp-$$-0"; touch "$HERE/started"; exec sleep 30'
  echo data >top/datasets/fashion-mnist.h5
}

# interrupted: sends TERM, which it handles like Ctrl-C, when something has started.
interrupted() {
  local pid i
  env -u OMPI_MCA_rmaps_base_oversubscribe -u PRTE_MCA_rmaps_default_mapping_policy -u I_MPI_PIN \
    bash top/jobs/quickstart.sh >out 2>err </dev/null &
  pid=$!
  for i in $(seq 100); do [ -e started ] || sleep 0.1; done
  kill -TERM "$pid"
  wait "$pid"
  code=$?
}

tree
interrupted
ended "stopped before the run began" 130 'stopped before the run began.*start it with: bash .*quickstart.sh'
check "stopped before the run began: no code is told" same "$(grep -c 'code 1[0-9][0-9]' err)" 0

# Open MPI 4's --oversubscribe has other names elsewhere: each MPI reads its own variables.
check "mpirun gets no word that is one MPI's alone" same "$(sed 's/ [^ ]*geotrain train.*//' words)" "-n 4"
for set in OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe I_MPI_PIN=0; do
  check "mpirun has $set" grep -qxF "$set" environment
done

if [ -d /usr/share/datasets/fashion-mnist ]; then
  tree
  mv top/datasets/fashion-mnist.h5 top/datasets/.fashion-mnist.h5.tmp-1-0 # of another import
  interrupted
  check "stopped while it imports: 130" same "$code" 130
  check "stopped while it imports: its own file goes, another's stays" same "$(ls -A top/datasets)" .fashion-mnist.h5.tmp-1-0
else
  skip "stopped while it imports" "there are no images in /usr/share/datasets/fashion-mnist"
fi

tree
rm top/datasets/fashion-mnist.h5
sed -i 's|^images=.*|images=$HERE/none|' top/jobs/quickstart.sh
stand_in bin/cmake 'touch "$HERE/built"; exit 0'
bash top/jobs/quickstart.sh >out 2>err </dev/null
code=$?
ended "no images" 3 'there are no images in .*/none .*datasets/get fashion-mnist'
check "no images: told before minutes of building" test ! -e built

tree
rm -r top/build && : >top/build # as on a read-only file system, where mkdir fails for root too
bash top/jobs/quickstart.sh >out 2>err </dev/null
code=$?
ended "a checkout that cannot be written" 2 'cannot be written; expected a checkout that can be'
check "a checkout that cannot be written: one sentence" same "$(wc -l <err)" 1
finish
