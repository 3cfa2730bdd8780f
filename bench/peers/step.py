#!/usr/bin/env python3
"""One training step of Sordino, PyTorch, Opacus and JAX on the same machine in the same run.

    bench/peers/step.py [path/to/sordino] [--models mnist,lstm] [--seconds 3] [--json]

Makes a virtual environment under build/peers (ignored by git) with torch 2.11, opacus 1.6 and
jax 0.10 the first time, which takes a few gigabytes. Goes from model to model; for each one all
contenders are measured one after the other, on the same cores and with the same number of threads,
while the others wait. Times are medians of whole steps: forward, backward, norms, clip and sum,
without noise; "not private" is forward and backward. The factor behind a time is that time over
Sordino's private step. A contender that cannot do a model says why below the table.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
VENV = ROOT / "build" / "peers" / "step"
PACKAGES = ["torch==2.11.*", "opacus==1.6.*", "jax==0.10.*"]

MODELS = ["logreg", "ffnn", "mnist", "cifar10", "embed", "lstm", "transformer"]
TORCH = ["torch, not private", "torch.func vmap", "opacus hooks", "opacus ghost"]
JAX = "jax jit vmap"
ORDINARY, PRIVATE = "sordino, not private", "sordino"


def prepare():
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    probe = subprocess.run([str(python), "-c", "import torch, opacus, jax"], capture_output=True,
                           check=False)
    if probe.returncode != 0:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return str(python)


class Worker:
    """A process that answers questions; started anew after it died."""

    def __init__(self, python, script, environment):
        self.command = [python, str(HERE / script)]
        self.environment = environment
        self.process = None

    def ask(self, question):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                            env=self.environment)
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.process = None
        return {"error": f"the process ended with {code} (out of memory?)"}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def ask_sordino(path, question, threads):
    command = [path, "bench", "step", "--models", question["model"], "--batch",
               str(question["batch"]), "--device", question["device"], "--threads", str(threads),
               "--seconds", str(question["seconds"]), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        error = {"error": (result.stderr.strip().splitlines() or ["failed"])[-1]}
        return {ORDINARY: error, PRIVATE: error}
    costs = json.loads(result.stdout)[question["model"]][str(question["batch"])]
    return {ORDINARY: {"ms": costs["ordinary_ms"], "mb": costs["ordinary_mb"]},
            PRIVATE: {"ms": costs["private_ms"], "mb": costs["private_mb"]}}


def cell(result, reference):
    if result is None:
        return ""
    if "error" in result:
        return "failed"
    text = f"{result['ms']:.3g}" if result["ms"] < 1000 else f"{result['ms']:.0f}"
    return f"{text} ({result['ms'] / reference:.2f}x)" if reference else text


def show(results, columns, contenders):
    rows = [["ms a step", *[f"{model} {batch}" for model, batch in columns]]]
    for who in contenders:
        row = [who]
        for column in columns:
            reference = results[column].get(PRIVATE, {}).get("ms")
            row.append(cell(results[column].get(who), reference))
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0]),
                         *[text.rjust(width) for text, width in zip(row[1:], widths[1:])]]))
    for column in columns:
        for who, result in results[column].items():
            if "error" in result:
                print(f"{column[0]} {column[1]}, {who}: {result['error']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sordino", nargs="?", default=str(ROOT / "build/release/bin/sordino"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batch", type=int,
                        help="default: 256, and 32 for lstm and transformer on a CPU")
    parser.add_argument("--seconds", type=float, default=3, help="for each contender and model")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--python", help="an interpreter that has the peers; none is installed then")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    models = arguments.models.split(",")
    if unknown := set(models) - set(MODELS):
        parser.error(f"unknown models: {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    python = arguments.python or prepare()

    # Libraries that do not ask for a number of threads look at the cores they may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.threads])
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads),
                   "JAX_PLATFORMS": arguments.device}
    torch = Worker(python, "step_torch.py", environment)
    jax = Worker(python, "step_jax.py", environment)

    results, columns = {}, []
    contenders = [ORDINARY, PRIVATE, *TORCH, JAX]
    for model in models:
        small = arguments.device == "cpu" and model in ("lstm", "transformer")
        batch = arguments.batch or (32 if small else 256)
        question = {"model": model, "batch": batch, "seconds": arguments.seconds,
                    "device": arguments.device, "threads": arguments.threads}
        column = (model, batch)
        columns.append(column)
        results[column] = ask_sordino(arguments.sordino, question, arguments.threads)
        for who in [*TORCH, JAX]:
            worker = jax if who == JAX else torch
            results[column][who] = worker.ask({**question, "how": who})
        for who in contenders:
            print(f"{model} {batch}: {who}: {results[column][who]}", file=sys.stderr, flush=True)
    torch.close()
    jax.close()

    if arguments.json:
        print(json.dumps({f"{model} {batch}": results[(model, batch)] for model, batch in columns},
                         indent=2))
    else:
        print(f"{arguments.device}, {arguments.threads} threads; (factor over sordino's private "
              "step)")
        show(results, columns, contenders)
    return 0


if __name__ == "__main__":
    sys.exit(main())
