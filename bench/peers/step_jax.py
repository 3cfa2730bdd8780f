"""Times a jitted step of the benchmark models in JAX: vmap of the gradient, clip, sum.

A worker of step.py; the protocol is that of step_torch.py. The networks are those of
src/sordino/models/benchmark_models.cc, as plain functions of their parameters.
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from step_worker import serve, time_steps

CLIP = 1.0
VOCABULARY = 10004
TOKENS = {"embed": 256, "lstm": 256, "transformer": 128}


class Draw:
    """Weights of a fixed seed, in the usual scales."""

    def __init__(self):
        self.random = np.random.default_rng(1)

    def normal(self, *shape, scale=1.0):
        return jnp.asarray(scale * self.random.standard_normal(shape), jnp.float32)

    def linear(self, inputs, outputs):
        return {"w": self.normal(inputs, outputs, scale=inputs ** -0.5), "b": jnp.zeros(outputs)}

    def convolution(self, inputs, outputs, kernel):
        scale = (inputs * kernel * kernel) ** -0.5
        return {"w": self.normal(outputs, inputs, kernel, kernel, scale=scale),
                "b": jnp.zeros(outputs)}


def linear(p, x):
    return x @ p["w"] + p["b"]


def convolution(p, x, stride, padding):
    y = lax.conv_general_dilated(x[None], p["w"], (stride, stride), [(padding, padding)] * 2,
                                 dimension_numbers=("NCHW", "OIHW", "NCHW"))[0]
    return y + p["b"][:, None, None]


def pool(x, how, start, size, stride):
    return lax.reduce_window(x, start, how, (1, size, size), (1, stride, stride), "VALID")


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["w"] + p["b"]


def mnist(p, x):
    x = pool(jax.nn.relu(convolution(p[0], x, 2, 3)), lax.max, -jnp.inf, 2, 1)
    x = pool(jax.nn.relu(convolution(p[1], x, 2, 0)), lax.max, -jnp.inf, 2, 1)
    return linear(p[3], jax.nn.relu(linear(p[2], x.reshape(-1))))


def cifar10(p, x):
    for i in range(3):
        x = jax.nn.relu(convolution(p[2 * i], x, 1, 1))
        x = jax.nn.relu(convolution(p[2 * i + 1], x, 1, 1))
        x = pool(x, lax.add, 0.0, 2, 2) / 4
    return convolution(p[7], jax.nn.relu(convolution(p[6], x, 1, 1)), 1, 1).mean((1, 2))


def lstm(p, tokens):
    inputs = linear(p["in"], p["embedding"][tokens])

    def cell(state, x):
        h, c = state
        i, f, g, o = jnp.split(x + linear(p["recurrent"], h), 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    _, outputs = lax.scan(cell, (jnp.zeros(100), jnp.zeros(100)), inputs)
    return linear(p["head"], outputs.mean(0))


def transformer(p, tokens):
    x = p["embedding"][tokens] + p["position"]
    for layer in p["layers"]:
        q, k, v = (t.reshape(128, 4, 64).transpose(1, 0, 2)
                   for t in jnp.split(linear(layer["in"], x), 3, axis=-1))
        weights = jax.nn.softmax(q @ k.transpose(0, 2, 1) / 8.0)
        y = (weights @ v).transpose(1, 0, 2).reshape(128, 256)
        x = layer_norm(layer["norm1"], x + linear(layer["out"], y))
        y = linear(layer["linear2"], jax.nn.relu(linear(layer["linear1"], x)))
        x = layer_norm(layer["norm2"], x + y)
    return linear(p["head"], x.mean(0))


def norm_weights():
    return {"w": jnp.ones(256), "b": jnp.zeros(256)}


def make_model(name):
    """The parameters, and the function from them and one example to the outputs."""
    draw = Draw()
    if name == "logreg":
        return draw.linear(104, 1), linear
    if name == "ffnn":
        return ([draw.linear(104, 50), draw.linear(50, 2)],
                lambda p, x: linear(p[1], jax.nn.relu(linear(p[0], x))))
    if name == "mnist":
        return [draw.convolution(1, 16, 8), draw.convolution(16, 32, 4), draw.linear(512, 32),
                draw.linear(32, 10)], mnist
    if name == "cifar10":
        widths = [3, 32, 32, 64, 64, 128, 128, 256, 10]
        return [draw.convolution(a, b, 3) for a, b in zip(widths, widths[1:])], cifar10
    if name == "embed":
        return ({"embedding": draw.normal(VOCABULARY, 16), "head": draw.linear(16, 2)},
                lambda p, x: linear(p["head"], p["embedding"][x].mean(0)))
    if name == "lstm":
        return {"embedding": draw.normal(VOCABULARY, 100), "in": draw.linear(100, 400),
                "recurrent": draw.linear(100, 400), "head": draw.linear(100, 2)}, lstm
    layers = [{"in": draw.linear(256, 768), "out": draw.linear(256, 256),
               "linear1": draw.linear(256, 1024), "linear2": draw.linear(1024, 256),
               "norm1": norm_weights(), "norm2": norm_weights()} for _ in range(6)]
    return {"embedding": draw.normal(VOCABULARY, 256), "position": draw.normal(128, 256, scale=.02),
            "layers": layers, "head": draw.linear(256, 2)}, transformer


def make_batch(name, batch):
    random = np.random.default_rng(2)
    if name in TOKENS:
        inputs = random.integers(VOCABULARY, size=(batch, TOKENS[name])).astype(np.int32)
    else:
        shape = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32)}.get(name, (104,))
        inputs = random.standard_normal((batch, *shape)).astype(np.float32)
    labels = random.integers(10 if name in ("mnist", "cifar10") else 2, size=batch)
    return jnp.asarray(inputs), jnp.asarray(labels.astype(np.int32))


def answer(question):
    name = question["model"]
    parameters, outputs = make_model(name)
    inputs, labels = make_batch(name, question["batch"])

    def loss(p, x, label):
        y = outputs(p, x)
        if name == "logreg":
            probability = jax.nn.sigmoid(y[0])
            return -jnp.where(label == 1, jnp.log(probability), jnp.log1p(-probability))
        return -jax.nn.log_softmax(y)[label]

    @jax.jit
    def step(p, x, label):
        gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(p, x, label)
        leaves = jax.tree_util.tree_leaves(gradients)
        squares = sum(jnp.square(g.reshape(g.shape[0], -1)).sum(1) for g in leaves)
        factors = jnp.minimum(1.0, CLIP / (jnp.sqrt(squares) + 1e-6))
        return jax.tree_util.tree_map(lambda g: jnp.tensordot(factors, g, 1), gradients)

    return time_steps(lambda: step(parameters, inputs, labels), jax.block_until_ready,
                      question["seconds"], question["device"])


if __name__ == "__main__":
    sys.exit(serve(answer))
