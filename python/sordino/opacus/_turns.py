"""The steps of a run as turns of a loop in a program.

The library makes a step by calling a loss function with records that are isolated from each other
(vmap). A loop has its loss in its body instead:

    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

So the step is made in a greenlet. When it calls its loss function, control goes to the loop, whose
body runs on the isolated records; `optimizer.step()` gives the loss back, and the step goes on. One
thread does all of it, so the isolation of the step, which belongs to the thread, holds in the body.

Most steps are one turn. The first has some more, in which the library looks at the model with
made-up records, and a step that is cut into parts has one for each. Only in the last one does
`optimizer.step()` change anything.
"""
import concurrent.futures
import contextlib
import warnings

import torch
from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]
from torch.optim import lr_scheduler
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from sordino._error import Error
from sordino.torch import _loss

_functorch = torch._C._functorch
_open = None  # the turns whose step is in hand; isolated passes do not nest


def _level(value):
    """The level of a tensor of records; 0 for other values."""
    if isinstance(value, torch.Tensor) and _functorch.is_batchedtensor(value):
        return _functorch.maybe_get_level(value)
    return 0


def _shown(tensor):
    return f'<private tensor of shape {list(tensor.shape)}>'


@contextlib.contextmanager
def _schedulers_wait(optimizer):
    """Learning-rate schedules of the optimizer make no step."""
    def classes(of):
        return {of}.union(*(classes(kind) for kind in of.__subclasses__()))

    def waiting(step):
        def step_of_others(self, *arguments, **named):
            if getattr(self, 'optimizer', None) not in optimizer.known_as:
                step(self, *arguments, **named)
        return step_of_others

    kinds = [kind for kind in classes(lr_scheduler.LRScheduler) if 'step' in vars(kind)]
    steps = [kind.step for kind in kinds]
    for kind, step in zip(kinds, steps):
        kind.step = waiting(step)
    try:
        yield
    finally:
        for kind, step in zip(kinds, steps):
            kind.step = step


class _Watch(TorchFunctionMode):
    """Sees every call of torch in the body of the loop."""

    def __init__(self, turns):
        super().__init__()
        self._turns = turns
        self.level = 0  # of the records of this turn; 0: all records are of the past

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _SPECIAL:
            return _SPECIAL[func](self._turns, func, *args, **kwargs)
        old = self._of_the_past(args, kwargs)
        if old is not None:
            # Nothing is computed with it: the result is as private and as unusable.
            return func(*args, **kwargs) if _is_public(func) else old
        try:
            return func(*args, **kwargs)
        except Exception as error:
            if not self.level:
                raise
            return self._turns.instead(func, args, kwargs, error)

    def _of_the_past(self, args, kwargs):
        for value in (*args, *kwargs.values()):
            for one in value if isinstance(value, (list, tuple)) else (value,):
                if _level(one) not in (0, self.level):
                    return one
        return None


def _zeros_of_its_form(func, args, kwargs):
    form = func(*pytree.tree_map(lambda v: v.to('meta') if isinstance(v, torch.Tensor) else v, args),
                **kwargs)
    return pytree.tree_map(
        lambda v: torch.zeros(v.shape, dtype=v.dtype) if isinstance(v, torch.Tensor) else v, form)


# What is known of a record without its values: functions, and properties.
_PUBLIC = {'size', 'dim', 'numel', 'nelement', 'element_size', '__len__', '__hash__',
           'is_floating_point', 'is_complex'}
_PROPERTIES = {'shape', 'ndim', 'dtype', 'device', 'layout', 'requires_grad', 'is_cuda', 'is_leaf'}


def _is_public(func):
    if func.__name__ == '__get__':
        return getattr(func.__self__, '__name__', '') in _PROPERTIES
    return func.__name__ in _PUBLIC


class Turns:
    """The steps of one trainer, as turns of a loop. `optimizer` is the DPOptimizer."""

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._watch = _Watch(self)
        self._flow = None     # the step in hand, a greenlet
        self._record = None   # what its loss function was called with
        self._loss = None     # of this turn
        self._failure = None  # the first error of an operation in this turn
        self._gave_nan = False
        self._has_warned = False
        self._has_made_steps = False

    def of_step(self, make_step):
        """Yields the batches of one step, which is made by make_step(loss function)."""
        global _open
        if _open is not None:
            raise Error('two private loops are open at once; end the turn of the first one by '
                        'optimizer.step() and its loop before the second begins.')
        _open = self
        _loss.hides_all = True
        self._flow = greenlet(make_step)
        try:
            self._go_on(self._flow.switch, self._ask)
            while self._record is not None:
                record, self._record = self._record, None
                self._loss = self._failure = None
                self._gave_nan = False
                self._watch.level = max(map(_level, pytree.tree_leaves(record)))
                with contextlib.ExitStack() as self._parked, self._watch, \
                        contextlib.ExitStack() as self._alone:
                    self._alone.enter_context(_loss._alone())
                    yield record
                if self._watch.level:
                    raise Error('a turn of the loop ended without optimizer.step(); the gradients '
                                'of several batches are not added up: give a larger batch_size, '
                                'and BatchMemoryManager where it does not fit into memory.')
            self._has_made_steps = True
        finally:
            self._end(Error('the loop was left'))
            _open = None
            _loss.hides_all = False

    def _ask(self, record):
        # In the greenlet of the step.
        return self._flow.parent.switch(record)

    def _go_on(self, how, answer):
        """The step goes on until it calls its loss function again, or is made."""
        self._flow.parent = getcurrent()
        asked = how(answer)
        self._record = None if self._flow.dead else asked

    def _end(self, error):
        """The step in hand is not made: its loss function fails. Returns the library's sentence."""
        self._watch.level = 0
        self._record = None
        try:
            while self._flow:  # it has begun, and is not at its end
                self._flow.parent = getcurrent()
                self._flow.throw(error)
        except Exception as sentence:
            return sentence
        return error

    def finish(self):
        """optimizer.step(): the step goes on with the loss of this turn."""
        if not self._watch.level:
            raise Error('optimizer.step() is called once in each turn of the loop over the private '
                        'data loader, and not outside of it.')
        if self._loss is None and self._failure is None:
            raise Error('optimizer.step() was called without loss.backward(); call it first.')
        self._watch.level = 0
        self._alone.close()
        loss, failure = self._loss, self._failure
        self._loss = self._failure = None
        if failure is None:
            self._go_on(self._flow.switch, loss)
        else:
            self._go_on(self._flow.throw, failure)
        if self._record is not None:
            self._park()

    def _park(self):
        """What follows in the body of the loop is not isolated; the pass that is open waits."""
        key = 'FuncTorchVmapMode'
        torch._C._dispatch_tls_set_dispatch_key_included(key, False)
        self._parked.callback(torch._C._dispatch_tls_set_dispatch_key_included, key, True)
        self._parked.enter_context(_schedulers_wait(self._optimizer))
        groups = self._optimizer.param_groups
        before = [{name: value for name, value in group.items() if name != 'params'}
                  for group in groups]
        self._parked.callback(lambda: [g.update(old) for g, old in zip(groups, before)])

    def instead(self, func, args, kwargs, error):
        """What an operation that failed gives. The values of a record may be why.

        Then nobody may see it: the body goes on with zeros instead of records, and the library,
        which is told at the end of the turn, finds out which record adds nothing. An operation that
        fails for zeros too, with the made-up records of the first step, is not one for private
        records, and the library's sentence says why.
        """
        args, kwargs = pytree.tree_map(
            lambda value: torch.zeros_like(value) if _level(value) else value, (args, kwargs))
        try:
            result = func(*args, **kwargs)
        except Exception:
            if not self._has_made_steps:
                raise self._end(error) from None
            result = _zeros_of_its_form(func, args, kwargs)
        self._failure = self._failure or error
        return result

    def forget(self):
        """optimizer.zero_grad(): what was computed in this turn does not count."""
        self._loss = None

    # Calls of torch that mean something else in the body.

    def backward(self, func, loss, *arguments, **named):
        if not self._watch.level:
            if _level(loss):
                raise Error('loss.backward() was called on a loss of records after '
                            'optimizer.step(); call it before.')
            if self._record is None:
                return func(loss, *arguments, **named)
            # torch refuses it in a thread in which a pass waits.
            with concurrent.futures.ThreadPoolExecutor(1) as other:
                return other.submit(func, loss, *arguments, **named).result()
        if any(value is not None for value in arguments) or any(
                named.get(name) is not None for name in ('gradient', 'inputs', 'grad_tensors')) \
                or named.get('create_graph'):
            raise Error('backward() was given more than retain_graph; in a private loop the loss '
                        'is all that it can be given.')
        if _level(loss) != self._watch.level:
            raise Error('the loss does not depend on the records of this turn alone; compute it '
                        'from what the private data loader gave, and keep no tensor of an earlier '
                        'turn.')
        if loss.numel() != 1:
            raise Error(f'the loss of a record has shape {list(loss.shape)} and must be one '
                        'number; take the mean.')
        if self._gave_nan:
            raise Error('backward() was called again after a value of a record was asked for, '
                        'which is not a number; call item() after the last backward().')
        loss = loss.reshape(())
        self._loss = loss if self._loss is None else self._loss + loss

    def value(self, func, tensor, *arguments):
        """item() and float(): what is done with it stays in the body, and is not a number."""
        if not _level(tensor):
            return func(tensor, *arguments)
        if self._watch.level and self._loss is None:
            return self.refused(func, tensor)
        self._gave_nan = True
        if not self._has_warned:
            self._has_warned = True
            warnings.warn('the loss and the outputs of private records are not numbers that may '
                          'be known; item() gives nan. Measure on public test data.', stacklevel=3)
        return float('nan')

    def refused(self, func, tensor, *arguments, **named):
        if not _level(tensor):
            return func(tensor, *arguments, **named)
        name = func.__name__
        raise Error(f'the loop asks for a value of a private record by {name}(), which nobody may '
                    'know; compute the loss with tensors alone, leave accuracy on training data '
                    'out, and measure on public test data.')

    def rows(self, func, tensor, *arguments, **named):
        if _level(tensor) in (0, self._watch.level):
            return func(tensor, *arguments, **named)
        return (tensor,) * len(tensor)

    def text(self, func, tensor, *arguments, **named):
        if not _level(tensor):
            return func(tensor, *arguments, **named)
        return _shown(tensor)

    def formatted(self, func, tensor, form):
        if not _level(tensor):
            return func(tensor, form)
        return format(float('nan'), form) if form else _shown(tensor)


_T = torch.Tensor
_SPECIAL = {_T.backward: Turns.backward, torch.autograd.backward: Turns.backward,
            _T.item: Turns.value, _T.__float__: Turns.value, _T.__repr__: Turns.text,
            _T.__format__: Turns.formatted, _T.unbind: Turns.rows}
_SPECIAL.update({func: Turns.refused for func in (
    _T.__int__, _T.__bool__, _T.__index__, _T.__complex__, _T.__contains__, _T.__array__, _T.numpy,
    _T.tolist)})
