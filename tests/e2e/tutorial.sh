# processors: 2
# Every command of docs/tutorial.md, in its order, each in the folder of the institute after "# at": on
# one host, with a port of this host for Berlin's address, and with pictures that are drawn here.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libregions.sh"
page=$GEOTRAIN_SOURCE/docs/tutorial.md
sites=(berlin lyon porto)
read -r port < <(free_ports 1)
mkdir bin "${sites[@]}"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$GEOTRAIN" >bin/geotrain
chmod +x bin/geotrain
call_mpirun bin
PATH=$PWD/bin:$PATH
awk '/^```yaml/ { on = 1; next } /^```/ { on = 0 } on' "$page" | sed "s/berlin.example.org:7443\", listen: \"0.0.0.0:7443/127.0.0.1:$port/" >job.yaml
for site in "${sites[@]}"; do cp job.yaml "$site/"; done

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$GEOTRAIN_SOURCE/tests/e2e" /usr/bin/python3 - <<'PY'
import png, random
draw = random.Random(1)
inside = {"circle": lambda x, y, s: x * x + y * y < s * s, "square": lambda x, y, s: max(abs(x), abs(y)) < 0.8 * s,
          "cross": lambda x, y, s: min(abs(x), abs(y)) < 0.25 * s and max(abs(x), abs(y)) < s}
def shape(kind):
    cx, cy, s = draw.uniform(12, 20), draw.uniform(12, 20), draw.uniform(6, 11)
    return [[min(255, 200 * inside[kind](x - cx, y - cy, s) + draw.randrange(40)) for x in range(32)] for y in range(32)]
for site, kinds in {"berlin": ["circle", "cross", "square"], "lyon": ["circle", "square"], "porto": ["circle", "cross"]}.items():
    for kind in kinds:
        for i in range(150):
            png.write(f"{site}/pictures/{kind}/{i:04}.png", shape(kind))
for kind in inside:
    png.write(f"lyon/new/{kind}.png", shape(kind))
PY

mapfile -t commands < <(sed -n 's/^    \(.*[^ ]\) *# at \(.*\)$/\2:\1/p' "$page")
check "the page has commands" [ "${#commands[@]}" -ge 16 ]
for line in "${commands[@]}"; do
  command=$(sed 's/^[^:]*://; s/ *$//' <<<"$line")
  for site in $(sed 's/:.*//; s/,//g' <<<"$line"); do
    case $command in
      'mpirun '*' train '*)
        (cd "$site" && eval "exec $command") >"$site.out" 2>"$site.err" </dev/null &
        pids[$site]=$!
        continue
        ;;
      'geotrain watch '*) # while it trains, or afterwards
        trains "$site/runs/shapes"
        words=('epoch|accuracy|trained') # or between the two
        ;;
      'geotrain data import '*) words=('wrote own.h5') ;;
      'geotrain data info '*) words=('classes') ;;
      'geotrain info '*) words=('^check: ok$') ;;
      'geotrain cert '* | 'cp '*) words=() ;;
      'geotrain report '*) words=('wrote shapes.html') ;;
      'geotrain eval '*) words=('^accuracy 0.[6-9]|^accuracy 1') ;;
      'geotrain predict '*) words=('^"new/circle.png","circle"' '^"new/cross.png","cross"' '^"new/square.png","square"') ;;
      *) fail "$line" "this test does not know the command" && continue ;;
    esac
    [[ $command != *' report '* ]] || for other in "${sites[@]}"; do end "$other" "geotrain train" 0; done
    at "$site" "$command"
    ended "$site: $command" 0 "${words[@]}"
    carry
  done
done
check "the regions have three classes together" grep -q 'the regions have 3 classes together; region lyon has 2, porto has 2' berlin.err
check "the same model everywhere" same "$(model_of lyon/runs/shapes params_sha256)" "$(model_of berlin/runs/shapes params_sha256)"
gone "all commands"
finish
