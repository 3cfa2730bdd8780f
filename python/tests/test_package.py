"""The package where it is installed: what it loads, which torch it takes, and its program."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from sordino import _torch_versions

BUILD = os.environ.get('SORDINO_BUILD')


def _python(*arguments, path=None):
    """Runs Python with folders before all others."""
    folders = [*(path or []), os.environ.get('PYTHONPATH', '')]
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, folders))})


def _with_torch(folder, version):
    """A folder that says that this version of torch is installed."""
    place = folder / f'torch-{version}.dist-info'
    place.mkdir(parents=True)
    (place / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: torch\nVersion: {version}\n')
    return folder


def _built_for(folder, monkeypatch, *names):
    for name in names:
        (folder / name).mkdir()
    monkeypatch.setattr(_torch_versions, '_FOLDER', folder)


def test_the_package_loads_neither_torch_nor_numpy():
    result = _python('-c', 'import sys, sordino; print({"torch", "numpy"} & set(sys.modules))')
    assert result.stdout.strip() == 'set()', result.stderr


@pytest.mark.parametrize('version', ['2.11.0', '2.11.3+cpu', '2.11.0a0+git1'])
def test_a_torch_has_the_folder_of_its_minor_version(tmp_path, monkeypatch, version):
    _built_for(tmp_path, monkeypatch, '_torch_2_9', '_torch_2_11')
    assert _torch_versions.versions() == ['2.9', '2.11']
    assert _torch_versions.folder(version).name == '_torch_2_11'


@pytest.mark.parametrize('version', ['2.1.0', '2.12.0', '3.11.0'])
def test_another_torch_is_refused_with_what_to_install(tmp_path, monkeypatch, version):
    _built_for(tmp_path, monkeypatch, '_torch_2_9', '_torch_2_11')
    with pytest.raises(ImportError) as refusal:
        _torch_versions.folder(version)
    assert str(refusal.value) == (
        f'torch is {version} and this sordino was built for torch 2.9 and 2.11; install it with: '
        "pip install 'torch==2.11.*', or build sordino beside the torch that you have.")


def test_a_package_without_torch_says_so(tmp_path, monkeypatch):
    _built_for(tmp_path, monkeypatch)
    with pytest.raises(ImportError, match='built without torch'):
        _torch_versions.folder('2.11.0')


def test_the_import_without_torch_says_what_to_install():
    folder = os.fspath(pathlib.Path(_torch_versions.__file__).parents[1])
    # Without `site` there are no installed packages.
    result = _python('-S', '-c', f'import sys; sys.path.insert(0, {folder!r}); import sordino.torch')
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "ImportError: this needs torch, which is not installed; install it with: pip install "
        "'torch==2.11.*'")


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """The package as a wheel holds it."""
    if BUILD is None or not pathlib.Path(BUILD, 'bin/sordino').exists():
        pytest.skip('SORDINO_BUILD names no build tree with the program')
    folder = tmp_path_factory.mktemp('installed')
    subprocess.run(['cmake', '--install', BUILD, '--component', 'python', '--prefix', folder],
                   check=True, capture_output=True)
    return folder


def _program(*arguments, path):
    return _python('-c', 'from sordino._program import main; main()', *arguments, path=path)


def test_all_that_is_installed_lies_in_one_folder(installed):
    assert [path.name for path in installed.iterdir()] == ['sordino']
    names = {path.name.partition('.')[0] for path in (installed / 'sordino').iterdir()}
    assert {'__init__', '_core', 'bin', 'py', 'torch', '_torch_2_11'} <= names


def test_the_installed_program_answers_without_torch(installed, tmp_path):
    result = _program('account', '--rate', '0.01', '--noise', '4', '--steps', '9', '--delta', '1e-5',
                      path=[installed, _with_torch(tmp_path, '9.9.0')])
    assert result.returncode == 0, result.stderr
    assert 'epsilon' in result.stdout


def test_the_installed_program_plans_a_training_with_the_torch_that_is_there(installed):
    result = _program('train', '--data', 'digits', '--model', 'cnn-mnist', '--epsilon', '3',
                      '--dry-run', path=[installed])
    assert result.returncode == 0, result.stderr
    assert 'epsilon' in result.stdout


def test_the_installed_program_refuses_another_torch_in_one_sentence(installed, tmp_path):
    result = _program('train', '--json', path=[installed, _with_torch(tmp_path, '9.9.0')])
    assert result.returncode == 2
    assert result.stderr.startswith('sordino: torch is 9.9.0 and this sordino was built for torch ')
    assert json.loads(result.stdout)['error']['exit_code'] == 2
