"""Records of a dataset as tensors, each made alone.

The collate function of the user sees one record at a time, so no record can change what is made of
another: not by the length that a batch is padded to, and not in any other way.
"""
import collections
import concurrent.futures

import torch
from torch.utils import _pytree as pytree
from torch.utils.data import default_collate

from sordino._error import Error

# Records whose form is compared before the first step.
_COMPARED = 16


def _tensors(record):
    """The tensors of one collated record and what they are part of. Other values are constants."""
    leaves, tree = pytree.tree_flatten(record)
    return leaves, tree


def _form(leaves):
    return [(tuple(leaf.shape), leaf.dtype) if torch.is_tensor(leaf) else leaf for leaf in leaves]


class Records:
    """Loads batches while the step before them is computed."""

    def __init__(self, dataset, collate_fn, workers, device):
        if not hasattr(dataset, '__getitem__') or not hasattr(dataset, '__len__'):
            raise Error('the dataset has no length or no items; give a map-style dataset, so that '
                        'batches can be drawn at random.')
        if len(dataset) == 0:
            raise Error('the dataset has no records.')
        self._dataset = dataset
        self._collate = collate_fn or default_collate
        self._device = device
        self._columns = self._whole_columns()
        leaves, self._tree = self._first()
        self._form = _form(leaves)
        self._places = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)]
        self._constants = leaves
        if not self._places:
            raise Error('a record holds no tensor; let the collate function make tensors.')
        self.form = [leaves[i].to(device) for i in self._places]
        self._pool = concurrent.futures.ThreadPoolExecutor(workers + 1)
        self._workers = workers
        self._requested = collections.deque()

    def __len__(self):
        return len(self._dataset)

    def _whole_columns(self):
        """The tensors of a TensorDataset, which need no collating."""
        if type(self._dataset) is torch.utils.data.TensorDataset \
                and self._collate is default_collate:
            return [tensor.to(self._device) for tensor in self._dataset.tensors]
        return None

    def _record(self, index):
        return _tensors(self._collate([self._dataset[index]]))

    def _first(self):
        if self._columns is not None:
            return _tensors([column[:1] for column in self._columns])
        leaves, tree = self._record(0)
        for tensor in leaves:
            if torch.is_tensor(tensor) and (tensor.dim() == 0 or tensor.shape[0] != 1):
                raise Error('the collate function makes of one record a tensor whose first '
                            'dimension is not 1; let it stack records along the first dimension.')
        for index in range(1, min(_COMPARED, len(self._dataset))):
            other, other_tree = self._record(index)
            if other_tree != tree or _form(other) != _form(leaves):
                raise Error('records have tensors of different shapes or types, and a private '
                            'batch has one declared form; pad texts to a fixed length '
                            '(padding="max_length") and resize images to one size.')
        return leaves, tree

    def _alone(self, index):
        """The tensors of a record; None where it fails or has another form: it adds nothing."""
        try:
            leaves, tree = self._record(index)
            if tree == self._tree and _form(leaves) == self._form:
                return [leaves[i] for i in self._places]
        except Exception:  # a record must not be able to stop the run
            pass
        return None

    def _load(self, indices):
        if not indices:
            return None
        if self._columns is not None:
            rows = torch.tensor(indices, dtype=torch.int64, device=self._device)
            return [column.index_select(0, rows) for column in self._columns]
        if self._workers:
            rows = list(self._pool.map(self._alone, indices))
        else:
            rows = [self._alone(index) for index in indices]
        rows = [row for row in rows if row is not None]
        if not rows:
            return None
        return [torch.cat(column).to(self._device) for column in zip(*rows)]

    def request(self, indices, seed):
        del seed  # what the user's dataset draws is the user's
        self._requested.append(self._pool.submit(self._load, indices))

    def take(self):
        return self._requested.popleft().result()

    def arguments(self, tensors):
        """What the loss function is called with: the record as the collate function made it."""
        leaves = list(self._constants)
        for place, tensor in zip(self._places, tensors):
            leaves[place] = tensor
        record = pytree.tree_unflatten(leaves, self._tree)
        return record if isinstance(record, (list, tuple)) else (record,)

    def close(self):
        self._pool.shutdown(wait=False)
