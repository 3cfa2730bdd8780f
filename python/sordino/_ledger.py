"""The budget of a dataset, in a file."""
from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple, Optional, Union

from sordino import _core, _html
from sordino._accounting import Adjacency, Interval
from sordino._core import Event
from sordino._error import Error

Path = Union[str, 'os.PathLike[str]']


class Budget(NamedTuple):
    """What all releases from a dataset may cost together, and what it protects."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str
    filter: str
    order: Optional[float]
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.table([('budget', self.text), ('filter', self.filter)])


class Left(NamedTuple):
    """The epsilon of one more Gaussian or of one more pure mechanism; 0 where none is admitted."""

    gaussian: float
    pure: float
    text: str

    def __str__(self) -> str:
        return self.text


class Entry(NamedTuple):
    """One line of a ledger. `kind` is 'budget', 'run', 'charge', 'return' or 'note'."""

    number: int
    kind: str
    time: str
    run: str
    event: str
    words: str
    hash: str


class Ledger:
    """A dataset's ledger: every release is charged to it, and on the disk, before it is made.

    >>> import tempfile
    >>> file = tempfile.mkdtemp() + '/patients.db'
    >>> ledger = Ledger.init(file, epsilon=1, delta=1e-5)
    >>> run = ledger.charge(Event.pure(0.25), 'survey of 2025')
    >>> round(ledger.used, 4), round(ledger.left.pure, 4)
    (0.25, 0.75)
    >>> [entry.kind for entry in Ledger(file).entries]
    ['budget', 'run', 'charge']
    >>> ledger.verify()
    3

    Another process may use the same file at the same time. A forked child opens its own.
    """

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        self._ledger = _core.Ledger(os.fspath(file), read_only)

    @classmethod
    def init(cls, file: Path, *, epsilon: float, delta: float,
             adjacency: Optional[Adjacency] = None,
             unit: Optional[Literal['record', 'user']] = None,
             filter: Optional[Literal['renyi', 'gaussian']] = None,
             order: Optional[float] = None) -> Ledger:
        """Makes a ledger with a budget in a file that is not there yet."""
        made = cls.__new__(cls)
        made._ledger = _core.Ledger.create(os.fspath(file), epsilon, delta, adjacency, unit,
                                           filter, order)
        return made

    def __fspath__(self) -> str:
        return self._ledger.file()

    @property
    def file(self) -> str:
        return self._ledger.file()

    @property
    def budget(self) -> Budget:
        return Budget(**self._ledger.budget())

    @property
    def used(self) -> float:
        """The part of the budget that is used, from 0 to 1."""
        return float(self._ledger.state()['used'])

    @property
    def left(self) -> Left:
        return Left(*self._ledger.state()['left'])

    @property
    def epsilon(self) -> Interval:
        """Of all that counts, at the budget's delta, as if all of it had been fixed in advance."""
        return Interval(*self._ledger.state()['composed'])

    @property
    def head(self) -> str:
        """The hash of the newest entry: keep it, and `verify` finds an older copy."""
        return str(self._ledger.state()['head'])

    @property
    def total(self) -> Event:
        """All that was charged and not returned."""
        return self._ledger.total()

    @property
    def entries(self) -> list[Entry]:
        return [Entry(*entry) for entry in self._ledger.entries()]

    def charge(self, event: Union[Event, str], note: str, *, whole: bool = False) -> str:
        """Charges what another program releases, and returns the name of its run.

        It is on the disk when this returns. A charge that the budget does not admit is refused with
        an Error, and nothing is written. With `whole` it may take all of the budget where nothing
        else admits it.
        """
        return self._ledger.charge(Event(event) if isinstance(event, str) else event, note, whole)

    def note(self, text: str) -> None:
        """Keeps somebody's words, with the time."""
        self._ledger.note(text)

    def verify(self, expect: Optional[str] = None) -> int:
        """Checks all of the file, also that it holds the entry of a hash that was kept.

        Returns the number of entries; the first thing that is wrong is an Error.
        """
        entries = _core.verify_ledger(self.file)
        if expect is not None and not self._ledger.contains(expect):
            raise Error(f"the ledger '{self.file}' is whole and does not hold the entry {expect}: "
                        'it is an older copy, or another ledger; put back the newest copy.')
        return entries

    def _state(self) -> dict[str, Any]:
        return self._ledger.state()

    def __repr__(self) -> str:
        return f"Ledger('{self.file}'): {self.budget.text}"

    def _repr_html_(self) -> str:
        state = self._state()
        rows = [('budget', self.budget.text), ('used', state['used_text']),
                ('left', state['left'][2]),
                ('composed', Interval(*state['composed']))]
        if not state['private']:
            rows.append(('NOT PRIVATE', 'the noise of a run came from a typed seed'))
        runs = [(entry.time, entry.words, entry.event) for entry in self.entries
                if entry.kind == 'run']
        return (_html.table(rows, caption=self.file)
                + (_html.table(runs, ('when', 'what', 'event')) if runs else ''))
