"""The models of geotrain as PyTorch modules, with the names that `geotrain export` writes: LeNet, ResNet-18 for small images (torchvision's names), DeepFM, LSTM, NISER, GPT.
`load` reads an exported file into one of them."""
import json

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


class LeNet(nn.Module):
    """For images (N,c,h,w): 5x5 convolutions of 6 (padded by 2) and 16 channels, each with ReLU and 2x2 maxima; 120, 84, classes.
    pool_first: ReLU of the maxima, a quarter of the work; the same numbers, as ReLU keeps order."""

    def __init__(self, h=28, w=28, c=1, classes=10, pool_first=False):
        super().__init__()
        self.pool_first = pool_first
        self.conv1 = nn.Conv2d(c, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * ((h // 2 - 4) // 2) * ((w // 2 - 4) // 2), 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def shrink(self, x):
        return F.relu(F.max_pool2d(x, 2)) if self.pool_first else F.max_pool2d(F.relu(x), 2)

    def forward(self, x):
        x = self.shrink(self.conv2(self.shrink(self.conv1(x))))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class Block(nn.Module):
    def __init__(self, c, k, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c, k, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(k)
        self.conv2 = nn.Conv2d(k, k, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(k)
        self.downsample = nn.Sequential(nn.Conv2d(c, k, 1, stride, bias=False), nn.BatchNorm2d(k)) if stride != 1 else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        beside = self.downsample(x) if self.downsample else x
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += beside
        return self.relu(y)


class ResNet18(nn.Module):
    """torchvision's resnet18, with its stem (large), or a 3x3 convolution and no pooling."""

    def __init__(self, c=3, classes=10, large=False):
        super().__init__()
        self.conv1 = nn.Conv2d(c, 64, 7, 2, 3, bias=False) if large else nn.Conv2d(c, 64, 3, 1, 1, bias=False)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        width = 64
        for i in range(4):
            k = 64 << i
            setattr(self, f"layer{i + 1}", nn.Sequential(Block(width, k, 2 if i else 1), Block(k, k, 1)))
            width = k
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


class DeepFM(nn.Module):
    """Guo et al. 2017: a bias, a weight per id, products of pairs of vectors, and an MLP on all vectors; one logit (N,1)."""

    def __init__(self, features=5382, fields=10, k=10, mlp=(400, 400, 400)):
        super().__init__()
        self.embedding = nn.Embedding(features, k)
        self.linear = nn.Embedding(features, 1)
        self.bias = nn.Parameter(torch.zeros(1))
        layers, width = [], fields * k
        for wide in mlp:
            layers += [nn.Linear(width, wide), nn.ReLU()]
            width = wide
        self.mlp = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        v = self.embedding(x)
        total = v.sum(1)
        pairs = 0.5 * (total * total - (v * v).sum(1)).sum(1, keepdim=True)
        return self.bias + self.linear(x).sum(1) + pairs + self.mlp(v.flatten(1))


class LSTM(nn.Module):
    """Vectors of words, an LSTM, and a linear layer on its last state.  Leading ids 0 of a text are padding: its sequence begins after them, with the
    state 0, which is also that of a text without words."""

    def __init__(self, features=20002, classes=2, k=128, hidden=128):
        super().__init__()
        self.embedding = nn.Embedding(features, k, padding_idx=0)
        self.lstm = nn.LSTM(k, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        padding = (x != 0).cumsum(1).eq(0).sum(1)
        v = self.embedding(x)
        if not bool(padding.any()):
            return self.fc(self.lstm(v)[1][0][0])
        length = x.shape[1] - padding
        # Padding at the end, which does not change earlier states; PyTorch's packed sequences are several times slower.
        turned = (torch.arange(x.shape[1]) + padding[:, None]) % x.shape[1]
        states = self.lstm(v.gather(1, turned[:, :, None].expand_as(v)))[0]
        last = states[torch.arange(len(x)), length.clamp(min=1) - 1]
        return self.fc(last * (length > 0)[:, None])


class GatedStep(nn.Module):
    """SR-GNN's step over graphs of sessions; a GRU whose input is the mean of the messages of predecessors and successors."""

    def __init__(self, hidden):
        super().__init__()
        within = lambda *shape: nn.Parameter(torch.empty(shape).uniform_(-1, 1) / hidden**0.5)
        self.w_ih, self.w_hh = within(3 * hidden, 2 * hidden), within(3 * hidden, hidden)
        self.b_ih, self.b_hh = within(3 * hidden), within(3 * hidden)
        self.b_iah, self.b_oah = within(hidden), within(hidden)
        self.linear_edge_in, self.linear_edge_out = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, h, before, after):
        a = torch.cat([before @ self.linear_edge_in(h) + self.b_iah, after @ self.linear_edge_out(h) + self.b_oah], 2)
        i_r, i_z, i_n = F.linear(a, self.w_ih, self.b_ih).chunk(3, 2)
        h_r, h_z, h_n = F.linear(h, self.w_hh, self.b_hh).chunk(3, 2)
        n = torch.tanh(i_n + torch.sigmoid(i_r + h_r) * h_n)
        return n + torch.sigmoid(i_z + h_z) * (h - n)


class NISER(nn.Module):
    """Gupta et al. 2019, with SR-GNN's names, without dropout and positions: scores of all items for sessions (N,T) of ids; leading ids 0 are padding."""

    def __init__(self, features=43098, hidden=100, sigma=16.0):
        super().__init__()
        self.sigma, self.hidden = sigma, hidden
        self.embedding = nn.Embedding(features, hidden)
        self.gnn = GatedStep(hidden)
        self.linear_one, self.linear_two = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.linear_three = nn.Linear(hidden, 1, bias=False)
        self.linear_transform = nn.Linear(2 * hidden, hidden)
        self.kept = None

    @staticmethod
    def graphs(x):
        """For each session: its distinct items, the matrices of connections, and the node of each click; all padded with zeros."""
        sessions = [[i for at, i in enumerate(row) if any(row[: at + 1])] for row in x.tolist()]
        nodes = [list(dict.fromkeys(session)) for session in sessions]
        n, t = max(1, max(map(len, nodes))), max(1, max(map(len, sessions)))
        items, edges = torch.zeros(len(x), n, dtype=torch.long), torch.zeros(len(x), n, n)
        alias, mask = torch.zeros(len(x), t, dtype=torch.long), torch.zeros(len(x), t)
        for i, (session, its) in enumerate(zip(sessions, nodes)):
            places = [its.index(item) for item in session]
            items[i, : len(its)] = torch.tensor(its, dtype=torch.long)
            alias[i, : len(session)] = torch.tensor(places, dtype=torch.long)
            mask[i, : len(session)] = 1
            for u, v in zip(places, places[1:]):
                edges[i, u, v] = 1
        share = lambda m: m / m.sum(2, keepdim=True).clamp(min=1)
        return items, share(edges.transpose(1, 2)), share(edges), alias, mask

    def keep(self, x):
        """Makes the graphs of this batch once, for a measurement that excludes them."""
        self.kept = self.graphs(x)

    def forward(self, x):
        items, before, after, alias, mask = self.kept or self.graphs(x)
        kind = self.embedding.weight.dtype
        before, after, mask = before.to(kind), after.to(kind), mask.to(kind)
        table = F.normalize(self.embedding.weight, dim=1)
        h = self.gnn(F.embedding(items, table), before, after)
        clicks = h.gather(1, alias[:, :, None].expand(-1, -1, h.shape[2]))
        rows = torch.arange(len(x))
        last = clicks[rows, mask.sum(1).long().clamp(min=1) - 1] * (mask.sum(1) > 0)[:, None]
        alpha = self.linear_three(torch.sigmoid(self.linear_one(last)[:, None] + self.linear_two(clicks)))
        session = self.linear_transform(torch.cat([(alpha * clicks * mask[:, :, None]).sum(1), last], 1))
        return self.sigma * F.normalize(session, dim=1) @ table[1:].t()


class Attention(nn.Module):
    """Causal, with queries, keys and values from one layer."""

    def __init__(self, width, heads):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (part.view(n, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            y = (q @ k.transpose(2, 3) / q.shape[3] ** 0.5).masked_fill(later, float("-inf")).softmax(3) @ v
        return self.c_proj(y.transpose(1, 2).reshape(n, length, width))


class Perceptron(nn.Module):
    """The model mlp: linear layers with ReLU between them."""

    def __init__(self, widths):
        super().__init__()
        layers = [m for i, o in zip(widths[:-1], widths[1:]) for m in (nn.Linear(i, o), nn.ReLU())]
        self.mlp = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.mlp(x.flatten(1))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(self.gelu(self.c_fc(x)))


class Layer(nn.Module):
    """A block of a decoder, normalised before each part."""

    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """GPT-2 without dropout: ids (N,T) to the logits (N,T,features) of the next ids."""

    def __init__(self, features=256, layers=6, width=384, heads=6, context=256, tied=True):
        super().__init__()
        blocks = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(features, width), "wpe": nn.Embedding(context, width), "h": blocks, "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, features, bias=False)
        if tied:
            self.lm_head.weight = self.transformer.wte.weight
        for name, tensor in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(tensor)
            elif tensor.dim() == 2:
                nn.init.normal_(tensor, std=0.02 / (2 * layers) ** 0.5 if name.endswith("c_proj.weight") else 0.02)

    def forward(self, ids):
        x = self.transformer.wte(ids) + self.transformer.wpe(torch.arange(ids.shape[1]))
        for layer in self.transformer.h:
            x = layer(x)
        return self.lm_head(self.transformer.ln_f(x))


GPTS = {"gpt-tiny": (4, 128, 4, 256), "gpt-small": (6, 384, 6, 256), "gpt-124m": (12, 768, 12, 1024)}  # layers, width, heads, context


def loss_of(model, scores, labels):
    if scores.dim() == 3:
        return F.cross_entropy(scores.flatten(0, 1), labels.flatten())
    if isinstance(model, DeepFM):
        return F.binary_cross_entropy_with_logits(scores.float().squeeze(1), labels.float())
    return F.cross_entropy(scores, labels)


def opened(path):
    """The header of a safetensors file, and the bytes after it."""
    with open(path, "rb") as file:
        blob = file.read()
    length = int.from_bytes(blob[:8], "little")
    return json.loads(blob[8 : 8 + length]), blob[8 + length :]


def notes(path):
    return opened(path)[0]["__metadata__"]


def read(path):
    """The tensors of a safetensors file as numpy arrays, in file order."""
    head, data = opened(path)
    head.pop("__metadata__")
    tensors = {}
    for name, at in sorted(head.items(), key=lambda item: item[1]["data_offsets"]):
        a, b = at["data_offsets"]
        kind = {"F32": "<f4", "I64": "<i8"}[at["dtype"]]
        tensors[name] = np.frombuffer(data[a:b], kind).reshape(at["shape"]).copy()
    return tensors


def load(name, path):
    """The model `name` with the weights of an exported file: a one-to-one mapping of tensors."""
    tensors = read(path)
    if name == "lenet5":
        model = LeNet(c=tensors["conv1.weight"].shape[1], classes=tensors["fc3.weight"].shape[0])
    elif name == "resnet18":
        model = ResNet18(tensors["conv1.weight"].shape[1], tensors["fc.weight"].shape[0], tensors["conv1.weight"].shape[2] == 7)
    elif name == "niser":
        model = NISER(*tensors["embedding.weight"].shape)
    elif name == "lstm":
        model = LSTM(*tensors["embedding.weight"].shape[:1], *tensors["fc.weight"].shape[:1], *tensors["embedding.weight"].shape[1:], *tensors["fc.weight"].shape[1:])
    elif name == "mlp":
        shapes = [t.shape for n, t in tensors.items() if n.endswith(".weight")]
        model = Perceptron([shapes[0][1]] + [o for o, _ in shapes])
    elif name.startswith("gpt"):
        wte, wpe = tensors["transformer.wte.weight"], tensors["transformer.wpe.weight"]
        layers = sum(name.endswith("ln_1.weight") for name in tensors)
        tied = np.array_equal(wte, tensors["lm_head.weight"])
        model = GPT(wte.shape[0], layers, wte.shape[1], int(notes(path)["heads"]), wpe.shape[0], tied)
    else:
        features, k = tensors["embedding.weight"].shape
        mlp = [t.shape for n, t in tensors.items() if n.startswith("mlp.") and n.endswith(".weight")]
        model = DeepFM(features, mlp[0][1] // k, k, [o for o, _ in mlp[:-1]])
    model.load_state_dict({n: torch.from_numpy(t) for n, t in tensors.items()}, strict=True)
    return model
