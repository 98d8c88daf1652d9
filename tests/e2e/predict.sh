# processors: 1
# predict: the rows of a folder of pictures and of tables score as `eval` scores the same samples;
# names of the classes also in models of a region without data; broken samples and other models.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN" data synth synth.h5 --train 600 --test 60 --classes 3 >/dev/null
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$GEOTRAIN_SOURCE/tests/e2e" /usr/bin/python3 - <<'PY'
import h5py, png
names = ["cat", 'a "b", c', "dog"]
with h5py.File("synth.h5") as f:
    for split in "train", "test":
        for i, (x, y) in enumerate(zip(f[split]["x"][:, :, :, 0], f[split]["y"][:])):
            png.write(f"pictures/{split}/{names[y]}/{i:04}.png", x)
PY
"$GEOTRAIN" data import folder pictures pictures.h5 >out 2>err || fail "import" "$(cat err)"
check "import: no warning" same "$(wc -c <err)" 0
mkdir -p other/a/in other/b other/c && cp "$(find pictures/train/cat -name '*.png' | head -n 1)" other/a/1.png && cp other/a/1.png other/b
touch other/a/in/{1,2}.webp other/labels.csv other/.hidden
plain data import folder other other.h5 --test-share 0
ended "other files, and a class without pictures" 0 'other: 3 files are left out, such as other/a/in/1.webp; expected .png, .jpg or .jpeg' 'other: 1 of 3 classes have no picture for training, such as .c.'
cat >job.yaml <<'YAML'
name: pictures
model: {name: lenet5}
data: {path: pictures.h5}
train: {until: {epochs: 1}, batch: 10, choices: rule, optimizer: {name: sgd, lr: 0.05}}
regions:
  - {name: hub, ranks: 1}
  - {name: east, ranks: 2}
sync: {topology: hub, local: sync, strategy: sma, period: 4}
YAML
train "a run" 3 job.yaml --run-dir run
ended "a run" 0

# predict NAME ARGUMENT...: rows in out.csv.
predict() {
  "$GEOTRAIN" predict "$@" >out.csv 2>err
  code=$?
  : >out
}
# scores TABLE: accuracy and mean loss of the rows, by the folder that each picture is in.
scores() {
  /usr/bin/python3 - "$1" <<'PY'
import csv, math, os, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
of = lambda row: os.path.basename(os.path.dirname(row["file"]))
assert all(row["probability"] == max((row[name] for name in set(map(of, rows))), key=float) == row[row["class"]] for row in rows)
assert [row["file"] for row in rows] == sorted(row["file"] for row in rows)
print("accuracy %.4f  loss %.3f" % (sum(row["class"] == of(row) for row in rows) / len(rows), -sum(math.log(float(row[of(row)])) for row in rows) / len(rows)))
PY
}

wanted=$("$GEOTRAIN" eval run pictures.h5 2>/dev/null | sed 's/ *(.*//')
predict run pictures/test
ended "a folder" 0 '[0-9] thread'
check "a row a picture" same "$(wc -l <out.csv)" 61
check "scored as by eval" same "$(scores out.csv)" "$wanted"
cp out.csv folder.csv
cat >f1.py <<'PY'
# Each class's samples, precision, recall and F1, and macro-F1, from rows of predict and their folders.
import csv, os
rows = list(csv.DictReader(open("out.csv", newline="")))
pairs = [(os.path.basename(os.path.dirname(r["file"])), r["class"]) for r in rows]
names, all_f1 = list(csv.reader(open("out.csv", newline="")))[0][3:], []
for name in names:
    t, p = sum(a == name for a, _ in pairs), sum(b == name for _, b in pairs)
    both = sum(a == b == name for a, b in pairs)
    all_f1.append(2 * both / (t + p))
    print(name.replace(" ", "_"), t, f"{both / p:.4f}" if p else "-", f"{both / t:.4f}", f"{all_f1[-1]:.4f}")
print("macro-F1", f"{sum(all_f1) / len(all_f1):.4f}")
PY
"$GEOTRAIN" eval run pictures.h5 --classes >classes.out 2>err
check "eval --classes" same "$(sed -e 1,2d -e 's/a "b", c/a_"b",_c/' classes.out | awk '{ $1 = $1; print }')" "$(/usr/bin/python3 f1.py)"
predict run pictures/test --threads 3
check "the same rows with other threads" cmp out.csv folder.csv
predict run/ckpt/"$(newest_round run)"/east.h5 "pictures/test/cat" pictures/test/dog
check "a checkpoint: the order of the arguments" same "$(cut -d, -f 1 out.csv | tail -n +2 | tr -d '"')" "$(find pictures/test/cat -name '*.png' | sort; find pictures/test/dog -name '*.png' | sort)"
predict run/ckpt/"$(newest_round run)"/hub.h5 pictures/test/dog
check "the file of a region without data: names" same "$(head -n 1 out.csv)" '"file","class","probability","a ""b"", c","cat","dog"'

# A picture that cannot be read: named, and a row without class.
mkdir mixed && cp "$(find pictures/test/cat -name '*.png' | head -n 1)" mixed/a.png && echo no >mixed/b.png && cp mixed/a.png mixed/c.png
predict run mixed
ended "a broken picture" 3 'mixed/b.png: cannot be read as a picture' '1 of 3 pictures could not be read'
check "a broken picture: its row" same "$(sed -n 3p out.csv)" '"mixed/b.png",,,,,'
check "a broken picture: the others" same "$(sed -n '2s/mixed.a.//p;4s/mixed.c.//p' out.csv | uniq | wc -l)" 1
ln -s gone.png mixed/d.png
predict run mixed
ended "a link to nothing" 3 'mixed/d.png: cannot be read as a picture: No such file' '2 of 4 pictures could not be read'
predict run nowhere
ended "no such folder" 3 'nowhere: cannot be read .No such file'
mkdir empty
predict run empty
ended "a folder without pictures" 3 'empty: has no pictures'
predict run
ended "no picture" 2 'predict: expected a model, then pictures, folders or tables'
predict run mixed --thread=0
ended "no threads" 2 "predict: --threads is '0'"

# Models of other samples, and one whose data set names no classes.
sed -e 's/pictures.h5/synth.h5/' -e 's/epochs: 1/steps: 2/' -e '/hub, ranks/d' -e 's/topology: hub, //' job.yaml >plain.yaml
train "no names" 2 plain.yaml --run-dir plain
predict plain mixed/a.png
check "numbers for names" same "$(head -n 1 out.csv)" '"file","class","probability","0","1","2"'
printf '1 0:1 3:1\n0 2:1 4:1\n' | tee shop.train.libfm >shop.test.libfm
"$GEOTRAIN" data import libfm . synth.h5 >/dev/null
train "ids" 2 plain.yaml --run-dir ids --set model.name=deepfm --set train.batch=1
predict ids mixed
ended "a model of ids" 4 'its model, deepfm, was trained neither on pictures nor on a table'

# ---- tables: as ids and as numbers, from rows without the label and with the columns in another order ----------------------------------

/usr/bin/python3 - <<'PY'
import csv, random
random.seed(1)
for name, n in ("train.csv", 600), ("test.csv", 200):
    with open(name, "w", newline="") as f, open("new-" + name, "w", newline="") as g:
        old, new = csv.writer(f), csv.writer(g)
        old.writerow(["id", "age", "color", "income", "buys"])
        new.writerow(["income", "extra", "color", "age"])
        for i in range(n):
            age, color, income = random.randint(18, 80), random.choice(["red", "green", 'bl"ue']), random.gauss(3, 1) * 1e3
            buys = "yes" if age / 80 + (color == "red") + income / 6e3 + random.gauss(0, 0.2) > 1.3 else "no"
            if name == "test.csv" and i < 5:
                color = "violet"
            old.writerow([i, age, color, repr(income), buys])
            new.writerow([repr(income), "x", color, age])
PY
for as in ids numbers; do
  [ $as = ids ] && model=deepfm || model=mlp
  rm -f table.h5
  "$GEOTRAIN" data import csv train.csv test.csv table.h5 --label buys --columns age,color,income --as $as >/dev/null 2>err || fail "import $as" "$(cat err)"
  sed -e 's/pictures.h5/table.h5/' -e "s/lenet5/$model/" -e 's/epochs: 1/epochs: 3/' job.yaml >table.yaml
  train "a table as $as" 3 table.yaml --run-dir table-$as
  ended "a table as $as" 0
  wanted=$("$GEOTRAIN" eval table-$as table.h5 2>/dev/null | sed -E 's/^accuracy ([0-9.]*)  loss ([0-9.]*).*/\1 \2/')
  predict table-$as new-test.csv
  ended "a table as $as: rows" 0
  found=$(/usr/bin/python3 - <<'PY'
import csv, math
rows, test = list(csv.DictReader(open("out.csv", newline=""))), list(csv.DictReader(open("test.csv", newline="")))
assert [row["row"] for row in rows] == [f"new-test.csv:{i + 2}" for i in range(200)]
pairs = list(zip(rows, test))
print("%.4f %.3f" % (sum(r["class"] == t["buys"] for r, t in pairs) / 200, -sum(math.log(float(r[t["buys"]])) for r, t in pairs) / 200))
PY
)
  check "a table as $as: scored as by eval" same "$found" "$wanted"
  check "a table as $as: better than guessing" awk -v a="${found% *}" 'BEGIN { exit a < 0.7 }'
done
printf 'age,color,income\n30,red,1e3\n ,red,1e3\n40,red,many\n50,red\n1,"a"b,1\n20,green,5\n' >broken.csv
predict table-numbers broken.csv
ended "broken rows" 3 'broken.csv: line 3 has no value in column age; expected a number' 'line 4 has .many. in column income' 'line 5 has 2 fields; expected 3' 'line 6 has text after the quotes' '4 of 6 rows could not be read'
check "broken rows: no class" same "$(grep -c ',,,,$' out.csv) $(wc -l <out.csv)" "4 7"
printf 'age,color,income\n30,red,1e3\n20,green,5\n40,"red,1\n' >open.csv
predict table-numbers open.csv
ended "open quotes" 3 'open.csv: the quotes that line 4 opens are not closed'
check "open quotes: the rows before" same "$(grep -c '^"open.csv:[23]",".*[0-9]$' out.csv) $(wc -l <out.csv)" "2 3"
printf 'age,color,income,age\n1,red,2,3\n' >twice.csv
predict table-numbers twice.csv
ended "a table with a column twice" 3 'twice.csv: columns 1 and 4 have the name .age.; expected different names'
printf 'age,income\n1,2\n' >narrow.csv
predict table-numbers narrow.csv
ended "a table without a column" 3 'narrow.csv: has no column .color.; expected the columns of table-numbers/final.h5'
finish
