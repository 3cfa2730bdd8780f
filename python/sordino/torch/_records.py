"""Records of a dataset as tensors, each made alone.

The collate function of the user sees one record at a time, so no record can change what is made of
another: not by the length that a batch is padded to, and not in any other way.
"""
import collections
import concurrent.futures
import concurrent.futures.process
import multiprocessing
import random
import signal
import sys

import torch
from torch.utils import _pytree as pytree
from torch.utils.data import default_collate

from sordino._error import Error

# Records whose form is compared where none is declared.
_COMPARED = 16


def seed_anew():
    """What datasets and collate functions draw from: a known seed would tell how a record was
    changed, and one record more would shift what others get."""
    random.seed()
    torch.seed()
    if 'numpy' in sys.modules:
        sys.modules['numpy'].random.seed()


def _form(leaves):
    return [(tuple(leaf.shape), leaf.dtype, leaf.layout) if torch.is_tensor(leaf) else leaf
            for leaf in leaves]


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
        except BaseException:  # a record must not be able to stop the run
            pass
        return None

    def load(self, indices):
        rows = [row for row in map(self._alone, indices) if row is not None]
        return [torch.cat(column) for column in zip(*rows)] if rows else None


_worker_reader = None


def _start_worker(reader, is_secret):
    global _worker_reader
    _worker_reader = reader
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run ends, and ends them
    if is_secret:
        seed_anew()


def _load_in_worker(indices):
    return _worker_reader.load(indices)


class Records:
    """The batches of a run."""

    def __init__(self, dataset, collate_fn, workers, device, example, is_secret):
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
        self._processes = self._start(is_secret) if self._workers else None
        self._requested = collections.deque()

    def _start(self, is_secret):
        """Forked before the run is made, all of them: none ever holds its keys."""
        processes = concurrent.futures.ProcessPoolExecutor(
            self._workers, multiprocessing.get_context('fork'), _start_worker,
            (self._reader, is_secret))
        list(processes.map(_load_in_worker, [[]] * self._workers))
        return processes

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

    def request(self, indices, seed):
        """Records of a coming batch. Processes load them while the step before is computed."""
        del seed  # what the user's dataset draws is the user's
        parts = None
        if self._processes and indices:
            shares = [indices[k::self._workers] for k in range(self._workers)]
            parts = [self._processes.submit(_load_in_worker, share) for share in shares]
        self._requested.append((indices, parts))

    def take(self):
        indices, parts = self._requested.popleft()
        if not indices:
            return None
        if self._columns:
            rows = torch.tensor(indices, dtype=torch.int64, device=self._device)
            return [column.index_select(0, rows) for column in self._columns]
        if parts:
            try:
                loaded = [part.result() for part in parts]
            except concurrent.futures.process.BrokenProcessPool:
                raise Error('a process that loads records has ended; the run cannot go on.') from None
            columns = [torch.cat(column)
                       for column in zip(*(part for part in loaded if part is not None))]
        else:
            columns = self._reader.load(indices)
        return [column.to(self._device) for column in columns] if columns else None

    def arguments(self, tensors):
        """What the loss function is called with: the record as the collate function made it."""
        leaves = list(self._constants)
        for place, tensor in zip(self._places, tensors):
            leaves[place] = tensor
        record = pytree.tree_unflatten(leaves, self._tree)
        return record if isinstance(record, (list, tuple)) else (record,)

    def close(self):
        if self._processes:
            self._processes.shutdown(wait=False, cancel_futures=True)
