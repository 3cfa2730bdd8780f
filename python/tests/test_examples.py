"""The programs and the notebook of examples/python run."""
import os
import pathlib
import shutil
import subprocess
import sys

import nbclient
import nbformat
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples/python'


def test_the_first_model_is_trained_and_saved(tmp_path):
    result = subprocess.run([sys.executable, EXAMPLES / 'first_model.py', tmp_path / 'run'],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    accuracy = float(result.stdout.partition('accuracy ')[2].partition(' ')[0])
    assert accuracy > 0.8
    assert (tmp_path / 'run/statement.txt').read_text().strip() in result.stdout


@pytest.mark.parametrize('notebook', sorted(EXAMPLES.glob('*.ipynb')), ids=lambda path: path.stem)
def test_the_notebook_runs_and_is_stored_without_outputs(notebook, tmp_path, monkeypatch):
    if shutil.which('sordino') is None:
        pytest.skip('the program sordino is not on the path')
    monkeypatch.setenv('SORDINO_STATE', os.fspath(tmp_path / 'state'))
    monkeypatch.setenv('JUPYTER_PLATFORM_DIRS', '1')
    cells = nbformat.read(notebook, as_version=4)
    assert not any(cell.get('outputs') for cell in cells.cells)
    client = nbclient.NotebookClient(cells, timeout=600, kernel_name='python3',
                                     resources={'metadata': {'path': os.fspath(tmp_path)}})
    client.execute()
    shown = [output for cell in cells.cells for output in cell.get('outputs', [])
             if 'text/html' in output.get('data', {})]
    assert shown, 'nothing of the notebook is shown as a page'
    assert (tmp_path / 'report.html').exists()
