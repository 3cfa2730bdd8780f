"""The example script of Hugging Face, without and with privacy."""
import difflib
import lzma
import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples' / 'python'
SCRIPTS = ['sst2_plain.py', 'sst2_transformers.py']


def test_two_lines_make_the_script_private():
    plain, private = ((EXAMPLES / name).read_text().splitlines() for name in SCRIPTS)
    changed = [line for line in difflib.ndiff(plain, private) if line[0] in '+-']
    assert [line[0] for line in changed] == ['-', '+', '-', '+']


@pytest.mark.parametrize('script', SCRIPTS)
def test_the_script_runs(tmp_path, script):
    """On made-up sentences in the form of SST-2."""
    (tmp_path / 'sst2').mkdir()
    for part, count in (('train', 2100), ('dev', 20)):
        with lzma.open(tmp_path / 'sst2' / f'{part}.tsv.xz', 'wt') as file:
            file.write('label\tsentence\n')
            file.writelines(f'{i % 2}\t{"good" if i % 2 else "bad"} film {i % 7}\n'
                            for i in range(count))
    ran = subprocess.run([sys.executable, str(EXAMPLES / script), '2'], capture_output=True,
                         text=True, env={**os.environ, 'SORDINO_DATA': str(tmp_path)})
    assert ran.returncode == 0, ran.stderr
    assert 'accuracy' in ran.stdout.splitlines()[-1]
    assert ('epsilon' in ran.stdout) == (script == SCRIPTS[1])
