"""The PyTorch side of bench/accuracy: trains a model in PyTorch on a data set of geotrain, with
geotrain's schedule and augmentation.

    train_torch.py DATA.h5 HYPERPARAMETERS(JSON)

The last line is JSON: accuracy, loss, auc, version, train_s and eval_s.  train_s is from the first
batch to the last; importing torch, reading the data, the evaluation at the end and compiling are not
included (`compiled`: torch.compile and the fused optimizer)."""
import copy
import json
import math
import sys
import time

import h5py
import numpy as np
import torch
import torch.nn.functional as F

from torch_models import DeepFM, ResNet18


def load(path, ids):
    with h5py.File(path) as f:
        sets = []
        for split in ("train", "test"):
            x, y = f[split]["x"][...], f[split]["y"][...].astype(np.int64)
            if ids:
                x = torch.from_numpy(x.reshape(len(x), -1).astype(np.int64))
            else:
                mean, std = f.attrs["mean"].astype(np.float32), f.attrs["std"].astype(np.float32)
                x = torch.from_numpy(((x.astype(np.float32) / 255 - mean) / std).transpose(0, 3, 1, 2).copy())
            sets.append((x, torch.from_numpy(y)))
        border = None if ids else torch.from_numpy(-mean / std)
        return sets, border, int(f.attrs.get("features", 0))


def make(name, features, fields):
    """The model with geotrain's initial distributions (docs/models.md); linear layers as PyTorch's."""
    if name == "deepfm":
        model = DeepFM(features, fields)
        torch.nn.init.normal_(model.embedding.weight, std=0.01)
        torch.nn.init.zeros_(model.linear.weight)
        torch.nn.init.zeros_(model.bias)
        return model
    model = ResNet18()
    for m in model.modules():
        if isinstance(m, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    return model


def crop_flip(x, border, rng):
    """Black border of 4, random window, flip of half."""
    n, c, h, w = x.shape
    padded = border.view(1, c, 1, 1).expand(n, c, h + 8, w + 8).clone()
    padded[:, :, 4:4 + h, 4:4 + w] = x
    out = torch.empty_like(x)
    for i, (dy, dx, flip) in enumerate(zip(rng.integers(0, 9, n), rng.integers(0, 9, n), rng.integers(0, 2, n))):
        image = padded[i, :, dy:dy + h, dx:dx + w]
        out[i] = image.flip(2) if flip else image
    return out


def rate(p, step, total):
    lr, warm = float(p["optimizer"]["lr"]), int(p["schedule"]["warmup_steps"])
    if step < warm:
        return lr * (step + 1) / warm
    if p["schedule"]["name"] == "cosine":
        return 0.5 * lr * (1 + math.cos(math.pi * (step - warm) / (total - warm)))
    return lr


def optimizer_of(p, model):
    o, more = p["optimizer"], {"fused": True} if p["compiled"] else {}
    if o["name"] == "sgd":
        return torch.optim.SGD(model.parameters(), lr=float(o["lr"]), momentum=float(o["momentum"]), weight_decay=float(o["weight_decay"]),
                               nesterov=o["nesterov"] == "true", **more)
    return torch.optim.Adam(model.parameters(), lr=float(o["lr"]), betas=(float(o["beta1"]), float(o["beta2"])), eps=float(o["epsilon"]),
                            weight_decay=float(o["weight_decay"]), **more)


def loss_of(out, y, reduction="mean"):
    out = out.float()
    if out.shape[1] == 1:
        return F.binary_cross_entropy_with_logits(out[:, 0], y.float(), reduction=reduction)
    return F.cross_entropy(out, y, reduction=reduction)


def auc(scores, labels):
    """Mann-Whitney, ties half."""
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = labels == 1
    n1, n0 = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def warm_up(model, optimizer, step, x, y, sizes):
    """Three steps of each size of batch, so that all is compiled; then everything is as it was."""
    before = copy.deepcopy(model.state_dict())
    for size in sizes:
        for _ in range(3):
            step(x[:size], y[:size])
    model.load_state_dict(before)
    optimizer.state.clear()


def stepper(p, model, optimizer):
    """step(x, y): forward, backward, update."""
    def loss(xs, ys):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=p["bf16"]):
            out = model(xs)
        return loss_of(out, ys)

    loss_now = torch.compile(loss, dynamic=False) if p["compiled"] else loss

    def step(xs, ys):
        if xs.dim() == 4:
            xs = xs.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=True)
        loss_now(xs, ys).backward()
        optimizer.step()

    return step


def train(p, model, optimizer, x, y, border):
    """Seconds from the first batch to the last."""
    rng, batch, n = np.random.default_rng(p["seed"]), p["batch"], len(x)
    per_epoch = (n + batch - 1) // batch
    total, step_of, done = math.ceil(p["epochs"] * per_epoch), stepper(p, model, optimizer), 0
    if p["compiled"]:
        warm_up(model, optimizer, step_of, x, y, {min(batch, n), n % batch or batch})
    start = time.perf_counter()
    while done < total:
        order = torch.from_numpy(rng.permutation(n))
        for b in range(min(per_epoch, total - done)):
            at = order[b * batch:(b + 1) * batch]
            xs = crop_flip(x[at], border, rng) if p["augment"] else x[at]
            for group in optimizer.param_groups:
                group["lr"] = rate(p, done, total)
            step_of(xs, y[at])
            done += 1
    return time.perf_counter() - start


def main():
    path, p = sys.argv[1], json.loads(sys.argv[2])
    torch.manual_seed(p["seed"])
    ids = p["model"] == "deepfm"
    ((x, y), (tx, ty)), border, features = load(path, ids)
    model = make(p["model"], features, x.shape[1])
    images = not ids
    if images:
        model = model.to(memory_format=torch.channels_last)
    train_s = train(p, model, optimizer_of(p, model), x, y, border)
    start = time.perf_counter()
    model.eval()
    outs = []
    with torch.no_grad():
        for b in range(0, len(tx), 256):
            xs = tx[b:b + 256]
            outs.append(model(xs.contiguous(memory_format=torch.channels_last) if images else xs))
    out, eval_s = torch.cat(outs), time.perf_counter() - start
    two = out.shape[1] == 1
    right = ((out[:, 0] > 0).long() == ty) if two else (out.argmax(1) == ty)
    print(json.dumps({"accuracy": right.float().mean().item(), "loss": loss_of(out, ty).item(), "auc": auc(out[:, 0].numpy(), ty.numpy()) if two else None,
                      "train_s": train_s, "eval_s": eval_s, "version": torch.__version__.split("+")[0]}))


if __name__ == "__main__":
    main()
