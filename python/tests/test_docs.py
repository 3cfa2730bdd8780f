"""The ```python blocks of the pages about Python and of both READMEs run as they are written.

The blocks of one section share their names, in a tutorial those of the page. Each section begins with made-up records, a model and an
optimizer under the names that the page uses, in a folder of its own. A section that needs a module
that is not installed is skipped.
"""
import ast
import importlib
import os
import pathlib
import re

import pytest
import torch
import torch.nn.functional as F

import sordino

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [SOURCE / name for name in
         ('docs/python.md', 'docs/tutorial-pytorch.md', 'README.md', 'python/README.md')]


def _sections(page):
    text = page.read_text(encoding='utf-8')
    blocks = {}
    for part in re.finditer(r'^##? ([^\n]*)$|^```python\n(.*?)^```$', text, re.MULTILINE | re.DOTALL):
        if part[2] is None:
            title = page.stem if page.stem.startswith('tutorial') else part[1]
        else:  # behind as many lines as on the page, so that an error names its line
            blocks.setdefault(title, []).append('\n' * text.count('\n', 0, part.start(2)) + part[2])
    return [pytest.param(page, of_title, id=title) for title, of_title in blocks.items()]


def _missing(blocks):
    """What the blocks use and is not there."""
    if not hasattr(sordino, 'Ledger'):
        yield 'sordino.Ledger'
    for node in ast.walk(ast.parse('\n'.join(blocks))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            if isinstance(node, ast.Attribute) and getattr(node.value, 'id', None) == 'sordino' \
                    and not hasattr(sordino, node.attr):
                yield f'sordino.{node.attr}'
            continue
        for name in names:
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                yield error.name


def _names():
    """What a reader of the page has."""
    torch.manual_seed(0)
    x = torch.randn(2000, 20)
    y = (x[:, :3].sum(dim=1) > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    return {
        '__name__': 'page', 'torch': torch, 'F': F, 'model': model,
        'optimizer': torch.optim.SGD(model.parameters(), lr=0.5),
        'train_set': torch.utils.data.TensorDataset(x, y),
        'test_set': torch.utils.data.TensorDataset(x[:100], y[:100]),
    }


@pytest.mark.parametrize('page, blocks', [section for page in PAGES for section in _sections(page)])
def test_blocks_of_the_section_run(page, blocks, tmp_path, monkeypatch):
    for name in _missing(blocks):
        pytest.skip(f'{name} is not there')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('SORDINO_STATE', os.fspath(tmp_path / 'state'))
    names = _names()
    if 'Ledger.init' not in ''.join(blocks):
        sordino.Ledger.init('patients.db', epsilon=8, delta=1e-5)
    for block in blocks:
        exec(compile(block, str(page), 'exec'), names)


def test_the_page_has_blocks():
    assert len(_sections(PAGES[0])) >= 5
    assert all(map(_sections, PAGES))
