# processors: 1
# Every strategy's jobs, with two regions or three uneven ones (GEOTRAIN_TESTS=full: with both), on a small data set: they end
# with 0, the bytes on each link are exactly those of the rule, and the regions' models are equal
# where they must be.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libwan.sh"

"$GEOTRAIN" data synth data.h5 --train 800 --test 100 >/dev/null || fail "data synth"
few=(--set data.path=data.h5 --set train.until.epochs=1 --set train.batch=32 --set train.eval_every.epochs=0 --set checkpoint.every.epochs=0)

# losses RUN: the test loss of each region's own model.
losses() { sed -n '/"regions": \[/,/\]/s/^ *"test_loss": \([^,]*\),*$/\1/p' "$1/summary.json"; }

for strategy in ssgd asgd asgd-ga ama sma none; do
  case $full,$strategy in
    yes,*) sizes='2 3' ;;
    *,asgd | *,ama | *,none) sizes=2 ;;
    *) sizes=3 ;;
  esac
  for regions in $sizes; do
    name=$strategy-$regions
    ranks=$((regions == 2 ? 4 : 8))
    sets=()
    case $strategy in asgd | asgd-ga) sets=(--set sync.scale=sum) ;; esac
    completes "$name" "$ranks" "$GEOTRAIN_SOURCE/jobs/$strategy-$regions-regions.yaml" --run-dir "$name" "${few[@]}" "${sets[@]}"
    check "$name: every sample was seen once" same "$(field "$name" samples)" 800
    check "$name: bytes of each link" as_the_rule_says "$name" "$strategy" 8 $((regions * (regions - 1)))
    check "$name: every region has a result" same "$(losses "$name" | wc -l)" "$regions"
    # Updates that all regions apply in full give one model except for the order of additions;
    # averaging with a barrier gives the same bits.
    case $strategy in
      ssgd | sma) check "$name: one model" same "$(losses "$name" | sort -u | wc -l)" 1 ;;
      none) check "$name: its own model in each region" same "$(losses "$name" | sort -u | wc -l)" "$regions" ;;
      asgd | asgd-ga) check "$name: one model but for rounding" same "$(losses "$name" | awk '{print int(1000 * $1 + 0.5)}' | sort -u | wc -l)" 1 ;;
    esac
  done
done
finish
