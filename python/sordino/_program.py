"""The command line: `sordino`, and as `python -m sordino._program` its commands that need torch."""
import json
import os
import pathlib
import sys

from sordino import _torch_versions

_FOLDER = pathlib.Path(__file__).parent


def main() -> None:
    """Becomes the program. It does not ask for torch before a command needs it."""
    os.environ['SORDINO_PYTHON'] = sys.executable
    os.execv(_FOLDER / 'bin' / 'sordino', ['sordino', *sys.argv[1:]])


def _become_torch_program() -> None:
    try:
        program = _torch_versions.folder() / 'sordino-torch'
        libraries = [str(_torch_versions.libraries()), os.environ.get('LD_LIBRARY_PATH')]
    except ImportError as error:
        if '--json' in sys.argv:
            print(json.dumps({'error': {'message': str(error), 'exit_code': 2}}))
        print(f'sordino: {error}', file=sys.stderr)
        sys.exit(2)
    os.environ['LD_LIBRARY_PATH'] = os.pathsep.join(filter(None, libraries))
    os.execv(program, ['sordino', *sys.argv[1:]])


if __name__ == '__main__':
    _become_torch_program()
