# processors: 1
# LSTM on reviews whose label is the order of two words: two regions learn it; a checkpoint
# evaluates, exports and resumes with the widths of its job; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libmodel.sh"

# reviews LINES SEED: other words around `good` and `bad`; 1 if `good` comes first.
reviews() {
  awk -v n="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    print "label\trating\tid\ttext"
    for (i = 0; i < n; i++) {
      text = ""; length_ = 2 + int(rand() * 7); a = int(rand() * (length_ - 1))
      b = a + 1 + int(rand() * (length_ - 1 - a)); first = int(rand() * 2)
      for (t = 0; t < length_; t++)
        text = text (t == a ? (first ? "Good" : "bad") : t == b ? (first ? "bad" : "good") : "w" int(rand() * 10)) "<br /> "
      print first "\t" 9 - first "\t" i "\t" text
    }
  }'
}
mkdir reviews
reviews 1600 1 >reviews/imdb_train.tsv
reviews 400 2 | gzip >reviews/imdb_test.tsv.gz
check "reviews are imported" "$GEOTRAIN" data import imdb reviews reviews.h5 --length 10
"$GEOTRAIN" data info reviews.h5 >info
for word in 'name +reviews$' '1 x 1 x 10 int32' 'features +14$' 'classes +2$' 'train +1600$' 'test +400$' 'vocabulary +[0-9a-f]{64}$'; do check "reviews: $word" grep -qE "$word" info; done
model_job reviews 'name: lstm, embedding: 8, hidden: 16' 240 32 'name: adamw, lr: 0.02' 'epochs: 0' 60
params=$((14 * 8 + 4 * 16 * (8 + 16) + 8 * 16 + 2 * 16 + 2))

train "lstm" 5 job.yaml --run-dir run
ended "lstm" 0 "reviews: lstm, $params parameters" 'auc'
check "it learns the order" above "$(field run test_accuracy)" 0.93
check "AUC" above "$(field run test_auc)" 0.97
sends_all "$params"

rebuilt 'auc' test_auc lstm.weight_hh_l0 "PyTorch's"

refused "resumed with another width" 2 'model.hidden is 16 there and 17 here' --run-dir run --resume --set model.hidden=17 --set train.until.steps=250
train "resumed" 5 job.yaml --run-dir run --resume --set train.until.steps=280
ended "resumed" 0 'auc'
checked "images for lstm" 3 'images of .* model lstm takes ids' --set data.path=images.h5
checked "reviews for gpt" 3 'samples are 10 ids with a label of 2 classes; model gpt predicts the next id of a text' --set 'model={name: gpt}'
checked "a width for lenet5" 2 'model.hidden is given and model.name is lenet5; it is for model.name lstm, niser only' --set 'model={name: lenet5, hidden: 4}'

# Regions with reviews of their own need the same words.
mkdir other && sed 's/w1/v1/' reviews/imdb_train.tsv >other/imdb_train.tsv && cp reviews/imdb_test.tsv.gz other
"$GEOTRAIN" data import imdb other other.h5 --length 10 --vocabulary 12 >/dev/null
refused "another vocabulary" 3 'features, vocabulary [0-9a-f]{8} \(other.h5\), region east .*; all regions need the same' --run-dir bad \
  --set regions.1.data.path=other.h5

learns test_accuracy 0.93 0.9
finish
