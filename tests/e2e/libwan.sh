# The traffic of strategies on the WAN: links in a run's summary, and what the rules predict.
# Sourced after lib.sh.  A message is a frame of 64 bytes and 4 bytes per parameter: lenet5 has
# 61706, which fit into one frame (docs/wire-format.md).
message=$((4 * 61706 + 64))

# links RUN: one line per link: from, steps of this region, messages, bytes.
links() {
  tr -d '",' <"$1/summary.json" | awk '
    $1 == "name:" { region = $2 }
    $1 == "steps:" { steps[region] = $2 }
    $1 == "from:" { from = $2 }
    $1 == "bytes_sent:" { bytes = $2 }
    $1 == "messages:" { messages = $2 }
    $1 == "bytes_other:" { print from, steps[from], messages, bytes }'
}

# messages STRATEGY STEPS PERIOD: messages that a region with these steps sends on each of its
# links.
messages() {
  case $1 in
    none) echo 0 ;;
    ssgd | asgd) echo "$2" ;;
    asgd-ga | sma | ama) echo $((($2 + $3 - 1) / $3)) ;;
  esac
}

# as_the_rule_says NAME STRATEGY PERIOD LINKS: checks every link of the run; ama may replace models
# that have not left by newer ones.
as_the_rule_says() {
  local from steps sent bytes want n=0 bad=0
  while read -r from steps sent bytes; do
    n=$((n + 1))
    want=$(messages "$2" "$steps" "$3")
    if [ "$2" = ama ] && [ "$sent" -gt 0 ] && [ "$sent" -lt "$want" ]; then want=$sent; fi
    if [ "$sent" -ne "$want" ] || [ "$bytes" -ne $((want * message)) ]; then
      echo "      from $from, $steps steps: $sent messages of $bytes bytes, needed $want of $((want * message))"
      bad=1
    fi
  done < <(links "$1")
  [ "$bad" -eq 0 ] && same "$n" "$4"
}
