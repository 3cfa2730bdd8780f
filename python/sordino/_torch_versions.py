"""What was compiled for which torch: the folder _torch_2_11 holds what needs torch 2.11."""
import importlib.metadata
import importlib.util
import pathlib

_FOLDER = pathlib.Path(__file__).parent
_PREFIX = '_torch_'


def versions() -> list[str]:
    """The minor versions of torch that the package was built for, such as '2.11'."""
    numbers = sorted(tuple(map(int, folder.name[len(_PREFIX):].split('_')))
                     for folder in _FOLDER.glob(_PREFIX + '[0-9]*_[0-9]*'))
    return [f'{major}.{minor}' for major, minor in numbers]


def _installed() -> str | None:
    try:
        return importlib.metadata.version('torch')
    except importlib.metadata.PackageNotFoundError:
        return None


def folder(version: str | None = None) -> pathlib.Path:
    """The folder for a version of torch, or for the one that is installed."""
    built = versions()
    if not built:
        raise ImportError('this sordino was built without torch; build it beside a libtorch, which '
                          'tools/setup fetches.')
    advice = f"install it with: pip install 'torch=={built[-1]}.*'"
    version = version or _installed()
    if version is None:
        raise ImportError(f'this needs torch, which is not installed; {advice}')
    minor = '.'.join(version.split('.')[:2])
    if minor not in built:
        raise ImportError(f'torch is {version} and this sordino was built for torch '
                          f'{" and ".join(built)}; {advice}, or build sordino beside the torch '
                          'that you have.')
    return _FOLDER / (_PREFIX + minor.replace('.', '_'))


def libraries() -> pathlib.Path:
    """The folder with libtorch of the torch that is installed, which is not imported."""
    spec = importlib.util.find_spec('torch')
    if spec is None or spec.origin is None:
        raise ImportError('torch is installed and cannot be imported; install it again.')
    return pathlib.Path(spec.origin).parent / 'lib'
