"""simulate_compare.py RUN SIMULATION SECONDS: all of a summary must be equal except its origin, what
only training knows, and the lead's end, what follows from it (the looks in vain, and the cost
without egress), and the latencies of the lead's links, which are measured until then; the ends are
at most SECONDS apart."""
import json
import sys

runs = [json.load(open(name + "/summary.json")) for name in sys.argv[1:3]]
ends = [run["virtual_s"] for run in runs]
learnt = ("test_accuracy", "test_loss", "test_auc", "test_recall20", "test_mrr20", "test_perplexity", "validation", "validation_loss")
for run in runs:
    for key in learnt + ("wall_s", "virtual_s", "params_sha256", "build", "samples_per_s", "tokens_per_s"):
        run.pop(key, None)
    run["egress"] = run.pop("cost", {}).get("egress_usd")
    for region in run["regions"]:
        for key in learnt + ("mean_model", "train_loss", "residual", "isa", "warning", "kernels", "precision", "blas_core"):
            region.pop(key, None)
    run["regions"][0].pop("wall_s")
    run["regions"][0].get("store", {}).pop("failed_reads", 0)
    for link in run["links"]:
        if link["from"] == run["regions"][0]["name"]:
            link.pop("latency_s_measured")
differ = [key for key in runs[0] if runs[0][key] != runs[1].get(key)]
apart = abs(ends[0] - ends[1])
print(f"the ends are {1e9 * apart:.0f} ns apart of {ends[0]} s" + (f", and these differ: {differ}" if differ else ""))
sys.exit(1 if differ or apart > float(sys.argv[3]) else 0)
