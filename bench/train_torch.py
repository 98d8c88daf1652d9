"""The PyTorch side of bench/accuracy: trains a model in PyTorch on a data set of geotrain, with
geotrain's schedule and augmentation.

    train_torch.py DATA.h5 HYPERPARAMETERS(JSON)

The last line is JSON: version, train_s, samples_per_s, eval_s and, with the names of summary.json,
the figures of the test set that the model has.  train_s is from the first batch to the last;
importing torch, reading the data, the evaluation at the end and compiling are not included
(`compiled`: torch.compile and the fused optimizer)."""
import copy
import json
import math
import sys
import time

import h5py
import numpy as np
import torch
import torch.nn.functional as F

from torch_models import GPT, GPTS, LSTM, NISER, DeepFM, ResNet18


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
        return sets, border, int(f.attrs.get("features", 0)), int(f.attrs["classes"])


def make(options, features, fields, classes):
    """The model with geotrain's initial distributions (docs/models.md); linear layers as PyTorch's."""
    name, number = options["name"], lambda key, default: int(options.get(key, default))
    if name.startswith("gpt"):
        usual = zip(("layers", "width", "heads", "context"), GPTS.get(name, GPTS["gpt-tiny"]))
        return GPT(features, *(number(key, value) for key, value in usual), tied=options.get("untied") != "true")
    if name == "lstm":
        return LSTM(features, classes, number("embedding", 128), number("hidden", 128))
    if name == "niser":
        model = NISER(features, number("hidden", 100), float(options.get("scale", 16)))
        for tensor in model.parameters():
            torch.nn.init.uniform_(tensor, -1 / model.hidden**0.5, 1 / model.hidden**0.5)
        with torch.no_grad():
            model.embedding.weight[0] = 0
        return model
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
        least = float(p["schedule"]["lr_min"])
        return least + 0.5 * (lr - least) * (1 + math.cos(math.pi * (step - warm) / (total - warm)))
    if p["schedule"]["name"] == "step" and int(p["schedule"]["step_every"]) > 0:
        return lr * float(p["schedule"]["gamma"]) ** ((step - warm) // int(p["schedule"]["step_every"]))
    return lr


def optimizer_of(p, model):
    o, more = p["optimizer"], {"fused": True} if p["compiled"] else {}
    if o["name"] == "sgd":
        return torch.optim.SGD(model.parameters(), lr=float(o["lr"]), momentum=float(o["momentum"]), weight_decay=float(o["weight_decay"]),
                               nesterov=o["nesterov"] == "true", **more)
    kind = torch.optim.AdamW if o["name"] == "adamw" else torch.optim.Adam
    return kind(model.parameters(), lr=float(o["lr"]), betas=(float(o["beta1"]), float(o["beta2"])), eps=float(o["epsilon"]),
                weight_decay=float(o["weight_decay"]), **more)


def loss_of(out, y, reduction="mean"):
    out = out.float()
    if out.dim() == 3:  # of each position of a text
        return F.cross_entropy(out.flatten(0, 1), y.flatten(), reduction=reduction)
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
    """Three steps of each batch size, so that all is compiled; then restores the state."""
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
        if p["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), p["clip"])
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


def ranks(out, y):
    """The rank of each label: 1 plus the number of classes with a higher score, or with the same score and a lower number."""
    own = out.gather(1, y[:, None])
    ties = (out == own) & (torch.arange(out.shape[1]) < y[:, None])
    return 1 + ((out > own) | ties).sum(1)


def evaluate(p, model, x, y):
    """The figures of summary.json, over batches."""
    images, batch = x.dim() == 4, 16 if y.dim() == 2 else 256
    loss = right = 0.0
    scores, places = [], []
    model.eval()
    with torch.no_grad():
        for b in range(0, len(x), batch):
            xs, ys = x[b:b + batch], y[b:b + batch]
            out = model(xs.contiguous(memory_format=torch.channels_last) if images else xs).float()
            loss += loss_of(out, ys, "sum").item()
            right += ((out[:, 0] > 0).long() == ys if out.shape[1] == 1 else out.argmax(-1) == ys).sum().item()
            if out.dim() == 2 and out.shape[1] <= 2:
                scores.append(out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0])
            if p["model"]["name"] == "niser":
                places.append(ranks(out, ys))
    figures = {"test_accuracy": right / y.numel(), "test_loss": loss / y.numel()}
    if scores:
        figures["test_auc"] = auc(torch.cat(scores).numpy(), y.numpy())
    if places:
        place = torch.cat(places).double()
        figures["test_recall20"] = (place <= 20).double().mean().item()
        figures["test_mrr20"] = torch.where(place <= 20, 1 / place, 0.0).mean().item()
    if y.dim() == 2:
        figures["test_perplexity"] = math.exp(figures["test_loss"])
    return figures


def main():
    path, p = sys.argv[1], json.loads(sys.argv[2])
    torch.manual_seed(p["seed"])
    ids = p["model"]["name"] != "resnet18"
    ((x, y), (tx, ty)), border, features, classes = load(path, ids)
    if p["model"]["name"].startswith("gpt"):  # each id is the label of the position before it
        x, y, tx, ty = x[:, :-1], x[:, 1:], tx[:, :-1], tx[:, 1:]
    model = make(p["model"], features, x.shape[1], classes)
    if not ids:
        model = model.to(memory_format=torch.channels_last)
    train_s = train(p, model, optimizer_of(p, model), x, y, border)
    start = time.perf_counter()
    figures = evaluate(p, model, tx, ty)
    print(json.dumps({**figures, "train_s": train_s, "samples_per_s": p["epochs"] * len(x) / train_s, "eval_s": time.perf_counter() - start,
                      "version": torch.__version__.split("+")[0]}))


if __name__ == "__main__":
    main()
