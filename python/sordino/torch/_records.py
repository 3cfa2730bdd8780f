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

# Records whose form is compared where none is declared.
_COMPARED = 16


def _form(leaves):
    return [(tuple(leaf.shape), leaf.dtype) if torch.is_tensor(leaf) else leaf for leaf in leaves]


class _Reader:
    """Makes tensors of records."""

    def __init__(self, dataset, collate):
        self._dataset = dataset
        self._collate = collate

    def declare(self, leaves, tree):
        self._form, self._tree = _form(leaves), tree
        self._places = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)]

    def record(self, index):
        return self.collated(self._dataset[index])

    def collated(self, record):
        return pytree.tree_flatten(self._collate([record]))

    def has_form(self, leaves, tree):
        return tree == self._tree and _form(leaves) == self._form

    def _alone(self, index):
        """The tensors of a record; None where it fails or has another form: it adds nothing."""
        try:
            leaves, tree = self.record(index)
            if self.has_form(leaves, tree):
                return [leaves[i] for i in self._places]
        except Exception:  # a record must not be able to stop the run
            pass
        return None

    def load(self, indices):
        rows = [row for row in map(self._alone, indices) if row is not None]
        return [torch.cat(column) for column in zip(*rows)] if rows else None


_worker_reader = None


def _start_worker(reader):
    global _worker_reader
    _worker_reader = reader
    torch.set_num_threads(1)


def _load_in_worker(indices):
    return _worker_reader.load(indices)


class Records:
    """Loads batches while the step before them is computed."""

    def __init__(self, dataset, collate_fn, workers, device, example):
        if not hasattr(dataset, '__getitem__') or not hasattr(dataset, '__len__'):
            raise Error('the dataset has no length or no items; give a map-style dataset, so that '
                        'batches can be drawn at random.')
        collate = collate_fn or default_collate
        self._dataset = dataset
        self._device = device
        self._reader = _Reader(dataset, collate)
        leaves, self._tree = self._declared(example)
        self._constants = leaves
        self._places = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)]
        if not self._places:
            raise Error('a record holds no tensor; let the collate function make tensors.')
        self._columns = self._whole_columns(leaves, collate)
        self.form = [leaves[i].to(device) for i in self._places]
        self._workers = 0 if self._columns else workers
        # Forked before the run is made: no worker ever holds its keys.
        self._processes = torch.multiprocessing.get_context('fork').Pool(
            self._workers, _start_worker, (self._reader,)) if self._workers else None
        self._ahead = concurrent.futures.ThreadPoolExecutor(1)
        self._requested = collections.deque()

    def __len__(self):
        return len(self._dataset)

    def _declared(self, example):
        """The form of all records: that of the example, or of the first record."""
        if example is not None:
            leaves, tree = self._reader.collated(example)
        elif len(self._dataset) > 0:
            leaves, tree = self._reader.record(0)
        else:
            raise Error('the dataset has no records, so their form is not known; give a made-up '
                        'record as example.')
        for tensor in leaves:
            if torch.is_tensor(tensor) and (tensor.dim() == 0 or tensor.shape[0] != 1):
                raise Error('the collate function makes of one record a tensor whose first '
                            'dimension is not 1; let it stack records along the first dimension.')
        self._reader.declare(leaves, tree)
        if example is None:
            for index in range(1, min(_COMPARED, len(self._dataset))):
                if not self._reader.has_form(*self._reader.record(index)):
                    raise Error('records have tensors of different shapes or types, and a private '
                                'batch has one declared form; pad texts to a fixed length '
                                '(padding="max_length") and resize images to one size.')
        return leaves, tree

    def _whole_columns(self, leaves, collate):
        """The tensors of a TensorDataset of this form, which need no collating."""
        if type(self._dataset) is not torch.utils.data.TensorDataset \
                or collate is not default_collate \
                or _form([t[:1] for t in self._dataset.tensors]) != _form(leaves):
            return None
        return [tensor.to(self._device) for tensor in self._dataset.tensors]

    def _load(self, indices):
        if not indices:
            return None
        if self._columns:
            rows = torch.tensor(indices, dtype=torch.int64, device=self._device)
            return [column.index_select(0, rows) for column in self._columns]
        if self._processes:
            shares = [indices[k::self._workers] for k in range(self._workers)]
            parts = [part for part in self._processes.map(_load_in_worker, shares, 1)
                     if part is not None]
            columns = [torch.cat(column) for column in zip(*parts)]
        else:
            columns = self._reader.load(indices)
        return [column.to(self._device) for column in columns] if columns else None

    def request(self, indices, seed):
        del seed  # what the user's dataset draws is the user's
        self._requested.append(self._ahead.submit(self._load, indices))

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
        self._ahead.shutdown(wait=False)
        if self._processes:
            self._processes.terminate()
