"""The same batch through an exported model in PyTorch: outputs, and tensors after SGD.  Usage: export_torch.py MODEL FILE.safetensors DIR
Prints the largest differences, and exits with 1 where one is too large."""
import sys

import numpy as np
import torch

import torch_models

LR, MOMENTUM = 0.01, 0.9  # as in export_steps.c
name, path, folder = sys.argv[1:]
torch.set_num_threads(1)
labels = torch.from_numpy(np.fromfile(folder + "/labels", "<i4").astype(np.int64))
n = len(labels)
first = torch_models.read(path)
ids = name not in ("lenet5", "resnet18", "mlp")
if ids:
    x = torch.from_numpy(np.fromfile(folder + "/x", "<i4").reshape(n, -1).astype(np.int64))
else:
    c = 3 if name == "resnet18" else 1
    x = np.fromfile(folder + "/x", "<f4")
    h = int((x.size // (n * c)) ** 0.5)
    x = torch.from_numpy(x.reshape(n, h, h, c).transpose(0, 3, 1, 2).copy())
if name.startswith("gpt"):  # each id is the label of the position before it
    x, labels = x[:, :-1], x[:, 1:]
failed = False


def say(what, difference, limit):
    """With no limit it is only said."""
    global failed
    good = limit is None or difference <= limit
    failed = failed or not good
    print(f"{name}: {what}: {difference:.1e}" + ("" if good else f"; expected at most {limit:.0e}"))


def outputs(what, scores, limit):
    there = np.fromfile(f"{folder}/{what}", "<f4").reshape(tuple(scores.shape))
    here = scores.detach().double().numpy()
    say(f"outputs, {what}, largest difference over the largest output", np.abs(here - there).max() / np.abs(here).max(), limit)


def train(momentum, count, kind):
    """The tensors after so many steps computed in `kind`."""
    model = torch_models.load(name, path).to(kind).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=momentum)
    for i in range(count):
        optimizer.zero_grad(set_to_none=True)
        scores = model(x if ids else x.to(kind))
        if momentum == 0 and labels.dim() == 1:
            outputs("train", scores, 1e-4)
        torch_models.loss_of(model, scores, labels).backward()
        optimizer.step()
    return {key: value.detach().double().numpy() for key, value in model.state_dict().items()}


def compare(what, momentum, count, kind, limit):
    there, at, worst = np.fromfile(f"{folder}/{what}", "<f4"), 0, {}
    here = train(momentum, count, kind)
    float32 = train(momentum, count, torch.float32) if limit else here
    for key, before in first.items():
        if before.dtype != np.float32:
            continue
        its = there[at : at + before.size].reshape(before.shape)
        at += before.size
        difference, moved = np.abs(here[key] - its).max(), np.abs(here[key] - before).max()
        assert moved > 0, f"{key} does not move"
        worst.setdefault("statistics" if ".running_" in key else "weights", []).append((difference / moved, difference, key))
        # Beside its share of the change, every sum of a weight and a change was rounded.  At ReLU's corner a
        # sum in float32 may fall on either side: geotrain may be as far from float64 as PyTorch is.
        allowed = (limit or 0) * moved + 1.2e-7 * count * np.abs(before).max()
        allowed = max(allowed, np.abs(here[key] - float32[key]).max())
        if limit and difference > allowed:
            say(f"{what}, {key}: largest difference", difference, allowed)
    assert at == len(there), f"{at} numbers are known, {len(there)} are there"
    steps = f"{count} step{'s' * (count > 1)} with momentum {momentum}, PyTorch in {str(kind)[6:]}"
    for group, found in worst.items():
        share, _, key = max(found)
        say(f"{group} after {steps}: largest difference over the largest change ({key})", share, None)
        say(f"{group} after {steps}: largest difference", max(d for _, d, _ in found), None)


with torch.no_grad():
    outputs("eval", torch_models.load(name, path).eval()(x), 1e-4)
# In float64 PyTorch judges; the differences in float32 are printed only.
compare("sgd", 0, 1, torch.float64, 1e-3)
compare("momentum", MOMENTUM, 2, torch.float64, 5e-3)
compare("sgd", 0, 1, torch.float32, None)
compare("momentum", MOMENTUM, 2, torch.float32, None)
print(f"{name}: PyTorch {torch.__version__}")
sys.exit(failed)
