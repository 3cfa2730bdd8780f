#!/usr/bin/env python3
"""A private logistic regression of the made-up census by `sordino fit` and by diffprivlib.

    bench/peers/census.py [path/to/sordino] [--fits 10]

Both get the columns of examples/schemas/census.toml with the same bounds, scaled and centred as
`sordino fit` does it, and the settings that each chooses by itself. Neighbours differ in one row that
is replaced, the number of rows is public. Printed are mean and deviation of the test accuracy, and the
median processor time of a fit with one thread: of diffprivlib without reading the tables, of Sordino
for the whole process.
Makes a virtual environment under build/peers with diffprivlib 0.6.6 and scikit-learn 1.7.2 the first
time, and needs PyPI for it.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build" / "peers" / "fit"
PACKAGES = ["diffprivlib==0.6.6", "scikit-learn==1.7.2"]
EPSILONS = [0.1, 1]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

DIFFPRIVLIB = r'''
import csv, json, math, sys, time, tomllib, warnings
import numpy
warnings.simplefilter("ignore")
from diffprivlib.models import LogisticRegression
schema = tomllib.load(open(sys.argv[1], "rb"))["column"]
features, label = [], None
for column in schema:
    if column["kind"] in ("numeric", "categorical"):
        features.append(column)
    elif column["kind"] == "label":
        label = column

def rows(path):
    x, y = [], []
    for row in csv.DictReader(open(path), skipinitialspace=True):
        values = []
        for column in features:
            cell = row[column["name"]]
            if column["kind"] == "numeric":
                scaled = (float(cell) - column["low"]) / (column["high"] - column["low"])
                values.append(min(1, max(0, scaled)) - 0.5)
            else:
                names = column["values"]
                place = names.index(cell) if cell in names else names.index("*")
                values += [(i == place) - 1 / len(names) for i in range(len(names))]
        x.append(values)
        y.append(next(i for i, names in enumerate(label["values"]) if row[label["name"]] in names))
    return numpy.array(x), numpy.array(y)

x, y = rows(sys.argv[2])
test_x, test_y = rows(sys.argv[3])
norm = math.sqrt(sum(0.25 if c["kind"] == "numeric" else 1 - 1 / len(c["values"]) for c in features))
for _ in range(int(sys.argv[5])):
    model = LogisticRegression(epsilon=float(sys.argv[4]), data_norm=norm)
    start = time.process_time()
    model.fit(x, y)
    print(json.dumps([float(model.score(test_x, test_y)), time.process_time() - start]))
'''


def sordino(program, folder, epsilon, delta, fits):
    """Accuracy and processor time of each fit."""
    found = []
    for _ in range(fits):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory(dir=folder) as out:
            printed = subprocess.run(
                [program, "fit", "census.csv", "--schema", ROOT / "examples/schemas/census.toml",
                 "--epsilon", str(epsilon), "--delta", str(delta), "--adjacency", "replace-one",
                 "--test", "test.csv", "--out", out, "--json"],
                cwd=folder, env=ONE_THREAD, capture_output=True, text=True, check=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append((json.loads(printed)["test_accuracy"], seconds))
    return found


def diffprivlib(folder, epsilon, fits):
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "--quiet", *PACKAGES], check=True)
    printed = subprocess.run(
        [VENV / "bin/python", "-c", DIFFPRIVLIB, ROOT / "examples/schemas/census.toml", "census.csv",
         "test.csv", str(epsilon), str(fits)],
        cwd=folder, env=ONE_THREAD, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sordino", nargs="?", default=ROOT / "build/release/bin/sordino",
                        type=pathlib.Path)
    parser.add_argument("--fits", type=int, default=10)
    options = parser.parse_args()
    program = options.sordino.resolve()
    print(f"{'epsilon':>7} {'delta':>6} {'who':<12} {'test accuracy':<16} {'seconds':>7}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "examples/make_census.py", "census.csv", "test.csv"],
                       cwd=folder, check=True)
        for epsilon in EPSILONS:
            for who, delta, found in [
                    ("diffprivlib", 0, diffprivlib(folder, epsilon, options.fits)),
                    ("sordino", 0, sordino(program, folder, epsilon, 0, options.fits)),
                    ("sordino", 1e-6, sordino(program, folder, epsilon, 1e-6, options.fits))]:
                accuracies, seconds = zip(*found)
                print(f"{epsilon:7g} {delta:6g} {who:<12} {100 * statistics.mean(accuracies):5.1f} +- "
                      f"{100 * statistics.stdev(accuracies):.1f} %    {statistics.median(seconds):7.2f}",
                      flush=True)


if __name__ == "__main__":
    main()
