"""The loop of Lightning around private steps.

The loop, its callbacks, loggers, validation and checkpoints are those of Lightning. It is given
empty batches; the records of a step are drawn by the run, and the step leaves their noised mean in
`.grad`, where the module's optimizer finds it.
"""
import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.callbacks import GradientAccumulationScheduler
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset
from torch.utils.data import default_collate

from sordino._error import Error
from sordino.torch import Trainer as PrivateTrainer

_KEY = 'sordino'

# Settings of a run that Lightning has a name for.
_ARGUMENTS = {
    'epochs': 'max_epochs or max_steps to the Trainer',
    'steps': 'max_steps or max_epochs to the Trainer',
    'batch': 'batch_size to the DataLoader',
    'batch_size': 'batch_size to the DataLoader',
    'workers': 'num_workers to the DataLoader',
    'collate_fn': 'collate_fn to the DataLoader',
    'state': 'ckpt_path to fit',
    'progress': 'enable_progress_bar to the Trainer',
}

# Hooks of a module that would see a batch or its gradient.
_HOOKS = ('backward', 'on_before_batch_transfer', 'transfer_batch_to_device',
          'on_after_batch_transfer')


def _refuse(trainer: Any, module: LightningModule) -> None:
    hooks = [name for name in _HOOKS if is_overridden(name, module)]
    accumulates = trainer.accumulate_grad_batches != 1 or any(
        isinstance(callback, GradientAccumulationScheduler) for callback in trainer.callbacks)
    for is_given, why in (
            (not module.automatic_optimization,
             'automatic_optimization is False, and a private step is made by the run alone; let '
             'Lightning optimize.'),
            (hooks, f'the module overrides {" and ".join(hooks)}, and whole batches and their '
                    'gradients are not shown; do it in training_step or in the dataset.'),
            (accumulates, 'accumulate_grad_batches divides a batch, which is drawn as a whole; '
                          'give the whole batch_size to the DataLoader, and physical_batch for the '
                          'number of records in memory at once.'),
            (trainer.gradient_clip_val is not None,
             'gradient_clip_val clips the mean of a batch, which guarantees nothing; give clip to '
             'PrivateStrategy.'),
            (trainer.precision == '16-mixed',
             'precision 16-mixed scales losses by a factor that private gradients choose; use '
             'bf16-mixed.'),
            (trainer.overfit_batches, 'overfit_batches chooses the records of a run, which are '
                                      'drawn at random; leave it out.'),
            (trainer.reload_dataloaders_every_n_epochs,
             'reload_dataloaders_every_n_epochs changes the records of a run; leave it out.'),
            (trainer.num_nodes > 1, 'a private run in Python has one process; give num_nodes=1.')):
        if is_given:
            raise Error(why)


@contextlib.contextmanager
def _without_logs(module: LightningModule) -> Iterator[None]:
    """What training_step logs is a value of private records; it goes nowhere."""
    module.log = lambda *arguments, **keywords: None
    try:
        yield
    finally:
        del module.log


class PrivateStrategy(SingleDeviceStrategy):
    """Makes the steps of a `lightning.Trainer` private, on one device.

    It takes the settings of `sordino.torch.Trainer` as keywords: `epsilon` or `noise`, `delta`,
    `clip`, `ledger`, `sampling`, `records`, ... The loss is `training_step`, called with one record
    as a batch of one; what it logs is left out, because it is a value of a private record. Epsilon
    is logged instead. Validation data are taken to be public. Checkpoints hold the statement, and a
    run can be resumed from them where a `ledger` is given.
    """

    strategy_name = 'private'

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        for name in settings:
            if name in _ARGUMENTS:
                raise Error(f'{name} was given to PrivateStrategy, and Lightning has a name for '
                            f'it; give {_ARGUMENTS[name]}.')
        self._settings = settings
        self._run: PrivateTrainer | None = None
        self._resumed: dict[str, Any] | None = None
        self._loader: DataLoader | None = None
        self._records: Any = None  # of the run, or of the last one
        self._public: list[Any] = []

    @property
    def run(self) -> PrivateTrainer:
        """The run of `fit`: epsilon, event, statement; `run.save(folder)` writes a run folder."""
        if self._run is None:
            raise Error('there is no run yet; call fit first.')
        return self._run

    def epsilon(self) -> float:
        """What the steps that were made have spent: the certified upper end."""
        return self.run.epsilon()

    # Lightning sets the devices of a strategy that has the attribute.
    @property
    def parallel_devices(self) -> None:
        return None

    @parallel_devices.setter
    def parallel_devices(self, devices: list[torch.device]) -> None:
        if len(devices) > 1:
            raise Error(f'{len(devices)} devices were given, and a private run in Python has one; '
                        'give devices=1.')
        self._root_device = devices[0]

    # The plan, and the loop's empty batches.

    def connect(self, model: LightningModule) -> None:
        super().connect(model)
        self._loader, self._resumed, self._public = None, None, []
        if model.trainer.state.fn == TrainerFn.FITTING:
            _refuse(model.trainer, model)
            if self._run is not None and self._run.steps_done and not self._settings.get('ledger'):
                raise Error('the trainer has trained, and a second run would not be counted with '
                            'the first; name a ledger.')

    def process_dataloader(self, dataloader: Any) -> Any:
        trainer = self.lightning_module.trainer
        if not trainer.training:
            self._public.append(getattr(dataloader, 'dataset', self))
        elif self._loader is not None:
            raise Error('several training loaders were given, and a private run draws from one '
                        'dataset; give one.')
        else:
            self._loader = self._checked(dataloader)
            self._records = self._loader.dataset
        if any(data is self._records for data in self._public):
            raise Error('the training records are given for an evaluation, and metrics have no '
                        'noise; evaluate on public data.')
        if not trainer.training:
            return dataloader
        return DataLoader(range(self._epoch()), collate_fn=lambda batch: {})

    @staticmethod
    def _checked(loader: Any) -> DataLoader:
        if not isinstance(loader, DataLoader) or not hasattr(loader.dataset, '__len__'):
            raise Error('the training loader is no DataLoader of a dataset with a length; give '
                        'one, so that batches can be drawn at random.')
        if loader.batch_size is None or type(loader.sampler) not in (RandomSampler,
                                                                     SequentialSampler):
            raise Error('the training loader has a sampler of its own, and the records of a batch '
                        'are drawn at random, so that the guarantee holds; give it batch_size '
                        'alone.')
        return loader

    def _epoch(self) -> int:
        """Steps of an epoch, from what is declared."""
        rate = self._settings.get('rate')
        records = self._settings.get('records') or len(self._loader.dataset)
        return math.ceil(1 / rate if rate else records / self._loader.batch_size)

    def on_train_start(self) -> None:
        """Begins the run."""
        steps = self.lightning_module.trainer.estimated_stepping_batches
        if not 0 < steps < math.inf:
            raise Error('the number of steps is not declared, and the noise follows from it; give '
                        'max_epochs or max_steps.')
        loader, module = self._loader, self.lightning_module
        collate = loader.collate_fn
        self._has_columns = type(loader.dataset) is TensorDataset and collate is default_collate
        state = self._resumed and {'run': self._resumed, 'model': module.state_dict()}
        narrow = {}
        if self.precision_plugin.precision == 'bf16-mixed':
            narrow['precision'] = 'bfloat16'
        self._run = PrivateTrainer(
            module, None, loader.dataset, workers=loader.num_workers, state=state, progress=False,
            collate_fn=None if self._has_columns else lambda records: (collate(records),),
            **{'name': type(module).__name__, **narrow, **self._settings, 'steps': int(steps),
               'batch': loader.batch_size})

    # A step.

    def training_step(self, batch: Any, *arguments: Any) -> torch.Tensor:
        """Makes a step of the run. Its gradient waits for backward, behind the loop's zero_grad."""
        module = self.lightning_module

        def loss(*record: Any) -> torch.Tensor:
            one = list(record) if self._has_columns else record[0]
            with self.precision_plugin.train_step_context():
                output = module.training_step(one, *arguments)
            return output['loss'] if isinstance(output, dict) else output

        with _without_logs(module):
            self.run._make_step(loss)
        self._gradients = [(value, value.grad) for value in module.parameters()]
        for value, _ in self._gradients:
            value.grad = None
        trainer = module.trainer
        if (trainer.global_step + 1) % trainer.log_every_n_steps == 0:
            module.log('epsilon', self.epsilon(), prog_bar=True, batch_size=1)
        return torch.zeros((), device=self.root_device)

    def backward(self, closure_loss: torch.Tensor, *arguments: Any,
                 **keywords: Any) -> torch.Tensor:
        module = self.lightning_module
        closure_loss = self.precision_plugin.pre_backward(closure_loss, module)
        for value, gradient in self._gradients:
            value.grad = gradient
        self._gradients = []
        return self.precision_plugin.post_backward(closure_loss, module)

    # Checkpoints.

    def save_checkpoint(self, checkpoint: dict[str, Any], *arguments: Any, **keywords: Any) -> None:
        if self._run is not None:
            has_state = self._settings.get('ledger') and self._run.steps_done
            checkpoint[_KEY] = {'statement': self._run.statement,
                                'run': self._run.state_dict()['run'] if has_state else None}
        super().save_checkpoint(checkpoint, *arguments, **keywords)

    def load_checkpoint(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        checkpoint = super().load_checkpoint(*arguments, **keywords)
        if self.lightning_module.trainer.state.fn == TrainerFn.FITTING:
            self._resumed = checkpoint.get(_KEY, {}).get('run')
            if self._resumed is None or not self._settings.get('ledger'):
                raise Error('a run without a ledger cannot be resumed, because nothing says how '
                            'far it is spent; name a ledger, and a checkpoint of a run that had '
                            'it.')
        return checkpoint

    def teardown(self) -> None:
        if self._run is not None:
            self._run.close()
        super().teardown()
