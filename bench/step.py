"""PyTorch's side of bench/peers: the same training step (forward, backward, SGD with momentum) of one model in one memory format, on one thread.
Usage: step.py MODEL BATCH ROUNDS f32|bf16 FORMAT     (FORMAT: channels_first, channels_last; plain where samples are no images)
Prints "FORMAT median_ms least_ms rss_mb version"; bf16 is autocast's."""
import resource
import statistics
import sys
import time

import torch

import torch_models

name, batch, rounds, precision, layout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
torch.set_num_threads(1)
torch.manual_seed(1)
if name == "deepfm":
    model, x = torch_models.DeepFM(), torch.randint(0, 5382, (batch, 10))
elif name == "resnet18":
    model, x = torch_models.ResNet18(), torch.randn(batch, 3, 32, 32)
else:
    model, x = torch_models.LeNet(), torch.randn(batch, 1, 28, 28)
labels = torch.randint(0, 2 if name == "deepfm" else 10, (batch,))
if layout == "channels_last":
    model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
times, warm = [], max(2, rounds // 10)
for i in range(rounds + warm):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        scores = model(x)
    torch_models.loss_of(model, scores.float(), labels).backward()
    optimizer.step()
    if i >= warm:
        times.append((time.perf_counter() - start) * 1e3)
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(f"{layout} {statistics.median(times):.4f} {min(times):.4f} {rss:.0f} {torch.__version__}")
