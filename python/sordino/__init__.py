"""Differentially private statistics, accounting and machine learning.

>>> import sordino
>>> spent = sordino.account(rate=.01, noise=4, steps=10_000, delta=1e-5)
>>> round(spent.upper, 4)
0.9469
"""
from sordino import audit
from sordino._accounting import Calibration, Interval, Spent, account, calibrate
from sordino._core import Event
from sordino._error import Error
from sordino._ledger import Budget, Entry, Ledger, Left
from sordino._noise_plan import Bands, FixedOrder, NoiseCell, NoisePlan, plan_noise
from sordino._plan import Horizon, Plan, plan
from sordino._release import Release, Statistic, release

__all__ = ['Bands', 'Budget', 'Calibration', 'Entry', 'Error', 'Event', 'FixedOrder', 'Horizon',
           'Interval', 'Ledger', 'Left', 'NoiseCell', 'NoisePlan', 'Plan', 'Release', 'Spent',
           'Statistic', 'account', 'audit', 'calibrate', 'plan', 'plan_noise', 'release']
