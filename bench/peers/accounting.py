#!/usr/bin/env python3
"""The accounting questions asked of Sordino, dp_accounting and prv_accountant in one run.

    bench/peers/accounting.py [path/to/sordino] [--prv-long]

Makes a virtual environment under build/peers (ignored by git), installs dp-accounting 0.6 and
prv_accountant 0.2 there, and prints one table: processor time of the whole process (what a user
waits for on a free machine), of the question alone where the peer's import is not counted, the
answer, its error against Sordino's certified interval, and the ratio of the times. prv_accountant
takes minutes and gigabytes for a million steps: that question is asked only with --prv-long.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build" / "peers" / "venv"
PACKAGES = ["dp-accounting==0.6.*", "prv_accountant==0.2.*"]

QUESTIONS = [
    # name, rate, sigma, steps, delta, or a calibration (epsilon given, no sigma)
    {"name": "rate .01, sigma 1, T 1e4, delta 1e-6", "rate": 0.01, "sigma": 1, "steps": 10000,
     "delta": 1e-6},
    {"name": "rate .001, sigma 1, T 1e6, delta 1e-6", "rate": 0.001, "sigma": 1, "steps": 1000000,
     "delta": 1e-6},
    {"name": "rate .00033, sigma 4, T 1e4, delta 1.1e-18", "rate": 0.00033, "sigma": 4,
     "steps": 10000, "delta": 1.1e-18},
    {"name": "calibrate to (1, 1e-5), rate .01, T 1e4", "rate": 0.01, "epsilon": 1, "steps": 10000,
     "delta": 1e-5},
]

DP_ACCOUNTING = r'''
import json, sys, time
q = json.loads(sys.argv[1])
import dp_accounting
from dp_accounting import pld
start = time.process_time()
def event(sigma):
    step = dp_accounting.PoissonSampledDpEvent(q["rate"], dp_accounting.GaussianDpEvent(sigma))
    return dp_accounting.SelfComposedDpEvent(step, q["steps"])
def make():
    return pld.PLDAccountant(value_discretization_interval=1e-4)
if "sigma" in q:
    answer = make().compose(event(q["sigma"])).get_epsilon(q["delta"])
    interval = [None, answer]
else:
    # A bracket close to the answer: from a small sigma upward it takes gigabytes.
    answer = dp_accounting.calibrate_dp_mechanism(make, event, q["epsilon"], q["delta"],
        dp_accounting.ExplicitBracketInterval(2, 8), tol=1e-4)
    interval = [None, answer]
print(json.dumps({"interval": interval, "seconds": time.process_time() - start}))
'''

PRV_ACCOUNTANT = r'''
import json, sys, time
q = json.loads(sys.argv[1])
from prv_accountant import PRVAccountant, PoissonSubsampledGaussianMechanism
start = time.process_time()
mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=q["sigma"], sampling_probability=q["rate"])
accountant = PRVAccountant(prvs=[mechanism], max_self_compositions=[q["steps"]],
                           eps_error=0.01, delta_error=q["delta"] / 1000)
low, _, high = accountant.compute_epsilon(delta=q["delta"], num_self_compositions=[q["steps"]])
print(json.dumps({"interval": [low, high], "seconds": time.process_time() - start}))
'''


def prepare():
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    probe = subprocess.run([str(python), "-c", "import dp_accounting, prv_accountant"],
                           capture_output=True, check=False)
    if probe.returncode != 0:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return str(python)


def run(command, limit):
    """Processor seconds, peak MiB and standard output of one process; None in place of the output
    when it failed or passed the limit."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.posix_spawn(command[0], command, {**os.environ, "OMP_NUM_THREADS": "1"},
                             file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1),
                                           (os.POSIX_SPAWN_DUP2, err.fileno(), 2)])
        timer = threading.Timer(limit, os.kill, (pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(pid, 0)
        timer.cancel()
        out.seek(0)
        err.seek(0)
        text = out.read().decode() if status == 0 else None
        last = err.read().decode().strip().splitlines()[-1:] if status != 0 else []
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text, " ".join(last)


def sordino_command(path, question):
    arguments = ["--rate", str(question["rate"]), "--steps", str(question["steps"]), "--delta",
                 str(question["delta"]), "--json"]
    if "sigma" in question:
        return [path, "account", "--noise", str(question["sigma"]), *arguments]
    return [path, "calibrate", "--epsilon", str(question["epsilon"]), *arguments]


def show(question, who, seconds, alone, memory, interval, truth, ratio):
    low, high = interval
    text = f"<= {high:.8g}" if low is None else f"[{low:.8g}, {high:.8g}]"
    error = f"{(high - truth) / truth:+.1e}" if truth and high < float("inf") else "-"
    alone = f"{1e3 * alone:9.0f}" if alone is not None else f"{'':9}"
    ratio = f"{ratio:8.0f}x" if ratio else f"{'':9}"
    print(f"{question['name']:44} {who:15} {1e3 * seconds:9.1f} {alone} {memory:7.0f} "
          f"{text:32} {error:>9} {ratio}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sordino", nargs="?", default=str(ROOT / "build/release/bin/sordino"))
    parser.add_argument("--prv-long", action="store_true")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one peer process")
    arguments = parser.parse_args()
    python = prepare()
    print(f"{'question':44} {'who':15} {'cpu ms':>9} {'alone ms':>9} {'MiB':>7} {'answer':32} "
          f"{'error':>9} {'ratio':>9}")
    for question in QUESTIONS:
        runs = [run(sordino_command(arguments.sordino, question), arguments.limit)
                for _ in range(20)]
        ours, memory, text, message = sorted(runs, key=lambda r: r[0])[10]
        if text is None:
            print(f"{question['name']:44} sordino failed: {message}")
            return 1
        answer = json.loads(text)
        if "sigma" in question:
            interval = [answer["epsilon"]["lower"], answer["epsilon"]["upper"]]
            truth = sum(interval) / 2
        else:
            interval = [None, answer["noise_multiplier"]]
            truth = interval[1]
        show(question, "sordino", ours, None, memory, interval, truth, None)
        peers = [("dp_accounting", DP_ACCOUNTING)]
        if "sigma" in question and (question["steps"] < 1e5 or arguments.prv_long):
            peers.append(("prv_accountant", PRV_ACCOUNTANT))
        for who, script in peers:
            seconds, memory, text, message = run([python, "-c", script, json.dumps(question)],
                                                 arguments.limit)
            if text is None:
                print(f"{question['name']:44} {who:15} failed: {message[:80]}", flush=True)
                continue
            result = json.loads(text.strip().splitlines()[-1])
            show(question, who, seconds, result["seconds"], memory, result["interval"], truth,
                 seconds / ours)
    return 0


if __name__ == "__main__":
    sys.exit(main())
