"""The examples for Opacus run with either package, by their imports alone."""
import gzip
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / 'examples' / 'python'


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A few made-up records in the files of each dataset."""
    random = np.random.default_rng(5)
    folder = tmp_path_factory.mktemp('data')
    for name in ('mnist', 'cifar-10', 'sst2'):
        (folder / name).mkdir()

    def idx(name, values):
        head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, '>i4').tobytes()
        with gzip.open(folder / 'mnist' / name, 'wb') as file:
            file.write(head + values.astype(np.uint8).tobytes())

    for part, n in (('train', 96), ('t10k', 10)):
        idx(f'{part}-images-idx3-ubyte.gz', random.integers(0, 256, (n, 28, 28)))
        idx(f'{part}-labels-idx1-ubyte.gz', random.integers(0, 10, n))
    for name in ('data_batch_1', 'test_batch'):
        rows = random.integers(0, 256, (64, 3073), dtype=np.uint8)
        rows[:, 0] %= 10
        with lzma.open(folder / 'cifar-10' / f'{name}.bin.xz', 'wb') as file:
            file.write(rows.tobytes())
    for name in ('train', 'dev'):
        with lzma.open(folder / 'sst2' / f'{name}.tsv.xz', 'wt') as file:
            file.write('label\tsentence\n')
            file.writelines(f'{i % 2}\t{"good" if i % 2 else "bad"} film, part {i}\n'
                            for i in range(64))
    return folder


@pytest.mark.parametrize('package', ['sordino', 'opacus'])
@pytest.mark.parametrize('name, options', [
    ('opacus_mnist', []),
    ('opacus_cifar10', ['--physical-batch-size', '16']),
    ('opacus_char_lstm', ['--length', '12'])])
def test_examples_run_with_either_package(name, options, package, data, tmp_path):
    script = (EXAMPLES / f'{name}.py').read_text()
    if package == 'opacus':
        pytest.importorskip('opacus')
        script = script.replace('from sordino import opacus', 'import opacus') \
                       .replace('sordino.opacus', 'opacus')
        assert 'sordino' not in script
    (tmp_path / 'example.py').write_text(script)
    run = subprocess.run(
        [sys.executable, '-W', 'ignore', 'example.py', '--batch-size', '32', '--epochs', '2',
         *options], cwd=tmp_path, env={**os.environ, 'SORDINO_DATA': str(data)},
        capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count('epsilon') == 2 and run.stdout.count('test accuracy') == 2
    assert 'nan' not in run.stdout
