"""The run behind a private loop."""
from torch.utils import _pytree as pytree

from sordino._error import Error
from sordino.torch._extension import translated
from sordino.torch._trainer import Trainer


class LoopTrainer(Trainer):
    """A trainer whose steps are made by a loop (`sordino.opacus._turns`)."""

    def __init__(self, *arguments, loss_reduction, **settings):
        self._factor = {'mean': 1, 'sum': settings['batch']}[loss_reduction]
        super().__init__(*arguments, progress=False, **settings)

    def _update(self, gradients):
        super()._update([gradient * self._factor for gradient in gradients])

    def make_step(self, ask):
        """As Step. `ask` is the loss, of a batch of one as the collate function makes it."""
        def losses(*tensors):
            leaves = list(self._data._constants)
            for place, tensor in zip(self._data._places, tensors):
                leaves[place] = tensor
            return ask(pytree.tree_unflatten(leaves, self._data._tree))

        if not translated(self._run.step, losses):
            self._make_step(ask)  # makes none, and says why


class Run:
    """A trainer that can be made again with what is left of its plan.

    A loop may be left in the middle of a step, which is then neither charged nor made, and its
    trainer is used up. The event of the run is that of all of its trainers.
    """

    def __init__(self, make, steps, is_one_piece):
        self._is_one_piece = is_one_piece  # it has a schedule over all of its steps
        self._make = make  # of steps and other settings
        self._steps = steps
        self._settings = {}
        self._old = []
        self._is_used_up = False
        self._trainer = make(steps=steps)

    def set_physical_batch(self, size):
        """Records in each turn of a loop, before the first step."""
        if self._settings == {'physical_batch': size}:
            return
        if self.steps_done:
            raise Error('max_physical_batch_size is one number for all of a run; give it before '
                        'the first step.')
        self._settings = {'physical_batch': size}
        self._renew()

    def _renew(self):
        old = self._trainer
        old._run.hand_back()
        if old.steps_done == old.steps:
            return
        if old.steps_done and self._is_one_piece:
            raise Error('the loop was left in the middle of a step, and a run with a schedule or '
                        'random allocation cannot begin again in its middle; let the loop end.')
        old._data.close()
        # The noise of the plan was found with all of its steps.
        self._trainer = self._make(steps=old.steps - old.steps_done, noise=old.noise,
                                   epsilon=None, **self._settings)
        self._old += [old] if old.steps_done else []

    def make_step(self, ask):
        if self._is_used_up:
            self._renew()
        self._is_used_up = True
        self._trainer.make_step(ask)
        self._is_used_up = False

    def pause(self):
        """Returns what was charged ahead to the ledger."""
        self._trainer._run.hand_back()

    @property
    def noise(self):
        return self._trainer.noise

    @property
    def steps_done(self):
        return sum(trainer.steps_done for trainer in self._trainers)

    @property
    def events(self):
        """What the steps that were made have released, and the probability of what is not in it."""
        made = [trainer for trainer in self._trainers if trainer.steps_done]
        return [trainer.event for trainer in made], sum(trainer._run.failure for trainer in made)

    @property
    def _trainers(self):
        return [*self._old, self._trainer]
