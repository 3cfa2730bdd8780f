"""How many steps, and which noise in each, spend a budget best, by theory."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from sordino import _core, _html


class Horizon(NamedTuple):
    """The best number of steps, and the bound on the excess risk there, over that at the start."""

    steps: int
    bound: float


class Plan:
    """A noise multiplier for each of `steps` steps, and the `bound` that it has.

    `uniform` and `dynamic` are the best numbers of steps with the same noise in each and with the
    best noise in each. Without a budget the noise is in units of 1 / sqrt(budget), where a budget
    is the sum of 1 / noise^2. `noise` and `influence` are empty for more than a million steps.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.kappa: float = found['kappa']
        self.alpha: float = found['alpha']
        self.budget: Optional[float] = found['budget']
        self.uniform = Horizon(*found['uniform'])
        self.dynamic = Horizon(*found['dynamic'])
        self.steps: int = found['steps']
        self.bound: float = found['bound']
        self.noise: list[float] = found['noise']
        self.influence: list[float] = found['influence']

    def __repr__(self) -> str:
        return f'{self.steps} steps: the excess risk falls to at most {self.bound:.4g} of the first'

    def _repr_html_(self) -> str:
        rows = [(name, at.steps, f'{at.bound:.4g}') for name, at in
                (('the same noise in each step', self.uniform),
                 ('the best noise in each step', self.dynamic))]
        return _html.table(rows, ('', 'best number of steps', 'bound'), repr(self))


def plan(*, kappa: Optional[float] = None, alpha: Optional[float] = None,
         records: Optional[float] = None, dimension: Optional[float] = None,
         lipschitz: Optional[float] = None, smoothness: Optional[float] = None,
         strong_convexity: Optional[float] = None, initial_gap: Optional[float] = None,
         epsilon: Optional[float] = None, delta: Optional[float] = None,
         budget: Optional[float] = None, momentum: Optional[float] = None,
         step_size: Optional[float] = None, steps: Optional[float] = None) -> Plan:
    """How many steps, and which noise in each, spend a budget best, as `sordino plan` says.

    A problem is `kappa` (smoothness over strong convexity) with `alpha` (noise of one step over the
    initial excess risk), or the constants from `records` to `initial_gap` with a budget: `epsilon`
    and `delta`, or `budget`, the sum of 1 / noise^2. `steps` is a number of steps other than the
    best; `momentum` is the decay of debiased momentum.

    >>> best = plan(kappa=10, alpha=1e-4)
    >>> best.steps == best.dynamic.steps == len(best.noise), best.dynamic.bound < best.uniform.bound
    (True, True)
    """
    constants = [records, dimension, lipschitz, smoothness, strong_convexity, initial_gap]
    return Plan(_core.plan(kappa, alpha, constants, epsilon, delta, budget, momentum, step_size,
                           steps))
