"""What the tests of the tier without torch share."""
import csv
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / 'src/sordino/accounting/testdata/accounting_vectors.csv'


def vectors(mechanism, quantity):
    """(parameters, expected value, relative tolerance) of the rows of a reference table."""
    with open(VECTORS, newline='', encoding='utf-8') as file:
        for row in csv.DictReader(file):
            if row['mechanism'] == mechanism and row['quantity'] == quantity:
                pairs = (part.split('=') for part in row['params'].split(';'))
                yield {key: float(value) for key, value in pairs}, float(row['expected']), float(
                    row['rtol'])


def program():
    """The path of the program that was built beside the package."""
    build = os.environ.get('SORDINO_BUILD')
    built = pathlib.Path(build, 'bin/sordino') if build else None
    found = str(built) if built and built.exists() else shutil.which('sordino')
    if found is None:
        pytest.skip('the program sordino is not built; build its target.')
    return found


def run_program(*arguments):
    """The JSON object that a command prints."""
    result = subprocess.run([program(), *map(str, arguments), '--json'], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def refusal(*arguments):
    """The sentence with which a command refuses."""
    result = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 2
    return result.stderr.removeprefix('sordino: ').strip()
