"""Losses as the library calls them: on tensors whose first dimension has one record.

A Python function runs in the process and can do anything, so it is trusted. What it could do by
accident with a record beside computing is stopped here; the tensors do the rest (they have no item,
no numpy, and cannot be written into others).
"""
import contextlib
import re

import torch
import torch.utils.checkpoint
from torch import _tensor_str

from sordino._error import Error
from sordino.torch._extension import extension


def _refuse(*_, **__):
    raise Error('the loss takes the values of records out of their tensors; compute with the '
                'tensors as they are.')


def _zeroed(function):
    """Memory that was not written may hold other records."""
    return lambda *sizes, **options: function(*sizes, **options).zero_()


def _own(function):
    """A new tensor for each record, which values of the record can be written to."""
    return lambda *arguments, **options: extension.own(function(*arguments, **options))


def _refuse_function(cls, *_, **__):
    raise Error(f"the model uses the autograd function '{cls.__name__}', whose gradients per record "
                'cannot be computed; write it with operations of torch.')


def _check_autocast(autocast):
    """Autocast to bfloat16 is what a step of that precision does by itself."""
    if autocast._enabled and (autocast.fast_dtype != torch.bfloat16
                              or extension.precision() != 'bfloat16'):
        raise Error("the loss uses autocast; leave it out and give the trainer precision='bfloat16', "
                    'which computes the same products in bfloat16.')


@contextlib.contextmanager
def _without_autocast():
    enabled = [device for device in ('cpu', 'cuda') if torch.is_autocast_enabled(device)]
    for device in enabled:
        _check_autocast(torch.autocast(device, dtype=torch.get_autocast_dtype(device)))
        torch.set_autocast_enabled(device, False)
    try:
        yield
    finally:
        for device in enabled:
            torch.set_autocast_enabled(device, True)


class _NoCheckpoint:
    """A checkpoint in a private step computes its function, and frees no memory."""

    @staticmethod
    def apply(function, _preserve_rng_state, *arguments):
        return function(*arguments)

    @staticmethod
    def generator(*_, **__):
        yield


_FUNCTORCH = torch._C._functorch
_REPLACED = [
    # Models take the branches of a traced model. Some (all of transformers) branch on values of a
    # mask, such as `mask.all()`, to save time, and traced models do without.
    (torch.jit, 'is_tracing', lambda: True),
    # A tensor of a record has no text.
    (_tensor_str, '_str', lambda tensor, **_: f'tensor(of a record, size={tuple(tensor.shape)})'),
    (torch.autocast, '__enter__', _check_autocast),
    (torch.autocast, '__exit__', lambda *_: None),
    (torch.autograd.Function, 'apply', classmethod(_refuse_function)),
    (torch.utils.checkpoint, 'CheckpointFunction', _NoCheckpoint),
    (torch.utils.checkpoint, '_checkpoint_without_reentrant_generator', _NoCheckpoint.generator),
    *((torch, name, _zeroed(getattr(torch, name)))
      for name in ('empty', 'empty_like', 'empty_strided', 'empty_permuted')),
    *((torch.Tensor, name, _zeroed(getattr(torch.Tensor, name)))
      for name in ('new_empty', 'new_empty_strided')),
    *((_FUNCTORCH, name, _refuse)
      for name in ('get_unwrapped', '_unwrap_batched', '_remove_batch_dim', 'unwrap_if_dead',
                   '_unwrap_for_grad') if hasattr(_FUNCTORCH, name)),
]


_EMPTY = ('empty', 'empty_like', 'empty_strided', 'empty_permuted', 'new_empty', 'new_empty_strided')
_MAKERS = ('zeros', 'ones', 'full', 'tensor', 'eye', 'arange', 'zeros_like', 'ones_like', 'full_like',
           'clone', 'new_zeros', 'new_ones', 'new_full', 'new_tensor', *_EMPTY)
_REPLACED_BY_OWN = [
    (place, name, _own(_zeroed(getattr(place, name)) if name in _EMPTY else getattr(place, name)))
    for place in (torch, torch.Tensor) for name in _MAKERS if hasattr(place, name)]
# What torch says where values of a record are written to a tensor that is the same for all.
_IS_SHARED = re.compile(r'is not possible because there exists a Tensor|vmap: inplace arithmetic'
                        r"|doesn't match the broadcast shape|_(\.\w+)? hit the vmap fallback")


_shown_by_torch = _tensor_str._functorch_wrapper_str_intern
hides_all = False  # while a pass waits for what is around it


def _shown_wrapper(tensor, *, tensor_contents=None):
    """A tensor of records that was kept has no text either. Those of torch.func have the place of
    their transform as level, while it runs."""
    if _FUNCTORCH.is_batchedtensor(tensor) and (
            hides_all or _FUNCTORCH.maybe_get_level(tensor) > (_FUNCTORCH.maybe_current_level() or 0)):
        return f'<private tensor of shape {list(tensor.shape)}>'
    return _shown_by_torch(tensor, tensor_contents=tensor_contents)


_tensor_str._functorch_wrapper_str_intern = _shown_wrapper


@contextlib.contextmanager
def _alone(with_own_tensors=False):
    replaced = _REPLACED + (_REPLACED_BY_OWN if with_own_tensors else [])
    before = [(place, name, vars(place).get(name, getattr(place, name)))
              for place, name, _ in replaced]
    seed = torch.initial_seed()
    for place, name, value in replaced:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)
    if torch.initial_seed() != seed:
        raise Error("the loss sets the seed of torch's generator, so a record would get the random "
                    'numbers of another one; leave the seed alone.')


class OwnTensors:
    """Whether new tensors of a loss are made for each record: where it writes values of a record to
    one that it made of sizes alone (`y = torch.zeros(1, 8); y[:, :4] = x`). Others are called once and
    make what they always make."""

    def __init__(self):
        self.are_made = False


def loss_of(function, arguments, own_tensors=None):
    """A function of tensors, from one of records."""
    own = own_tensors or OwnTensors()

    def call(tensors):
        with _without_autocast(), _alone(own.are_made):
            return function(*arguments(tensors))

    def losses(*tensors):
        if not own.are_made:
            try:
                return call(tensors)
            except RuntimeError as error:
                if not _IS_SHARED.search(str(error)):
                    raise
        own.are_made = True
        return call(tensors)

    return losses
