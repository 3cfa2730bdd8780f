"""How good noise is that is correlated between steps, and when it pays."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional

from sordino import _core, _html
from sordino._accounting import Interval

Objective = Literal['rmse', 'max-error']


class Bands(NamedTuple):
    """The least noise multiplier of so many bands that meets a budget, and its error.

    `ratio` is the RMSE over that of Poisson sampling with independent noise at the same budget.
    """

    bands: int
    noise: float
    epsilon: Interval
    rmse: float
    ratio: float


class FixedOrder(NamedTuple):
    """The noise multiplier and the error of a strategy at a budget where nobody samples."""

    noise: float
    rmse: float
    ratio: float


class NoiseCell(NamedTuple):
    """The best number of bands for a run of so many epochs at an epsilon."""

    epochs: float
    steps: int
    epsilon: float
    bands: int
    ratio: float


def _bands(found: tuple[int, float, tuple[float, float], float, float]) -> Bands:
    bands, noise, epsilon, rmse, ratio = found
    return Bands(bands, noise, Interval(*epsilon), rmse, ratio)


class NoisePlan:
    """A strategy of correlated noise for a pattern of participation.

    `rmse` and `max_error` are those of the prefix sums for a noise multiplier of 1, and
    `independent_rmse` that of independent noise. `coefficients` are the bands of the matrix; there
    are none for a tree. With a budget, `best` is the best number of `bands` for cyclic Poisson
    sampling, which is `sampled_strategy`, and `fixed_order` the strategy where nobody samples;
    without one they are None, and `bands` and `table` are empty.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.strategy: str = found['strategy']
        self.steps: int = found['steps']
        self.separation: int = found['separation']
        self.participations: int = found['participations']
        self.rmse: float = found['rmse']
        self.max_error: float = found['max_error']
        self.sensitivity: float = found['sensitivity']
        self.independent_rmse: float = found['independent_rmse']
        self.coefficients: list[float] = found['coefficients']
        self.best: Optional[Bands] = None
        self.independent: Optional[Bands] = None
        self.fixed_order: Optional[FixedOrder] = None
        self.sampled_strategy: Optional[str] = None
        self.bands: list[Bands] = []
        self.table: list[NoiseCell] = []
        budget = found['budget']
        if budget is None:
            return
        self.sampled_strategy = budget['strategy']
        self.best = _bands(budget['best'])
        self.independent = _bands(budget['independent'])
        self.fixed_order = FixedOrder(*budget['fixed_order'])
        self.bands = [_bands(row) for row in budget['bands']]
        self.table = [NoiseCell(*cell) for cell in budget['table']]

    def __repr__(self) -> str:
        text = (f'{self.strategy}: RMSE {self.rmse:.4g}, '
                f'{self.rmse / self.independent_rmse:.3f} times that of independent noise')
        if self.best is not None:
            text += f'; at the budget {self.sampled_strategy}, {self.best.ratio:.3f} times'
        return text

    def _repr_html_(self) -> str:
        if not self.bands:
            return _html.table([('RMSE', f'{self.rmse:.6g}'),
                                ('largest error', f'{self.max_error:.6g}'),
                                ('sensitivity', f'{self.sensitivity:.6g}')], caption=repr(self))
        rows = [(row.bands, f'{row.noise:.5g}', f'{row.rmse:.5g}', f'{row.ratio:.3f}')
                for row in self.bands]
        return _html.table(rows, ('bands', 'noise multiplier', 'RMSE', 'over independent noise'),
                           repr(self))


def plan_noise(*, steps: float, separation: Optional[float] = None,
               participations: Optional[float] = None, strategy: str = 'auto',
               objective: Optional[Objective] = None, epsilon: Optional[float] = None,
               delta: Optional[float] = None, rate: Optional[float] = None) -> NoisePlan:
    """How good correlated noise is and when it pays, as `sordino plan noise` says.

    A record takes part in at most `participations` of the `steps`, at least `separation` steps
    apart. `strategy` is 'auto', 'none', 'banded:B', 'blt:K', 'bisr:P', 'bifr:P' or 'tree'. With
    `epsilon`, `delta` and `rate` (expected batch over records) numbers of bands are compared at the
    noise that meets the budget.

    >>> plan = plan_noise(steps=128, participations=4, strategy='banded:32')
    >>> round(plan.rmse, 5), len(plan.coefficients)
    (5.13056, 32)
    """
    return NoisePlan(_core.plan_noise(steps, separation, participations, strategy, objective,
                                      epsilon, delta, rate))
