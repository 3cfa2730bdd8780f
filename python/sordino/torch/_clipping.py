"""Norms and clipped sums of gradients of single records, for audits of public data."""
from torch.utils import _pytree as pytree

from sordino.torch._extension import extension, trained_parameters, translated
from sordino.torch._loss import loss_of


def _call(name, model, loss, batch, how, *more):
    leaves, tree = pytree.tree_flatten(tuple(batch) if isinstance(batch, list) else batch)

    def arguments(tensors):
        record = pytree.tree_unflatten(tensors, tree)
        return record if isinstance(record, tuple) else (record,)

    def run():
        clipper = extension.Clipper(trained_parameters(model), how)
        return clipper.names, getattr(clipper, name)(loss_of(loss, arguments), leaves, *more)

    return translated(run)


def norms(model, loss, batch, *, method='automatic'):
    """The norm of the gradient of each record of a batch, float64. They are private values.

    `batch` is what the loss is called with, with all records: a tuple of tensors, or one dict.
    """
    return _call('norms', model, loss, batch, method)[1]


def clipped_sum(model, loss, batch, *, clip, method='automatic'):
    """The sum of the gradients of the records, each clipped to the norm `clip`, by name.

    It has no noise and is a private value.
    """
    return dict(zip(*_call('clipped_sum', model, loss, batch, method, float(clip))))
