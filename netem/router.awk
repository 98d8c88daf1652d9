# Reads the laboratory's plan (plan.awk) and writes the router's tc batch.  Variables: id (second
# number of the addresses), distribution ("normal" if iproute2 has its table).  HTB only sorts
# packets by sending region and applies the receiving region's access limit; netem applies the rate
# and delay of the link.  netem with a rate is a queue, so jitter never reorders packets; therefore
# unlimited links have a rate, too.
function share(q) { return access[q] ? access[q] : 100e9 }

# Burst size in bytes: 5 ms of an access limit; without a limit, so large that HTB never delays a
# packet.
function burst(q) { return access[q] ? int(access[q] / 8 / 200) + 20000 : 64e6 }

function class(q, parent, minor, rate) {
  printf "class add dev to%d parent %s classid 1:%x htb rate %.0fbit ceil %.0fbit burst %.0f cburst %.0f quantum 1514\n", q, parent, minor, rate,
    share(q), burst(q), burst(q)
}

$1 == "region" { n++; access[$2] = $5 }

$1 == "pair" {
  jitter = $6
  if (jitter && !distribution) jitter *= sqrt(3) # uniform within +-, the same standard deviation
  netem[$2, $3] = sprintf("limit %d delay %dus", $8, $5) (jitter ? sprintf(" %dus", jitter) (distribution ? " distribution " distribution : "") : "") \
    ($7 ? " loss " $7 "%" : "") sprintf(" rate %.0fbit", $4 ? $4 : 100e9)
}

END {
  for (q = 0; q < n; q++) {
    printf "qdisc add dev to%d root handle 1: htb default 0\n", q
    class(q, "1:", 4096, share(q))
    for (p = 0; p < n; p++) {
      if (p == q) continue
      class(q, "1:1000", p + 1, share(q) / n)
      if ((p, q) in netem) printf "qdisc add dev to%d parent 1:%x handle %x: netem %s\n", q, p + 1, p + 256, netem[p, q]
      printf "filter add dev to%d parent 1: protocol ip prio 1 u32 match ip src 10.%d.%d.0/24 flowid 1:%x\n", q, id, p, p + 1
    }
  }
}
