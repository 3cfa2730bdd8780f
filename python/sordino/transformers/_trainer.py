"""The loop of transformers around private steps.

The loop, its callbacks, logs, evaluations and checkpoints are those of transformers. It is given
empty batches; the records of a step are drawn by the run, and the step leaves their noised mean in
`.grad`, where the loop's optimizer finds it.
"""
import dataclasses
import inspect
import math
import os
from collections.abc import Mapping
from typing import Any

import torch
import transformers

from sordino._error import Error
from sordino.torch import Trainer as PrivateTrainer
from sordino.transformers._refused import refuse_arguments, refuse_settings

_STATE = 'private_run.pt'

# Values of private records, and rates that follow from the time that single batches took.
_LEFT_OUT = ('loss', 'train_loss', 'total_flos', 'train_samples_per_second',
             'train_steps_per_second')


def _padded(collator: Any, length: int) -> Any:
    fields = {field.name for field in dataclasses.fields(collator)
              } if dataclasses.is_dataclass(collator) else set()
    if not {'padding', 'max_length'} <= fields:
        raise Error('max_length was given, and the data collator does not pad (as '
                    'DataCollatorWithPadding does); pad in the dataset and leave it out.')
    return dataclasses.replace(collator, padding='max_length', max_length=length)


class Trainer(transformers.Trainer):
    """A `transformers.Trainer` whose model is private.

    It takes the arguments of `transformers.Trainer`, and settings of `sordino.torch.Trainer` as
    keywords: `epsilon` or `noise`, `delta`, `clip`, `ledger`, `sampling`, `records`, ... Batches
    have an expected size of `per_device_train_batch_size` * `gradient_accumulation_steps`. Without
    `clip`, records are clipped at `max_grad_norm`, which clips nothing else. Texts must have one
    length: `max_length` pads each training record to it, where the data collator pads.

    The loss is `compute_loss`, called with one record as a batch of one. Logs hold epsilon and
    never the loss of private records. `eval_dataset` is taken to be public. A run can be resumed
    from its checkpoints where a `ledger` is given.
    """

    def __init__(self, *arguments: Any, max_length: int | None = None, **keywords: Any) -> None:
        names = inspect.signature(transformers.Trainer.__init__).parameters
        self._settings = {name: value for name, value in keywords.items() if name not in names}
        refuse_settings(self._settings)
        args = keywords.get('args', arguments[1] if len(arguments) > 1 else None)
        if args is not None:
            refuse_arguments(args)  # some of them fail in transformers where nothing is installed
        self._max_length = max_length
        self._run: PrivateTrainer | None = None
        self._resumed: dict[str, Any] | None = None
        super().__init__(*arguments, **{name: value for name, value in keywords.items()
                                        if name in names})
        self._refuse()

    def _refuse(self) -> None:
        refuse_arguments(self.args)
        data = self.eval_dataset
        for dataset in data.values() if isinstance(data, dict) else [data]:
            self._check_public(dataset)

    def _check_public(self, dataset: Any) -> None:
        if dataset is not None and dataset is self.train_dataset:
            raise Error('the training records are given for an evaluation, and metrics have no '
                        'noise; evaluate on public data.')

    @property
    def run(self) -> PrivateTrainer:
        """The run of `train()`: epsilon, event, statement; `save(folder)` writes a run folder."""
        if self._run is None:
            raise Error('there is no run yet; call train() first.')
        return self._run

    def epsilon(self) -> float:
        """What the steps that were made have spent: the certified upper end."""
        return self.run.epsilon()

    def train(self, *arguments: Any, **keywords: Any) -> Any:
        """Trains as `transformers.Trainer.train` does. The training loss of the result is NaN."""
        self._refuse()
        if self._run is not None and self._run.steps_done and not self._settings.get('ledger'):
            raise Error('the trainer has trained, and a second run would not be counted with the '
                        'first; name a ledger.')
        self._resumed = None
        try:
            output = super().train(*arguments, **keywords)
        finally:
            self.is_in_train = False
            if self._run is not None:
                self._run.close()
        return output._replace(training_loss=math.nan)

    # The plan, and the loop's empty batches.

    def _planned(self) -> dict[str, Any]:
        """The settings of the run, with those that the training arguments say."""
        args, settings = self.args, dict(self._settings)
        if settings.get('clip') is None and settings.get('max_grad_norm') is None:
            settings['clip'] = args.max_grad_norm or None
        settings['batch'] = args.per_device_train_batch_size * args.gradient_accumulation_steps
        if args.bf16:
            settings.setdefault('precision', 'bfloat16')
        if settings.get('records') is None and settings.get('rate') is None:
            settings['records'] = len(self.train_dataset)
        settings['steps'] = (args.max_steps if args.max_steps > 0
                             else math.ceil(args.num_train_epochs * self._epoch(settings)))
        return settings

    @staticmethod
    def _epoch(settings: dict[str, Any]) -> int:
        """Steps of an epoch, from what is declared."""
        rate = settings.get('rate')
        return math.ceil(1 / rate if rate else settings['records'] / settings['batch'])

    def _collate(self, records: list[Any]) -> Any:
        batch = self._collator(records)
        return dict(batch) if isinstance(batch, Mapping) else batch

    def get_train_dataloader(self) -> torch.utils.data.DataLoader:
        """Begins the run. The batches of the loader are empty: no callback sees a record."""
        dataset, collator = self.train_dataset, self.data_collator
        if not hasattr(dataset, '__len__'):
            raise Error('the training dataset is missing or has no length; give a map-style '
                        'dataset, so that batches can be drawn at random.')
        if self._max_length is not None:
            collator = _padded(collator, self._max_length)
        if hasattr(dataset, 'remove_columns'):
            dataset = self._remove_unused_columns(dataset, 'training')
        else:
            collator = self._get_collator_with_removed_columns(collator, 'training')
        self._collator = collator
        settings = self._planned()
        batches = self._epoch(settings) * self.args.gradient_accumulation_steps
        empty = torch.utils.data.DataLoader(range(batches), collate_fn=lambda batch: {})
        if not self.is_in_train:  # somebody asks for its length
            return empty
        state = self._resumed and {'run': self._resumed, 'model': self.model.state_dict()}
        self._run = PrivateTrainer(
            self.model, None, dataset, collate_fn=self._collate,
            workers=self.args.dataloader_num_workers, state=state, progress=False,
            **{'name': type(self.model).__name__, **settings})
        return empty

    def num_examples(self, dataloader: torch.utils.data.DataLoader) -> int:
        if isinstance(dataloader.dataset, range):
            return len(dataloader.dataset) * self.args.per_device_train_batch_size
        return super().num_examples(dataloader)

    # A step.

    def training_step(self, model: torch.nn.Module, inputs: Any,
                      num_items_in_batch: Any = None) -> torch.Tensor:
        """Leaves the noised mean gradient of a batch of the run in `.grad`."""
        if self.accelerator.sync_gradients:
            model.train()
            if callable(getattr(self.optimizer, 'train', None)):
                self.optimizer.train()

            def loss(record: Any) -> torch.Tensor:
                with self.compute_loss_context_manager():
                    return self.compute_loss(model, record, num_items_in_batch=None)

            self.run._make_step(loss)
        return torch.zeros((), device=self.args.device)

    def _clip_grad_norm(self, model: torch.nn.Module) -> None:
        """The records are clipped; their noised mean stays."""

    # What is shown and written.

    def log(self, logs: dict[str, float], *arguments: Any, **keywords: Any) -> None:
        if self.is_in_train and not {'loss', 'train_loss'}.isdisjoint(logs):
            for name in _LEFT_OUT:
                logs.pop(name, None)
            if 'train_runtime' in logs:
                logs['train_runtime'] = round(logs['train_runtime'])
            logs['epsilon'] = self.epsilon()
        super().log(logs, *arguments, **keywords)

    def evaluate(self, *arguments: Any, **keywords: Any) -> dict[str, float]:
        metrics = super().evaluate(*arguments, **keywords)
        if self.is_in_train and self._run is not None:
            self._run.log(accuracy=metrics.get('eval_accuracy'), loss=metrics.get('eval_loss'))
        return metrics

    def get_eval_dataloader(self, eval_dataset: Any = None) -> torch.utils.data.DataLoader:
        self._check_public(eval_dataset)
        return super().get_eval_dataloader(eval_dataset)

    def get_test_dataloader(self, test_dataset: Any) -> torch.utils.data.DataLoader:
        self._check_public(test_dataset)
        return super().get_test_dataloader(test_dataset)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves the model, and the statement of its run beside it."""
        super().save_model(output_dir, _internal_call)
        if self._run is not None:
            path = os.path.join(output_dir or self.args.output_dir, 'statement.txt')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(self._run.statement)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self._settings.get('ledger'):
            torch.save(self.run.state_dict()['run'], os.path.join(output_dir, _STATE))

    def _save_rng_state(self, output_dir: str) -> None:
        """Nothing random is saved: a resumed run draws anew."""

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if not self._settings.get('ledger'):
            raise Error('a run without a ledger cannot be resumed, because nothing says how far it '
                        'is spent; name the ledger that the run began with.')
        path = os.path.join(resume_from_checkpoint, _STATE)
        if not os.path.isfile(path):
            raise Error(f'the checkpoint has no {_STATE}, so it is not one of a run with a ledger; '
                        'give another checkpoint.')
        self._resumed = torch.load(path, weights_only=True)
        super()._load_from_checkpoint(resume_from_checkpoint, model)

    def hyperparameter_search(self, *arguments: Any, **keywords: Any) -> Any:
        raise Error('a search releases the best of several private runs, and each of them costs; '
                    'choose settings on public data.')
