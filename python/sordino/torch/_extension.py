"""The compiled half, for the version of torch that it was built with."""
import importlib
import re

from sordino import _torch_versions
from sordino._error import Error

try:
    import torch
except ModuleNotFoundError as error:
    if error.name == 'torch':
        _torch_versions.folder()  # says which one to install
    raise


def _load():
    name = _torch_versions.folder(torch.__version__).name
    return importlib.import_module(f'sordino.{name}._torch')


extension = _load()


def in_python(sentence):
    """The sentence with arguments where the command line has flags: --noise-kind is noise_kind."""
    return re.sub(r'--([a-z][a-z-]*[a-z])', lambda flag: flag[1].replace('-', '_'), sentence)


def translated(function, *arguments):
    """Calls a function of the library. Its errors speak of arguments."""
    try:
        return function(*arguments)
    except Error as error:
        sentence = in_python(str(error))
    except TypeError:  # its words hold the arguments
        sentence = 'an argument has a type that the library does not take.'
    raise Error(sentence)


def trained_parameters(model):
    return [(name, value) for name, value in model.named_parameters() if value.requires_grad]
