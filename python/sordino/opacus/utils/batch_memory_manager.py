"""Batches in parts that fit into memory."""
from sordino._error import Error
from sordino.opacus.data_loader import DPDataLoader


class BatchMemoryManager:
    """Gives a private data loader whose turns hold at most so many records.

    In all but the last turn of a batch `optimizer.step()` changes nothing.
    """

    def __init__(self, *, data_loader: DPDataLoader, max_physical_batch_size: int, optimizer=None):
        del optimizer  # it belongs to the data loader
        if not isinstance(data_loader, DPDataLoader):
            raise Error('the data_loader must be the one that PrivacyEngine.make_private() '
                        'returned.')
        self._loader = data_loader
        self._size = max_physical_batch_size

    def __enter__(self) -> DPDataLoader:
        self._loader._run.set_physical_batch(self._size)
        return self._loader

    def __exit__(self, *_):
        pass
