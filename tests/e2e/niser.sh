# processors: 1
# NISER on sessions in which each item leads to the next: two regions learn it; Recall@20 and MRR@20
# are in the record; a checkpoint evaluates, exports and resumes; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libmodel.sh"

# sessions LINES SEED: walks along a circle of 60 items, in steps of 1 and now and then of 7.
sessions() {
  awk -v n="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
      item = int(rand() * 60); length_ = 2 + int(rand() * 6); line = 1 + item
      for (t = 1; t < length_; t++) { item = (item + (rand() < 0.1 ? 7 : 1)) % 60; line = line " " 1 + item }
      print line
    }
  }'
}
mkdir sessions
sessions 1500 1 >sessions/all_train_seq.txt
sessions 400 2 | gzip >sessions/test.txt.gz
check "sessions are imported" "$GEOTRAIN" data import sessions sessions sessions.h5 --length 6
"$GEOTRAIN" data info sessions.h5 >info
for word in 'name +sessions$' '1 x 1 x 6 int32' 'features +61$' 'classes +60$' 'test +400$'; do check "sessions: $word" grep -qE "$word" info; done
model_job sessions 'name: niser, hidden: 16, scale: 12' 160 50 'name: adam, lr: 0.02' 'steps: 80' 60
params=$((61 * 16 + 11 * 16 * 16 + 10 * 16 + 2 * 16 * 16 + 3 * 16 + 2 * 16 * 16 + 16))

train "niser" 5 job.yaml --run-dir run
ended "niser" 0 "sessions: niser, $params parameters" 'recall@20'
check "it learns the next item: accuracy" above "$(field run test_accuracy)" 0.7
check "it learns the next item: Recall@20" above "$(field run test_recall20)" 0.9
check "it learns the next item: MRR@20" above "$(field run test_mrr20)" 0.75
check "MRR@20 is not above Recall@20" above "$(field run test_recall20)" "$(field run test_mrr20)"
check "no AUC" grep -q '"test_auc": null' run/summary.json
check "the table has Recall@20 of the regions" grep -qE '^region .* recall@20 +loss$' out
check "the record has both" grep -qE '"event":"eval".*"recall20":[01]\.[0-9]+,"mrr20":0\.[0-9]+' run/east.jsonl
sends_all "$params"

rebuilt 'recall@20 [0-9.]+  mrr@20' test_mrr20 gnn.linear_edge_out.weight "SR-GNN's"

refused "resumed with another scale" 2 'model.scale is 12 there and 16 here' --run-dir run --resume --set model.scale=16 --set train.until.steps=170
train "resumed" 5 job.yaml --run-dir run --resume --set train.until.steps=180
ended "resumed" 0 'recall@20'
checked "images for niser" 3 'images of .* model niser takes ids' --set data.path=images.h5
checked "a scale for lenet5" 2 'model.scale is given and model.name is lenet5; it is for model.name niser only' --set 'model={name: lenet5, scale: 4}'

learns test_recall20 0.9 0.9
finish
