"""Losses as the library calls them."""
import contextlib

import torch


@contextlib.contextmanager
def _as_traced():
    """Models take the branches of a traced model.

    Some (all of transformers) branch on values of a mask, such as `mask.all()`, to save time. No
    value of a record may decide what a batch is computed with, and traced models do without.
    """
    before = torch.jit.is_tracing
    torch.jit.is_tracing = lambda: True
    try:
        yield
    finally:
        torch.jit.is_tracing = before


def loss_of(function, arguments):
    """A function of tensors, from one of records."""

    def losses(*tensors):
        with _as_traced():
            return function(*arguments(tensors))

    return losses
