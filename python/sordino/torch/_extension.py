"""The compiled half, for the version of torch that it was built with."""
import re

import torch

from sordino._error import Error


def _load():
    try:
        from sordino import _torch
    except ImportError as error:
        raise ImportError(
            f'this build of sordino does not fit torch {torch.__version__}; install torch 2.11, or '
            f'build sordino anew beside the torch that you have ({error})') from None
    return _torch


extension = _load()


def in_python(sentence):
    """The sentence with arguments where the command line has flags: --noise-kind is noise_kind."""
    return re.sub(r'--([a-z][a-z-]*[a-z])', lambda flag: flag[1].replace('-', '_'), sentence)


def translated(function, *arguments):
    """Calls a function of the library. Its errors speak of arguments."""
    try:
        return function(*arguments)
    except Error as error:
        raise Error(in_python(str(error))) from None


def trained_parameters(model):
    return [(name, value) for name, value in model.named_parameters() if value.requires_grad]
