# processors: 1
# One schema for regions with other classes and categories, without moving data: three regions import
# pictures of their own, one without two of the classes, and end with the bits of HDF5 files of the
# same samples; tables; words of errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python=/usr/bin/python3
if ! "$python" -c 'import h5py' 2>/dev/null; then
  skip "regions with other classes" "$python has no h5py (Debian: python3-h5py)"
  finish
fi

# ---- pictures -------------------------------------------------------------------------------------

"$GEOTRAIN" data synth synth.h5 --train 600 --test 60 --classes 5 >/dev/null
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$GEOTRAIN_SOURCE/tests/e2e" "$python" - <<'PY'
import h5py, png, numpy as np
names = ["ant", "bee", "cat", "dog", "eel"]
with h5py.File("synth.h5") as f:
    data = {s: (f[s]["x"][:], f[s]["y"][:]) for s in ("train", "test")}
for r in range(3): # region 1 has no cat and no eel; region 2 no ant
    with h5py.File(f"right-{r}.h5", "w") as out:
        for s, (x, y) in data.items():
            own = [i for i in range(r, len(y), 3) if not (r == 1 and y[i] in (2, 4)) and not (r == 2 and y[i] == 0)]
            own.sort(key=lambda i: (names[y[i]], i))
            out[f"{s}/x"], out[f"{s}/y"] = x[own], y[own]
            for i in own:
                png.write(f"p{r}/{s}/{names[y[i]]}/{i:04}.png", x[i, :, :, 0])
        t = out["train/x"][:] / 255
        out.attrs.update(geotrain_schema=1, name="right", classes=5, class_names=names, mean=np.float32([t.mean()]), std=np.float32([t.std()]))
PY
for r in 0 1 2; do "$GEOTRAIN" data import folder p$r own-$r.h5 >/dev/null 2>&1 || fail "import p$r"; done
cat >job.yaml <<'YAML'
name: pictures
model: {name: lenet5}
data: {partition: {by: file}}
train: {until: {epochs: 1}, batch: 10, choices: rule, optimizer: {name: sgd, lr: 0.05}}
regions: [{name: a, ranks: 2}, {name: b, ranks: 2}, {name: c, ranks: 2}]
sync: {local: sync, strategy: sma, period: 4, weights: samples}
YAML
files() { for r in 0 1 2; do echo "--set regions.$r.data.path=$1-$r.h5"; done; }
train "classes of their own" 6 job.yaml --run-dir none $(files own)
ended "classes of their own" 3 'region b has samples of 28 x 28 x 1 uint8 of 3 classes .own-1.h5., region a of .* of 5 classes .* .geotrain data schema. makes one schema of the files, which .geotrain data import --schema. or .data classes --schema. uses'
for r in 0 1 2; do "$GEOTRAIN" data schema own-$r.h5 --out $r.json >out 2>err || fail "schema $r" "$(cat err)"; done
"$GEOTRAIN" data schema own-0.h5 own-1.h5 own-2.h5 >all.json
"$GEOTRAIN" data schema 0.json 1.json 2.json >joined.json
check "the union of schemas is that of the files" cmp all.json joined.json
check "it has names, no samples" same "$(tr -d ' \n' <all.json)" '{"geotrain_data_schema":1,"classes":["ant","bee","cat","dog","eel"]}'
for r in 0 1 2; do
  "$GEOTRAIN" data import folder p$r again-$r.h5 --schema all.json >out 2>err || fail "import $r" "$(cat err)"
  "$GEOTRAIN" data classes own-$r.h5 renamed-$r.h5 --schema all.json >out 2>err || fail "classes $r" "$(cat err)"
done
for files in right again renamed; do
  train "$files" 6 job.yaml --run-dir $files $(files $files)
  ended "$files" 0
done
echo '{"geotrain_data_schema":1,"classes":["eel","dog","cat","bee","ant"]}' >turned.json
for r in 0 1 2; do "$GEOTRAIN" data classes renamed-$r.h5 turned-$r.h5 --schema turned.json >/dev/null && mv turned-$r.h5 renamed-$r.h5; done
train "resume with renumbered classes" 6 job.yaml --run-dir renamed $(files renamed) --resume --set train.until.epochs=2
ended "resume with renumbered classes" 4 'its data/class_names differs from that of renamed-[012].h5'
train union 6 job.yaml --run-dir union $(files own) --set data.classes=union
ended "data.classes union" 0
check "data.classes union: the same bits" same "$(field union params_sha256)" "$(field right params_sha256)"
# the numbers of a file's classes do not matter: own-1.h5 has three of the five
for r in 1 2; do
  plain eval right right-$r.h5
  cp out right.out
  plain eval union own-$r.h5
  check "eval: region $r by its own file" same "$(cut -d ' ' -f 1-6 out)" "$(cut -d ' ' -f 1-6 right.out)"
done
"$GEOTRAIN" data classes own-1.h5 fox.h5 ant=fox >/dev/null || fail "data classes"
plain eval union fox.h5
ended "eval: a class that the model lacks" 3 'fox.h5 has the class .fox., which the model of .*union/final.h5 lacks'
plain info job.yaml --check $(files own) --set data.classes=union
ended "data.classes union: info --check" 0 '^check: ok$'
cp synth.h5 own-3.h5 # its classes have no names
train nameless 6 job.yaml --run-dir nameless $(files own) --set data.classes=union --set regions.2.data.path=own-3.h5
ended "data.classes union, no names" 3 'data.classes is union, and the classes of region c .own-3.h5. have no names'
check "imported with the schema: the same bits" same "$(field again params_sha256)" "$(field right params_sha256)"
check "renamed by the schema: the same bits" same "$(field renamed params_sha256)" "$(field right params_sha256)"

# ---- tables ---------------------------------------------------------------------------------------

"$python" - <<'PY'
import random
r = random.Random(4)
for k, cities in enumerate(("abc", "bcde")):
    with open(f"t{k}.csv", "w") as out:
        out.write("age,city,y\n" if k == 0 else "city,age,y\n")
        for i in range(400):
            age, city = r.randrange(18 + 20 * k, 70 + 20 * k), r.choice(cities)
            out.write(",".join([str(age), city] if k == 0 else [city, str(age)]) + f",{int(age > 50)}\n")
PY
awk -F, -v OFS=, '{ print $2, $1, $3 }' t0.csv >turned.csv
cat >table.yaml <<'YAML'
name: table
model: {name: deepfm}
data: {partition: {by: file}}
train: {until: {epochs: 1}, batch: 20, choices: rule, optimizer: {name: sgd, lr: 0.05}}
regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]
sync: {strategy: sma, period: 4}
YAML
for as in ids numbers; do
  model=$([ $as = ids ] && echo deepfm || echo mlp)
  sets=(--set "model.name=$model" --set "regions.0.data.path=$as-0.h5" --set "regions.1.data.path=$as-1.h5")
  for k in 0 1; do "$GEOTRAIN" data import csv t$k.csv $as-$k.h5 --label y --as $as >out 2>err || fail "import t$k" "$(cat err)"; done
  train "$as of their own" 4 table.yaml --run-dir none "${sets[@]}"
  ended "$as of their own" 3 'all regions need the same: number classes, ids and columns alike'
  "$GEOTRAIN" data schema $as-0.h5 $as-1.h5 --out $as.json >out 2>err || fail "schema" "$(cat err)"
  for k in 0 1; do "$GEOTRAIN" data import csv t$k.csv $as-$k.h5 --label y --as $as --schema $as.json >out 2>err || fail "import t$k" "$(cat err)"; done
  train "$as with a schema" 4 table.yaml --run-dir $as "${sets[@]}"
  ended "$as with a schema" 0
  # the same table with its columns in another order: of one shape, with other meanings
  for k in 0 1; do "$GEOTRAIN" data import csv $([ $k = 0 ] && echo t0.csv || echo turned.csv) one-$k.h5 --label y --as $as >out 2>err || fail "import $k" "$(cat err)"; done
  one=(--set "model.name=$model" --set data.path=one.h5 --set data.partition.by=shares)
  cp one-0.h5 one.h5
  train "$as, one file" 4 table.yaml --run-dir one-$as "${one[@]}"
  ended "$as, one file" 0
  plain eval one-$as one-0.h5
  ended "$as: eval" 0
  plain eval one-$as one-1.h5
  ended "$as: eval with other columns" 3 'one-1.h5 was imported with other columns, words or tokens than the data of the model of one-'$as'/final.h5 \(data/columns differs\)'
  cp one-1.h5 one.h5
  train "$as: resume with other columns" 4 table.yaml --run-dir one-$as "${one[@]}" --resume --set train.until.epochs=2
  ended "$as: resume with other columns" 4 'its data/columns differs from that of one.h5; expected the data with which it was trained'
  train "$as: train.init with other columns" 4 table.yaml --run-dir two-$as "${one[@]}" --set train.init=one-$as/final.h5
  ended "$as: train.init with other columns" 4 'train.init one-'$as'/final.h5: its data/columns differs from that of one.h5; .*, or an import by their schema'
done

# ---- words of errors ------------------------------------------------------------------------------

says() { # NAME CODE WORDS ARGUMENTS...
  "$GEOTRAIN" data "${@:4}" >out 2>err
  code=$?
  ended "$1" "$2" "$3"
}
says "a text" 2 'data schema has no file names' schema
says "no renames" 2 'data classes has 2 arguments; expected FILE.h5 OUT.h5 and OLD=NEW, or --schema' classes own-0.h5 x.h5
says "a class that is not there" 2 'data classes has .fox=ant.; expected OLD=NEW with the name of a class of own-0.h5' classes own-0.h5 x.h5 fox=ant
says "one class left" 3 'x.h5: has 1 class; expected 2 or more' classes own-1.h5 x.h5 ant=x bee=x dog=x
says "a schema that lacks classes" 3 'the schema has 3 classes, and none is .cat.' import folder p0 x.h5 --schema own-1.h5
says "a data set in place of a schema" 2 'own-0.h5 exists and is no schema file' schema own-1.h5 --out own-0.h5
echo '{"important": 1}' >mine.json
says "another file of JSON" 2 'mine.json exists and is no schema file' schema own-1.h5 --out mine.json
check "it is unchanged" same "$(cat mine.json)" '{"important": 1}'
says "a schema replaces a schema" 0 'wrote 1.json' schema own-1.h5 --out 1.json
says "classes renamed and merged" 0 'wrote x.h5' classes own-0.h5 x.h5 ant=insect bee=insect
"$GEOTRAIN" data info x.h5 >info
check "their names" same "$(sed -nE 's/^[0-9]+ +[0-9]+ +[0-9]+  //p' info | paste -sd ' ')" "insect cat dog eel"
finish
