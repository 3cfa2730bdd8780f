"""The data loader of a private loop."""
from torch.utils.data import DataLoader, IterableDataset

from sordino._error import Error


class DPDataLoader:
    """Draws the batches of private steps, in secret, and gives each as a batch of one record.

    An epoch is len(loader) steps. How many turns a loop makes for them is not quite the same
    (`sordino.opacus._turns`), and is private like the sizes of the batches: do not count or show turns.
    """

    def __init__(self, data_loader, run, turns, rate, length):
        self.dataset = data_loader.dataset
        self.batch_size = data_loader.batch_size
        self.collate_fn = data_loader.collate_fn
        self.num_workers = data_loader.num_workers
        self._steps = length
        self._rate = rate
        self._run = run
        self._turns = turns

    @classmethod
    def from_data_loader(cls, data_loader, **settings):
        raise Error('a private data loader belongs to a run; give the ordinary one to '
                    'PrivacyEngine.make_private(), which returns it.')

    @property
    def sample_rate(self) -> float:
        """With which probability a record is in a batch, from the declared number of records."""
        return self._rate

    def __len__(self) -> int:
        return self._steps

    def __iter__(self):
        try:
            for _ in range(len(self)):
                yield from self._turns.of_step(self._run.make_step)
        finally:
            self._run.pause()


def checked(data_loader):
    """The loader, if private batches can be drawn from its dataset."""
    if isinstance(data_loader, DPDataLoader):
        return data_loader
    if not isinstance(data_loader, DataLoader) or isinstance(data_loader.dataset, IterableDataset):
        raise Error('the data_loader must be a torch.utils.data.DataLoader of a map-style dataset, '
                    'so that batches can be drawn at random.')
    if data_loader.batch_size is None:
        raise Error('the data_loader has no batch_size; give it one, which is the expected size of '
                    'a batch, instead of a batch sampler.')
    return data_loader
