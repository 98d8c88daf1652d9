"""PyTorch's side of the step benchmark: one line a memory format, "FORMAT median_ms min_ms".  Usage: step.py [BATCH [ROUNDS]]"""
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 64
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200


def measure(memory_format):
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    ).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    x = torch.randn(batch, 1, 28, 28).contiguous(memory_format=memory_format)
    y = torch.randint(0, 10, (batch,))
    times = []
    for i in range(rounds + 10):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), y).backward()
        optimizer.step()
        if i >= 10:
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), min(times)


for name, memory_format in (("channels_first", torch.contiguous_format), ("channels_last", torch.channels_last)):
    median, least = measure(memory_format)
    print(f"{name} {median:.4f} {least:.4f}")
