"""The engine that makes training objects private."""
import math
from typing import Any, List, Optional, Union

import torch
from torch.utils.data import DataLoader

from sordino._error import Error
from sordino.opacus._run import LoopTrainer, Run
from sordino.opacus.accountants import _IN_LEDGER, Accountant
from sordino.opacus.data_loader import DPDataLoader, checked
from sordino.opacus.optimizers import DPOptimizer
from sordino.opacus.validators import ModuleValidator

_MODES = ('hooks', 'ghost', 'ew', 'functorch')
_ACCOUNTANTS = ('prv', 'rdp', 'gdp')
# Of adaptive clipping.
_SAME = {'target_unclipped_quantile': 'quantile', 'clipbound_learning_rate': 'clip_rate',
         'unclipped_num_std': 'count_noise'}
_NOT_HERE = {
    'max_clipbound': 'the bounds of the adaptive clipping norm follow from max_grad_norm',
    'min_clipbound': 'the bounds of the adaptive clipping norm follow from max_grad_norm',
    'alphas': 'the accountant has no orders to choose',
    'eps_error': 'the accountant says how exact it is (epsilon_interval)',
}
# Planned for a loop without a declared end.
_MANY_EPOCHS = 1000
# Noise is given and no delta: it changes nothing but the delta that the ledger's run is shown with.
_SHOWN_DELTA = 1e-5
# One turn for each step, but for BatchMemoryManager.
_WHOLE_BATCH = 2**31 - 1


def _refuse(condition, sentence):
    if condition:
        raise Error(sentence)


class PrivacyEngine:
    """Makes a model, an optimizer and a data loader of PyTorch private.

    `accountant` and `secure_mode` are accepted: accounting is always certified, and noise always
    comes from a cryptographic generator on an integer grid.
    """

    def __init__(self, *, accountant: str = 'prv', secure_mode: bool = False):
        del secure_mode
        _refuse(accountant not in _ACCOUNTANTS,
                f'the accountant is {accountant!r}; give one of {", ".join(_ACCOUNTANTS)}, or '
                'leave it out.')
        self.accountant = Accountant()

    def make_private(self, *, module: torch.nn.Module, optimizer: torch.optim.Optimizer,
                     data_loader: Union[DataLoader, DPDataLoader], noise_multiplier: float,
                     max_grad_norm: Union[float, List[float]], criterion: Any = None,
                     delta: float = _SHOWN_DELTA, epochs: Optional[float] = None, **options):
        """Returns module, optimizer and data_loader, to be used in an ordinary loop.

        With `grad_sample_mode='ghost'` the criterion comes before the data loader, as it is.
        Beside the options of Opacus every setting of `sordino.torch.Trainer` can be given, such as
        `ledger`, `records` and `sampling`. Without `epochs` the loop may have 1000.
        """
        return self._make(module, optimizer, data_loader, max_grad_norm, criterion, options,
                          noise=noise_multiplier, delta=delta, epochs=epochs)

    def make_private_with_epsilon(self, *, module: torch.nn.Module,
                                  optimizer: torch.optim.Optimizer,
                                  data_loader: Union[DataLoader, DPDataLoader],
                                  target_epsilon: float, target_delta: float, epochs: float,
                                  max_grad_norm: Union[float, List[float]], criterion: Any = None,
                                  **options):
        """Likewise, with the least noise that keeps so many epochs within the target.

        The loop cannot make more steps than that.
        """
        return self._make(module, optimizer, data_loader, max_grad_norm, criterion, options,
                          epsilon=target_epsilon, delta=target_delta, epochs=epochs)

    def _make(self, module, optimizer, data_loader, max_grad_norm, criterion, options, *, epochs,
              **budget):
        data_loader = checked(data_loader)
        loss_reduction = options.pop('loss_reduction', 'mean')
        mode = options.pop('grad_sample_mode', 'hooks')
        settings = {**budget, **_settings(max_grad_norm, loss_reduction, mode, options)}
        self.validate(module=module)
        if isinstance(optimizer, DPOptimizer):
            optimizer = optimizer.original_optimizer
        batch = data_loader.batch_size
        # From what is declared: the number of records may be private.
        records = settings.get('records', len(data_loader.dataset))
        rate = settings.get('rate') or batch / records
        length = math.ceil(1 / rate if settings.get('rate') else records / batch)

        def make(**more):
            return LoopTrainer(module, optimizer, data_loader.dataset,
                               collate_fn=data_loader.collate_fn, workers=data_loader.num_workers,
                               loss_reduction=loss_reduction, batch=batch,
                               **{'physical_batch': _WHOLE_BATCH, **settings, **more})

        epochs = _MANY_EPOCHS if epochs is None else epochs
        run = Run(make, math.ceil(epochs * length),
                  is_one_piece=any(name.endswith('schedule') for name in settings)
                  or settings.get('sampling') == 'allocation')
        self.accountant.add(run)
        private = DPOptimizer(optimizer, run, max_grad_norm=max_grad_norm,
                              expected_batch_size=batch)
        loader = DPDataLoader(data_loader, run, private._turns, rate, length)
        if mode == 'ghost':
            return module, private, criterion or torch.nn.CrossEntropyLoss(), loader
        return module, private, loader

    def get_epsilon(self, delta: float) -> float:
        """What is spent so far at `delta`: the upper end of what is certified."""
        return self.accountant.get_epsilon(delta)

    def is_compatible(self, *, module: torch.nn.Module, **_) -> bool:
        return ModuleValidator.is_valid(module)

    def validate(self, *, module: torch.nn.Module, **_) -> None:
        ModuleValidator.validate(module, strict=True)

    @classmethod
    def get_compatible_module(cls, module: torch.nn.Module) -> torch.nn.Module:
        return ModuleValidator.fix_and_validate(module)

    def save_checkpoint(self, **_):
        raise Error(_IN_LEDGER)

    def load_checkpoint(self, **_):
        raise Error(_IN_LEDGER)


def _settings(max_grad_norm, loss_reduction, mode, options):
    """Settings of a trainer from what is left of the options of Opacus."""
    _refuse(loss_reduction not in ('mean', 'sum'),
            f'loss_reduction is {loss_reduction!r}; give mean or sum.')
    _refuse(mode not in _MODES,
            f'grad_sample_mode is {mode!r}; gradients are computed in one way, and {", ".join(_MODES)} '
            'all mean it.')
    _refuse(not options.pop('batch_first', True),
            'batch_first=False cannot be used: records lie along the first dimension of a batch; '
            'transpose in the model.')
    _refuse(not options.pop('wrap_model', True),
            'wrap_model=False cannot be used: there are no hooks that could be returned; leave it '
            'out, the model is not wrapped.')
    _refuse(not options.pop('poisson_sampling', True) and 'sampling' not in options,
            'poisson_sampling=False cannot be used: batches in another order would be accounted '
            'for as if they were drawn by chance; leave it out, or give sampling="fixed" or '
            '"allocation".')
    _refuse(options.pop('noise_generator', None) is not None,
            'noise_generator cannot be used: noise comes from a cryptographic generator; leave it '
            'out, or give insecure_seed for a test that is not private.')
    options.pop('rand_on_empty', None)  # an empty batch makes no turn
    for name, reason in _NOT_HERE.items():
        _refuse(name in options, f'{name} cannot be used: {reason}; leave it out.')
    clipping = options.pop('clipping', 'flat')
    if isinstance(max_grad_norm, (list, tuple)):
        _refuse(clipping != 'per_layer' or len(set(max_grad_norm)) != 1,
                'max_grad_norm is a list, which clipping="per_layer" takes with equal numbers, one '
                'for each parameter; give the norm of all of them.')
        max_grad_norm = math.sqrt(sum(norm * norm for norm in max_grad_norm))
    return {'clip': max_grad_norm,
            'clipping': 'layerwise' if clipping == 'per_layer' else clipping,
            **{_SAME.get(name, name): value for name, value in options.items()}}
