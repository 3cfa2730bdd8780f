"""What the outcome of an attack proves about epsilon.

>>> import sordino
>>> found = sordino.audit.bound(canaries=1000, guesses=100, correct=95, delta=1e-5)
>>> found
epsilon is at least 2.165175 at delta 1e-05, with confidence 0.95
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, Optional, Union

from sordino import _core, _html
from sordino._core import Event

__all__ = ['Bound', 'Estimate', 'ScoreBound', 'bound', 'scores']


class Estimate(NamedTuple):
    """A value with its confidence interval."""

    value: float
    lower: float
    upper: float


class Bound:
    """A lower bound on epsilon at `delta`; `mu` where the release is taken to be Gaussian-DP."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.epsilon: float = found['epsilon']
        self.mu: Optional[float] = found['mu']
        self.delta: float = found['delta']
        self.confidence: float = found['confidence']
        self.p_value: Optional[float] = found.get('p_value')

    def _rows(self) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = [('epsilon is at least', _core.lower_text(self.epsilon)),
                                          ('delta', f'{self.delta:g}'),
                                          ('confidence', f'{self.confidence:g}')]
        if self.mu is not None:
            rows.append(('mu is at least', _core.lower_text(self.mu)))
        if self.p_value is not None:
            rows.append(('p-value of the claim', f'{self.p_value:.4g}'))
        return rows

    def __repr__(self) -> str:
        return (f'epsilon is at least {_core.lower_text(self.epsilon)} at delta {self.delta:g}, '
                f'with confidence {self.confidence:g}')

    def _repr_html_(self) -> str:
        return _html.table(self._rows())


class ScoreBound(Bound):
    """The same from scores, with the area under the curve and true positive rates.

    `mu_epsilon` is the epsilon of `mu` at delta, for a release that is Gaussian-DP.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__(found)
        self.mu_epsilon: float = found['mu_epsilon']
        self.auc = Estimate(*found['auc'])
        self.tpr = {rate: Estimate(*at) for rate, at in found['tpr'].items()}

    def _rows(self) -> list[tuple[object, ...]]:
        shown = [('area under the curve', self.auc)]
        shown += [(f'true positive rate at {rate:g}', at) for rate, at in self.tpr.items()]
        return super()._rows() + [
            (name, f'{at.value:.4g} ({at.lower:.4g} to {at.upper:.4g})') for name, at in shown]


def bound(*, canaries: float, guesses: float, correct: float, delta: Optional[float] = None,
          confidence: Optional[float] = None,
          method: Optional[Literal['one-run', 'one-run-fdp']] = None,
          epsilon: Optional[float] = None) -> Bound:
    """Epsilon that right guesses about the canaries of one run prove.

    Each of the canaries was in the data by a fair coin of its own; `guesses` of the coins were
    guessed, and `correct` of the guesses are right. With `epsilon`, a claim, the answer has the
    probability of so many right guesses if the claim holds, `p_value`.
    """
    return Bound(_core.one_run_bound(canaries, guesses, correct, delta, confidence, method,
                                     epsilon))


def scores(members: Iterable[float], others: Iterable[float], *, delta: Optional[float] = None,
           confidence: Optional[float] = None, event: Union[Event, str, None] = None,
           rates: Iterable[float] = ()) -> ScoreBound:
    """Epsilon, area and true positive rates that the scores of an attack prove.

    `members` are scores of records that were trained on, larger where the attack is surer of it,
    and `others` of records that were not. `event` is what is claimed of the release: the bounds
    look first where it allows most. `rates` are false positive rates at which the true positive
    rate is asked for.

    >>> found = scores(range(100, 200), range(100), delta=1e-5)
    >>> found.auc.value, found.epsilon > 2
    (1.0, True)
    """
    claim = Event(event) if isinstance(event, str) else event
    return ScoreBound(_core.scores_bound([float(score) for score in members],
                                         [float(score) for score in others], delta, confidence,
                                         claim, [float(rate) for rate in rates]))
