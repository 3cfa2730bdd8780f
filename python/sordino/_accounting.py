"""How much privacy was spent, and the noise that a budget asks for."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional, Union

from sordino import _core, _html
from sordino._core import Event
from sordino._error import Error

Sampling = Literal['poisson', 'fixed', 'allocation', 'none']
Mechanism = Literal['gaussian', 'laplace', 'discrete-gaussian', 'discrete-laplace']
Adjacency = Literal['add-remove', 'replace-one', 'zero-out']


class Interval(NamedTuple):
    """The true value lies between `lower` and `upper`; the upper end is what is spent."""

    lower: float
    upper: float

    def __str__(self) -> str:
        return f'[{_core.lower_text(self.lower)}, {_core.upper_text(self.upper)}]'

    def _repr_html_(self) -> str:
        return str(self)


class Method(NamedTuple):
    """What one accounting method says. It is a bound where it is `sound`, else an estimate."""

    name: str
    value: float
    sound: bool
    decides: bool


class Spent:
    """The certified epsilon or delta of an event, and the answer of every accounting method."""

    def __init__(self, event: Event, answer: dict[str, Any], asked: str, given: float) -> None:
        self.event = event
        self.lower, self.upper = answer['value']
        self.asked = asked
        self.given = given
        self.decided_by: str = answer['decided_by']
        self.methods = [Method(*method) for method in answer['methods']]
        self.skipped: dict[str, str] = answer['skipped']
        self.reason: str = answer['reason']
        self.unit: str = answer['unit']

    @property
    def interval(self) -> Interval:
        return Interval(self.lower, self.upper)

    def epsilon(self, delta: float) -> Interval:
        """The epsilon of the same event at another delta."""
        return Interval(*_core.account(self.event, delta, None)['value'])

    def delta(self, epsilon: float) -> Interval:
        """The delta of the same event at an epsilon."""
        return Interval(*_core.account(self.event, None, epsilon)['value'])

    def __repr__(self) -> str:
        given = 'delta' if self.asked == 'epsilon' else 'epsilon'
        return f'{self.asked} in {self.interval} at {given} {self.given:g}'

    def _repr_html_(self) -> str:
        rows = [(m.name, _core.upper_text(m.value), 'yes' if m.sound else 'no',
                 'decides' if m.decides else '') for m in self.methods]
        return _html.table(rows, ('method', self.asked, 'sound', ''), f'{self!r}: {self.event}')


class Calibration:
    """The least noise, the most steps or the largest rate that meets a budget.

    `solved_for` is 'noise', 'steps' or 'rate', and `value` is the answer, which has that name too.
    `epsilon` is the certified interval there. `event` is None where every noise meets the budget.
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        self.solved_for: str = answer['solved_for']
        self.value: float = answer['value']
        self.epsilon = Interval(*answer['epsilon'])
        self.event: Optional[Event] = answer['event']
        self.search_ended: bool = answer['search_ended']
        self.unit: str = answer['unit']

    def _named(self, name: str) -> float:
        if self.solved_for != name:
            raise Error(f'the {name} was given and the {self.solved_for} is the answer; read '
                        f'{self.solved_for}.')
        return self.value

    def _text(self) -> str:
        # Never less noise and never a larger rate than the answer.
        if self.solved_for == 'steps':
            return str(self.value)
        show = _core.upper_text if self.solved_for == 'noise' else _core.lower_text
        return show(self.value)

    @property
    def noise(self) -> float:
        return self._named('noise')

    @property
    def steps(self) -> int:
        return int(self._named('steps'))

    @property
    def rate(self) -> float:
        return self._named('rate')

    def __repr__(self) -> str:
        return f'{self.solved_for} {self._text()}: epsilon {self.epsilon}'

    def _repr_html_(self) -> str:
        return _html.table([(self.solved_for, self._text()), ('epsilon', self.epsilon),
                            ('event', self.event or 'no noise is needed')])


def account(*, delta: Optional[float] = None, epsilon: Optional[float] = None,
            event: Union[Event, str, None] = None, rate: Optional[float] = None,
            noise: Optional[float] = None, steps: Optional[float] = None,
            sampling: Optional[Sampling] = None, mechanism: Optional[Mechanism] = None,
            adjacency: Optional[Adjacency] = None, sensitivity: Optional[float] = None,
            select: Optional[str] = None) -> Spent:
    """The certified epsilon at `delta`, or the delta at `epsilon`, of what was released.

    It is described by `noise` (standard deviation or scale over the sensitivity), `rate` (the
    probability that a record enters a batch) and `steps`, or by an `event`, which `steps` repeats.
    With `select`, 'tnb:ETA:GAMMA' or 'poisson:MEAN', only the best of several runs of it is
    released, and their number is drawn in secret.

    >>> spent = account(rate=.01, noise=4, steps=10_000, delta=1e-5)
    >>> round(spent.lower, 4), round(spent.upper, 4), spent.decided_by
    (0.9469, 0.9469, 'pld')
    >>> account(event='add-remove: 3*pure(0.5)', delta=0).upper
    1.5
    >>> spent.delta(epsilon=1).upper < 1e-5
    True
    >>> round(account(noise=4, delta=1e-5, select='tnb:0:0.1').upper, 2)
    1.19
    """
    if event is None:
        whole = _core.steps_event(rate, noise, steps, sampling, adjacency, mechanism, sensitivity)
    else:
        others = (rate, noise, sampling, mechanism, adjacency, sensitivity)
        if any(other is not None for other in others):
            raise Error('event says everything about the mechanism; besides it only steps may be '
                        'given, to repeat the whole event.')
        whole = event if isinstance(event, Event) else Event(event)
        whole = whole if steps is None else whole * _whole(steps)
    if select is not None:
        whole = _core.best_of(select, whole)
    answer = _core.account(whole, delta, epsilon)
    asked, given = ('epsilon', delta) if epsilon is None else ('delta', epsilon)
    assert given is not None
    return Spent(whole, answer, asked, given)


def calibrate(*, epsilon: float, delta: float, rate: Optional[float] = None,
              noise: Optional[float] = None, steps: Optional[float] = None,
              sampling: Optional[Sampling] = None, mechanism: Optional[Mechanism] = None,
              adjacency: Optional[Adjacency] = None, sensitivity: Optional[float] = None,
              select: Optional[str] = None) -> Calibration:
    """Solves for what is left out so that the budget is met: `noise`, else `steps`, else `rate`.

    `select` is that of `account`; then `steps` are given.

    >>> least = calibrate(epsilon=1, delta=1e-5, rate=.01, steps=10_000)
    >>> round(least.noise, 3), least.epsilon.upper <= 1
    (3.813, True)
    """
    return Calibration(_core.calibrate(epsilon, delta, rate, noise, steps, sampling, adjacency,
                                       mechanism, sensitivity, select))


def _whole(steps: float) -> int:
    if steps != int(steps) or steps < 0:
        raise Error(f'steps is {steps}, which is not a whole number; give one from 0 to 2^53.')
    return int(steps)
