"""Private training: the loop of `sordino train` around a model, a dataset and an optimizer."""
import os
import time
import weakref

import torch

from sordino._error import Error
from sordino.torch._extension import extension, trained_parameters, translated
from sordino.torch._loss import OwnTensors, loss_of
from sordino.torch._records import Records, seed_anew

# Names of other libraries for settings of `train`.
_SAME = {'batch_size': 'batch', 'max_grad_norm': 'clip', 'noise_multiplier': 'noise'}


def _texts(value):
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    if isinstance(value, bool):
        return ['true' if value else 'false']
    return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


def _settings(given):
    settings = {}
    for name, value in given.items():
        if value is None or value is False:
            continue
        flag = '--' + _SAME.get(name, name).replace('_', '-')
        if flag in settings:
            raise Error(f'the setting {_SAME[name]} is given twice; leave {name} out.')
        settings[flag] = _texts(value)
    return settings


def _device_of(model):
    return next((value.device for value in model.parameters()), torch.device('cpu'))


class Step:
    """One step of a run, to be called with the loss."""

    def __init__(self, trainer):
        self._trainer = trainer
        self._is_made = False

    def __call__(self, loss):
        """Makes the step. `loss` is called with the tensors of one record, as a batch of one.

        The gradients are clipped record by record, summed and noised; the optimizer sees their
        noised mean.
        """
        if self._is_made:
            raise Error('this step is made; take the next one from the trainer.')
        self._is_made = True
        self._trainer._make_step(loss)


class Trainer:
    """Trains `model` on `dataset` with the guarantee that the settings ask for.

    Settings are those of `sordino train` with underscores: `epsilon` or `noise`, `delta`, `epochs`
    or `steps`, `batch`, `clip`, `sampling`, `clipping`, `norms`, `noise_kind`, `noise_schedule`,
    `adjacency`, `ledger`, `canaries`, ... (`sordino train --help`). `records` is the number of
    records as a public constant, and `len(dataset)` if it is left out: give another one, or `rate`
    and `steps`, where the number itself is private.

    `collate_fn` makes tensors of one record: it is called with a list of one. `workers` is a number
    of processes that load records. `example` is a made-up record as the dataset would give it: its
    shapes and types are those of all records, and one with others adds nothing. Where it is left
    out, the form of the first record is public. `state` is a `state_dict()` to go on from. With the
    optimizer None each step leaves the noised mean in `.grad`.
    """

    def __init__(self, model, optimizer, dataset, *, collate_fn=None, workers=0, example=None,
                 name=None, state=None, progress=True, **settings):
        self._model = model
        self._optimizer = optimizer
        self._check_optimizer()
        self._data = Records(dataset, collate_fn, workers, _device_of(model), example,
                             settings.get('insecure_seed') is None)
        weakref.finalize(self, self._data.close)
        if settings.get('insecure_seed') is None:
            seed_anew()
        if settings.get('records') is None and settings.get('rate') is None:
            settings['records'] = len(self._data)
        self._progress = progress
        self._next_epsilon = 0.0
        self._own_tensors = OwnTensors()
        self._trained = [value for _, value in trained_parameters(model)]
        if state is not None:
            self._model.load_state_dict(state['model'])
            if self._optimizer is not None:
                self._optimizer.load_state_dict(state['optimizer'])
        self._run = translated(
            extension.Run, _settings(settings), str(name or type(model).__name__),
            trained_parameters(model), len(self._data), self._data.request, self._data.take,
            self._data.form, self._update, None if state is None else state['run'])

    def _check_optimizer(self):
        if self._optimizer is None:
            return
        mine = {id(value) for value in self._model.parameters() if value.requires_grad}
        for group in self._optimizer.param_groups:
            for value in group['params']:
                if value.requires_grad and id(value) not in mine:
                    raise Error('the optimizer has a parameter that is not one of the model; its '
                                'gradient would be 0. Give the model that holds all of them.')

    def _update(self, gradients):
        for value, gradient in zip(self._trained, gradients):
            value.grad = gradient.to(value.dtype)
        if self._optimizer is not None:
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)

    def _make_step(self, loss):
        if any(value._backward_hooks or getattr(value, '_post_accumulate_grad_hooks', None)
               for value in self._trained):
            raise Error('a parameter has a hook, which would see gradients without noise; remove it '
                        '(wandb.watch sets such hooks).')
        if not translated(self._run.step, loss_of(loss, self._data.arguments, self._own_tensors)):
            if self.refusal:
                raise Error(f'the ledger ends the run: {self.refusal}.')
            raise Error('all steps of the run are made; plan a run with more steps.')

    def __iter__(self):
        """The steps that are left."""
        bar = self._bar()
        try:
            while self.steps_done < self.steps:
                step = Step(self)
                yield step
                if not step._is_made:
                    raise Error('a step was taken and not made; call it with the loss.')
                if bar is not None:
                    self._show(bar)
        finally:
            self._run.hand_back()
            if bar is not None:
                bar.set_postfix_str(f'epsilon {self.epsilon():.3g}', refresh=True)
                bar.close()

    def _bar(self):
        if not self._progress:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return tqdm(total=self.steps, initial=self.steps_done, desc='train', unit='step')

    def _show(self, bar):
        bar.update(self.steps_done - bar.n)
        # Accounting takes its time, of which it gets a twentieth.
        now = time.monotonic()
        if now >= self._next_epsilon:
            bar.set_postfix_str(f'epsilon {self.epsilon():.3g}', refresh=False)
            self._next_epsilon = time.monotonic() + 20 * (time.monotonic() - now)

    @property
    def steps(self):
        """Steps of the plan."""
        return self._run.steps

    @property
    def steps_done(self):
        """Steps that were charged; one that failed after its charge counts."""
        return self._run.steps_done

    @property
    def noise(self):
        """The noise multiplier of the plan."""
        return self._run.noise

    @property
    def delta(self):
        return self._run.delta

    @property
    def is_private(self):
        """False for a run with a typed seed."""
        return self._run.is_private

    @property
    def event(self):
        """What the steps that were made have released, as `sordino account --event` reads it."""
        return self._run.event

    @property
    def plan(self):
        """The event of all planned steps."""
        return self._run.plan

    def epsilon(self):
        """What the steps that were made have spent: the certified upper end."""
        return self._run.epsilon()[1]

    def epsilon_interval(self):
        """Lower and upper end; the upper one is what is spent."""
        return self._run.epsilon()

    @property
    def statement(self):
        """What is guaranteed, in words."""
        return self._run.statement()

    @property
    def guarantee(self):
        """The sentence of the guarantee."""
        return self._run.guarantee()

    @property
    def refusal(self):
        """Why the ledger ended the run, as a clause; empty where it did not."""
        return self._run.refusal

    def close(self):
        """Returns what was charged ahead to the ledger, and ends the processes that load records."""
        self._run.hand_back()
        self._data.close()

    def log(self, *, accuracy=None, loss=None):
        """Writes down what a public test set says now, for the report."""
        self._run.log(accuracy, loss)

    def state_dict(self):
        """What a later run with the same settings goes on from, charged to the same ledger."""
        return {'run': translated(self._run.state_dict), 'model': self._model.state_dict(),
                'optimizer': self._optimizer and self._optimizer.state_dict()}

    def save(self, folder):
        """Writes a run folder: weights, statement, event, metrics; `sordino report` reads it."""
        seen = {}
        for key, value in self._model.state_dict().items():
            if value.data_ptr() not in seen or value.numel() == 0:
                seen[value.data_ptr()] = (key, value)
        translated(self._run.save, os.fspath(folder), list(seen.values()))

    def _repr_html_(self):
        import html
        return f'<pre>{html.escape(self.guarantee)}</pre>'

    def __repr__(self):
        return f'<sordino.torch.Trainer: {self.steps_done} of {self.steps} steps>'
