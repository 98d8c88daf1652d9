"""PyTorch's side of bench/peers: the same training step (forward, backward, SGD with momentum) of one
model, on one thread.

    step.py MODEL BATCH ROUNDS f32|bf16 FORMAT [--compile] [--fused] [--pool-first]
    step.py --can

FORMAT: channels_first, channels_last; plain if samples are not images.  bf16 is by autocast.
--compile: model, loss and update by torch.compile; --fused: the fused SGD; --pool-first: ReLU after
pooling, which gives the same numbers.  Compiling is not timed, nor is making graphs of sessions.  Prints a line of JSON.
--can prints the version of this PyTorch, what it supports, and the reasons for what it does not."""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import sys
import sysconfig
import time

import torch

import torch_models

CLASSES = {"deepfm": 2, "lstm": 2, "niser": 43097}

def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("precision", choices=["f32", "bf16"])
    parser.add_argument("layout")
    parser.add_argument("--size", type=int, default=32, help="pixels of resnet18's images, each way")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--pool-first", action="store_true")
    return parser.parse_args()


def no_compile():
    """Why torch.compile cannot work here; None if it can."""
    compiler = os.environ.get("CXX", "g++")
    if not hasattr(torch, "compile"):
        return "it has no torch.compile"
    if shutil.which(compiler) is None:
        return f"torch.compile needs a C++ compiler, and there is no {compiler}"
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        return "torch.compile needs Python.h (Debian: python3-dev)"
    return None


def no_fused():
    """Why there is no fused SGD; None if there is one."""
    try:
        parameter = torch.nn.Parameter(torch.zeros(2))
        parameter.grad = torch.ones(2)
        torch.optim.SGD([parameter], lr=0.1, momentum=0.9, fused=True).step()
    except (TypeError, RuntimeError):
        return "it has no fused SGD for CPUs"
    return None


def can():
    used = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    print(json.dumps({"version": torch.__version__.split("+")[0], "isa": used.group(1) if used else "unknown", "no_compile": no_compile(), "no_fused": no_fused()}))


def make(o):
    """Model, samples, labels."""
    if o.model in torch_models.GPTS:
        layers, width, heads, context = torch_models.GPTS[o.model]
        features, length = (50257, 1025) if o.model == "gpt-124m" else (256, 129)
        ids = torch.randint(0, features, (o.batch, length))
        return torch_models.GPT(features, layers, width, heads, context), ids[:, :-1], ids[:, 1:]
    if o.model == "deepfm":
        model, x = torch_models.DeepFM(), torch.randint(0, 5382, (o.batch, 10))
    elif o.model == "lstm":
        model, x = torch_models.LSTM(), torch.randint(1, 20002, (o.batch, 200))
    elif o.model == "niser":
        model, x = torch_models.NISER(), torch.randint(1, 43098, (o.batch, 20))
        model.keep(x)
    elif o.model == "resnet18":
        model, x = torch_models.ResNet18(large=o.size >= 64), torch.randn(o.batch, 3, o.size, o.size)
    else:
        model, x = torch_models.LeNet(pool_first=o.pool_first), torch.randn(o.batch, 1, 28, 28)
    if o.layout == "channels_last":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    return model, x, torch.randint(0, CLASSES.get(o.model, 10), (o.batch,))


def huge_mb():
    """How much of this process is in huge pages."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("AnonHugePages")) / 1e3


def measure(o):
    """Milliseconds of each round."""
    model, x, labels = make(o)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, **({"fused": True} if o.fused else {}))

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.precision == "bf16"):
            scores = model(x)
        return torch_models.loss_of(model, scores.float(), labels)

    update = optimizer.step
    if o.compile:
        loss, update = torch.compile(loss), torch.compile(update)
    # The first step compiles, and the second compiles the update again, now with momentum; three
    # compiled steps follow before the measurement.
    times, warm = [], max(5 if o.compile else 2, o.rounds // 10)
    for i in range(o.rounds + warm):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        update()
        if i >= warm:
            times.append((time.perf_counter() - start) * 1e3)
    return times


def main():
    if sys.argv[1:] == ["--can"]:
        can()
        return
    o = options()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    times = measure(o)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"ms": statistics.median(times), "least": min(times), "mb": rss, "huge_mb": huge_mb()}))


if __name__ == "__main__":
    main()
