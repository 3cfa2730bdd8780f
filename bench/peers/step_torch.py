"""Times steps of the benchmark models in PyTorch: ordinary, torch.func, Opacus.

A worker of step.py: reads one question a line from standard input,
{"model": "mnist", "batch": 256, "how": "opacus hooks", "seconds": 3, "device": "cpu", "threads": 2},
and answers each with one line, {"ms": ..., "steps": ...} or {"error": ...}. The networks are those of
src/sordino/models/benchmark_models.cc; where Opacus needs a layer of its own (DPLSTM), it gets it.
"""
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

from step_worker import serve, time_steps

CLIP = 1.0
VOCABULARY = 10004
TOKENS = {"embed": 256, "lstm": 256, "transformer": 128}


class Mean(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.mean(self.dims)


class Lstm(nn.Module):
    def __init__(self, recurrent):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 100)
        self.lstm = recurrent(100, 100, batch_first=True)
        self.head = nn.Linear(100, 2)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0].mean(1))


class Position(nn.Module):
    """A module of its own, because Opacus refuses raw parameters beside other layers."""

    def __init__(self, tokens, width):
        super().__init__()
        self.position = nn.Parameter(0.02 * torch.randn(1, tokens, width))

    def forward(self, x):
        return x + self.position


class EncoderLayer(nn.Module):
    def __init__(self, width=256, heads=4, feed_forward=1024):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)
        self.linear1 = nn.Linear(width, feed_forward)
        self.linear2 = nn.Linear(feed_forward, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)

    def attend(self, x):
        examples, tokens, width = x.shape
        q, k, v = (t.reshape(examples, tokens, self.heads, width // self.heads).transpose(1, 2)
                   for t in self.in_proj(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out_proj(y.transpose(1, 2).reshape(examples, tokens, width))

    def forward(self, x):
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.linear2(self.linear1(x).relu()))


def convolutions():
    layers, width = [], 3
    for out in (32, 64, 128):
        layers += [nn.Conv2d(width, out, 3, padding=1), nn.ReLU(),
                   nn.Conv2d(out, out, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2, 2)]
        width = out
    return nn.Sequential(*layers, nn.Conv2d(128, 256, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(256, 10, 3, padding=1), Mean(2, 3))


def make_model(name, recurrent):
    torch.manual_seed(1)
    if name == "logreg":
        return nn.Sequential(nn.Linear(104, 1), nn.Sigmoid())
    if name == "ffnn":
        return nn.Sequential(nn.Linear(104, 50), nn.ReLU(), nn.Linear(50, 2))
    if name == "mnist":
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(),
            nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10))
    if name == "cifar10":
        return convolutions()
    if name == "embed":
        return nn.Sequential(nn.Embedding(VOCABULARY, 16), Mean(1), nn.Linear(16, 2))
    if name == "lstm":
        return Lstm(recurrent)
    if name == "transformer":
        return nn.Sequential(nn.Embedding(VOCABULARY, 256), Position(128, 256),
                             *[EncoderLayer() for _ in range(6)], Mean(1), nn.Linear(256, 2))
    raise ValueError(f"no model {name}")


def make_batch(name, batch, device):
    torch.manual_seed(2)
    if name in TOKENS:
        inputs = torch.randint(VOCABULARY, (batch, TOKENS[name]))
    else:
        shape = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32)}.get(name, (104,))
        inputs = torch.randn(batch, *shape)
    labels = torch.randint(10 if name in ("mnist", "cifar10") else 2, (batch,))
    if name == "logreg":
        labels = labels.float()
    return inputs.to(device), labels.to(device)


def losses_of(name, outputs, labels, reduction):
    if name == "logreg":
        return F.binary_cross_entropy(outputs.squeeze(1), labels, reduction=reduction)
    return F.cross_entropy(outputs, labels, reduction=reduction)


def ordinary(name, model, inputs, labels):
    def step():
        model.zero_grad(set_to_none=True)
        losses_of(name, model(inputs), labels, "none").mean().backward()
    return step


def functional(name, model, inputs, labels):
    from torch.func import functional_call, grad, vmap
    parameters = {key: value.detach() for key, value in model.named_parameters()}

    def loss(values, example, label):
        outputs = functional_call(model, values, (example.unsqueeze(0),))
        return losses_of(name, outputs, label.unsqueeze(0), "sum")

    per_example = vmap(grad(loss), in_dims=(None, 0, 0))

    def step():
        gradients = per_example(parameters, inputs, labels)
        squares = sum(g.flatten(1).square().sum(1) for g in gradients.values())
        factors = (CLIP / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        return {key: torch.einsum("i,i...", factors, g) for key, g in gradients.items()}
    return step


def opacus_hooks(name, model, inputs, labels):
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer
    wrapped = GradSampleModule(model, batch_first=True, loss_reduction="mean")
    optimizer = DPOptimizer(torch.optim.SGD(wrapped.parameters(), lr=0.15), noise_multiplier=0.0,
                            max_grad_norm=CLIP, expected_batch_size=len(labels))

    def step():
        optimizer.zero_grad(set_to_none=True)
        losses_of(name, wrapped(inputs), labels, "mean").backward()
        optimizer.clip_and_accumulate()
    return step


def opacus_ghost(name, model, inputs, labels):
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    wrapped = GradSampleModuleFastGradientClipping(
        model, batch_first=True, loss_reduction="mean", max_grad_norm=CLIP,
        use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(wrapped.parameters(), lr=0.15), noise_multiplier=0.0, max_grad_norm=CLIP,
        expected_batch_size=len(labels))
    plain = nn.BCELoss() if name == "logreg" else nn.CrossEntropyLoss()
    criterion = DPLossFastGradientClipping(wrapped, optimizer, plain)

    def step():
        optimizer.zero_grad(set_to_none=True)
        outputs = wrapped(inputs)
        criterion(outputs.squeeze(1) if name == "logreg" else outputs, labels).backward()
        optimizer.accumulate()
    return step


HOW = {"torch, not private": ordinary, "torch.func vmap": functional,
       "opacus hooks": opacus_hooks, "opacus ghost": opacus_ghost}


def answer(question):
    torch.set_num_threads(question["threads"])
    device = torch.device(question["device"])
    recurrent = nn.LSTM
    if question["how"].startswith("opacus"):
        from opacus.layers import DPLSTM
        recurrent = DPLSTM
    model = make_model(question["model"], recurrent).to(device)
    inputs, labels = make_batch(question["model"], question["batch"], device)
    step = HOW[question["how"]](question["model"], model, inputs, labels)

    def wait(_):
        if device.type == "cuda":
            torch.cuda.synchronize()
    return time_steps(step, wait, question["seconds"], question["device"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(serve(answer))
