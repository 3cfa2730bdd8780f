"""Private statistics of a DataFrame, charged to a ledger: python statistics.py [FOLDER]

The ledger of the made-up table is written to the folder, or to a temporary one.
"""
from __future__ import annotations

import pathlib
import sys
import tempfile

import pandas as pd

import sordino


def made_up_visits() -> pd.DataFrame:
    """Visits to a hospital: nobody's data."""
    rows = range(3000)
    return pd.DataFrame({'patient': [row // 2 for row in rows],
                         'age': [20 + row * 7 % 60 for row in rows],
                         'ward': [('surgery', 'oncology', 'maternity')[row % 3] for row in rows]})


def main(folder: pathlib.Path) -> None:
    # How much would a training cost, and how much noise does a budget ask for?
    spent = sordino.account(rate=0.01, noise=4, steps=10_000, delta=1e-5)
    print(f'the training spends {spent}')
    least = sordino.calibrate(epsilon=1, delta=1e-5, rate=0.01, steps=10_000)
    print(f'epsilon 1 asks for a noise multiplier of {least.noise:.4f}')

    # One budget for all releases from the table.
    ledger = sordino.Ledger.init(folder / 'visits-ledger.db', epsilon=1, delta=1e-5, unit='user')
    found = sordino.release(made_up_visits(), count=True, mean='age', bounds=(0, 120),
                            group_by={'ward': ['surgery', 'oncology', 'maternity']},
                            user='patient', rows_per_user=2, epsilon=0.6, ledger=ledger)
    for statistic in found:
        print(f'{statistic.name}: {statistic.value:.1f}, between {statistic.interval.lower:.1f} '
              f'and {statistic.interval.upper:.1f}')
    print(f'{100 * ledger.used:.0f} % of the budget is used; left is {ledger.left}')

    # What does not fit any more is refused before the table is read.
    try:
        sordino.release(made_up_visits(), count=True, user='patient', rows_per_user=2,
                        epsilon=0.6, ledger=ledger)
    except sordino.Error as refusal:
        print(refusal)


if __name__ == '__main__':
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
