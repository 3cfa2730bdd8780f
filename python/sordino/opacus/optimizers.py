"""The optimizer of a private loop."""
import torch

from sordino._error import Error
from sordino.opacus._turns import Turns


class DPOptimizer(torch.optim.Optimizer):
    """Gives the optimizer that it was made of the noised mean of clipped gradients.

    Parameter groups, state and hooks are those of `original_optimizer`. In the turns of a loop that
    do not end a step, `step()` changes nothing.
    """

    def __init__(self, optimizer, run, *, max_grad_norm, expected_batch_size):
        # Optimizer.__init__ would make parameter groups of its own.
        self.original_optimizer = optimizer
        self.max_grad_norm = max_grad_norm
        self.expected_batch_size = expected_batch_size
        self._run = run
        self._turns = Turns(self)

    def __getattr__(self, name):
        if name == 'original_optimizer':  # of a copy that is being made
            raise AttributeError(name)
        if name in ('grad_samples', 'accumulated_iterations', 'signal_skip_step'):
            raise Error(f'{name} is not there: gradients of single records are never stored.')
        return getattr(self.original_optimizer, name)

    @property
    def known_as(self):
        return (self, self.original_optimizer)

    @property
    def noise_multiplier(self) -> float:
        """The standard deviation of the noise on the sum, in units of `max_grad_norm`."""
        return self._run.noise

    def step(self, closure=None):
        """Ends a turn of the loop: the step is charged, noised and made, or its next turn comes."""
        if closure is not None:
            raise Error('optimizer.step() was given a closure, which computes the loss again and '
                        'again; call loss.backward() and then step() without one.')
        self._turns.finish()

    def zero_grad(self, set_to_none: bool = True):
        self._turns.forget()
        self.original_optimizer.zero_grad(set_to_none)

    def attach_step_hook(self, fn):
        """Calls fn(optimizer) before each update with a noised gradient."""
        self.original_optimizer.register_step_pre_hook(lambda *_: fn(self))

    def add_param_group(self, param_group):
        raise Error('a private run has the parameters that it began with; add them before '
                    'make_private().')

    def state_dict(self):
        return self.original_optimizer.state_dict()

    def load_state_dict(self, state_dict):
        self.original_optimizer.load_state_dict(state_dict)

    def __getstate__(self):
        raise Error('the optimizer of a private run cannot be copied; save its state_dict().')

    def __repr__(self):
        return repr(self.original_optimizer)
