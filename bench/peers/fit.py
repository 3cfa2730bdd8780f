#!/usr/bin/env python3
"""A hundred full-batch private iterations on 60,000 x 784 with 10 classes: Sordino, diffprivlib and
Opacus on the same machine in the same run.

    bench/peers/fit.py [path/to/convex_benchmark]

Makes a virtual environment under build/peers (ignored by git) with diffprivlib 0.6.6, scikit-learn
1.7.2, torch 2.7 and opacus 1.5 the first time, and needs PyPI for it. The contenders run one after the
other, with one thread each:

  sordino      100 steps of `gradient`, noise included (convex_benchmark, PrivateDescent)
  plain        the same steps in libtorch without privacy, float64 and float32
  diffprivlib  LogisticRegression(max_iter=100, tol=0), a model for each class; its solver stops
               earlier, and the time is scaled to 100 iterations of each
  opacus       100 steps of a linear layer, per-example gradients by hooks and by ghost clipping, in
               parts of 6,000 rows; 10 steps are measured

Times are processor time, which changes little with what else the machine does; the factor is that time
over Sordino's. What cannot be installed says so.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build" / "peers" / "fit"
PACKAGES = {"diffprivlib": ["diffprivlib==0.6.6", "scikit-learn==1.7.2"],
            "opacus": ["torch==2.7.*", "opacus==1.5.*"]}

DIFFPRIVLIB = r'''
import json, time, warnings
import numpy
warnings.simplefilter("ignore")
from diffprivlib.models import LogisticRegression
draw = numpy.random.default_rng(1)
x = draw.random((60000, 784))
x /= numpy.linalg.norm(x, axis=1, keepdims=True)
y = draw.integers(0, 10, 60000)
model = LogisticRegression(epsilon=1, data_norm=1, max_iter=100, tol=0)
start = time.process_time()
model.fit(x, y)
seconds = time.process_time() - start
made = [int(n) for n in numpy.ravel(model.n_iter_)]
print(json.dumps({"seconds": seconds * 100 * len(made) / sum(made), "made": seconds,
                  "iterations": made}))
'''

OPACUS = r'''
import json, sys, time, warnings
import torch
warnings.simplefilter("ignore")
how = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(1)
x = torch.rand(60000, 784)
x /= x.norm(dim=1, keepdim=True)
y = torch.randint(0, 10, (60000,))
STEPS, PART = 10, 6000
layer = torch.nn.Linear(784, 10, bias=False)
settings = dict(noise_multiplier=10.0, max_grad_norm=1.0, expected_batch_size=60000)
plain = torch.optim.SGD(layer.parameters(), lr=0.1)
if how == "hooks":
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer
    model = GradSampleModule(layer)
    optimizer = DPOptimizer(plain, **settings)
    loss_of = torch.nn.CrossEntropyLoss()
else:
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    model = GradSampleModuleFastGradientClipping(layer, max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(plain, **settings)
    loss_of = DPLossFastGradientClipping(model, optimizer, torch.nn.CrossEntropyLoss(reduction="mean"))
def step():
    for begin in range(0, 60000, PART):
        optimizer.signal_skip_step(do_skip=begin + PART < 60000)
        loss_of(model(x[begin:begin + PART]), y[begin:begin + PART]).backward()
        optimizer.step()
        optimizer.zero_grad()
step()
start = time.process_time()
for _ in range(STEPS):
    step()
print(json.dumps({"seconds": (time.process_time() - start) * 100 / STEPS}))
'''


def prepare(peer):
    """Empty, or why the peer cannot be used."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    if subprocess.run([str(python), "-c", f"import {peer}"], capture_output=True,
                      check=False).returncode == 0:
        return ""
    result = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES[peer]],
                            capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else (result.stderr.strip().splitlines() or ["failed"])[-1]


def ask(words, environment):
    result = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if result.returncode != 0:
        return {"error": (result.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", nargs="?",
                        default=str(ROOT / "build/release/bin/convex_benchmark"))
    options = parser.parse_args()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    why = {peer: prepare(peer) for peer in PACKAGES}
    python = str(VENV / "bin" / "python")

    answer = ask([options.benchmark, "--benchmark_filter=Descent", "--benchmark_format=json"],
                 environment)
    if "error" in answer:
        sys.exit(f"fit.py: convex_benchmark failed: {answer['error']}")
    names = {"PrivateDescent/real_time": "sordino", "PlainDescent/64/real_time": "plain, float64",
             "PlainDescent/32/real_time": "plain, float32"}
    results = {names[row["name"]]: {"seconds": row["cpu_time"] / 1000}
               for row in answer["benchmarks"] if row["name"] in names}
    for name, peer, words in (("diffprivlib", "diffprivlib", [python, "-c", DIFFPRIVLIB]),
                              ("opacus hooks", "opacus", [python, "-c", OPACUS, "hooks"]),
                              ("opacus ghost", "opacus", [python, "-c", OPACUS, "ghost"])):
        results[name] = {"error": why[peer]} if why[peer] else ask(words, environment)
    for name, result in results.items():
        if "error" in result:
            print(f"{name:16} not measured: {result['error']}")
            continue
        more = (f"  made {result['iterations']} iterations in {result['made']:.2f} s"
                if "iterations" in result else "")
        ratio = result["seconds"] / results["sordino"]["seconds"]
        print(f"{name:16} {result['seconds']:8.2f} s  {ratio:6.2f}{more}", flush=True)


if __name__ == "__main__":
    main()
