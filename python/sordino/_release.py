"""Private statistics of a table."""
from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Optional, Union

from sordino import _core, _html
from sordino._accounting import Interval
from sordino._core import Event
from sordino._error import Error
from sordino._ledger import Path

Names = Union[str, Iterable[str]]
Ends = tuple[float, float]
Cell = Union[str, float, bool]


class Statistic(NamedTuple):
    """One released statistic. Each interval holds its value without noise at the confidence.

    `group` is the value of each column of `group_by`. A histogram has a value for each of its
    `bins`; the others have one.
    """

    statistic: str
    column: str
    group: dict[str, str]
    quantile: Optional[float]
    bins: list[str]
    values: list[float]
    intervals: list[Interval]
    noise_scale: float
    epsilon: float
    delta: float

    @property
    def value(self) -> float:
        if self.bins:
            raise Error('a histogram has a value for each bin; read values.')
        return self.values[0]

    @property
    def interval(self) -> Interval:
        if self.bins:
            raise Error('a histogram has an interval for each bin; read intervals.')
        return self.intervals[0]

    @property
    def name(self) -> str:
        text = f'{self.statistic} {self.column}'.rstrip()
        if self.quantile is not None:
            text += f':{self.quantile:g}'
        if self.group:
            text += ' [' + ', '.join(f'{key}={value}' for key, value in self.group.items()) + ']'
        return text


class Release:
    """Released statistics, what they cost, and the charge. Of a dry run there are no statistics.

    `event` is what they are charged as, `run` the run of the ledger, and `charged` says what is
    used of its budget. `rows` is a list of dicts for a DataFrame.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        groups: list[str] = found.get('groups', [])
        self.statistics = [
            Statistic(one['statistic'], one['column'], dict(zip(groups, one['group'])),
                      one['quantile'], one['bins'], one['values'],
                      [Interval(*ends) for ends in one['intervals']], one['noise_scale'],
                      one['epsilon'], one['delta'])
            for one in found.get('releases', [])]
        self.epsilon: float = found['epsilon']
        self.delta: float = found['delta']
        self.event: Event = found['event']
        self.confidence: Optional[float] = found.get('confidence')
        self.is_private: bool = found.get('private', True)
        self.warning: str = found.get('warning', '')
        self.run: str = found.get('run', '')
        self.charged: str = found.get('charged', '')
        self._unit = 'row' if found.get('rows_per_user') is None else (
            f"user ({found['rows_per_user']} rows of each count)")
        self._change = ('replacing' if found.get('adjacency') == 'replace-one'
                        else 'adding or removing')

    def __len__(self) -> int:
        return len(self.statistics)

    def __iter__(self) -> Iterator[Statistic]:
        return iter(self.statistics)

    def __getitem__(self, place: int) -> Statistic:
        return self.statistics[place]

    def _only(self) -> Statistic:
        if len(self.statistics) != 1:
            raise Error(f'the release has {len(self.statistics)} statistics; name one by its '
                        'place, such as release[0].')
        return self.statistics[0]

    @property
    def value(self) -> float:
        """Of the only statistic."""
        return self._only().value

    @property
    def values(self) -> list[float]:
        """Of the only statistic."""
        return self._only().values

    @property
    def interval(self) -> Interval:
        """Of the only statistic."""
        return self._only().interval

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [{'statistic': one.statistic, 'column': one.column, **one.group,
                 'quantile': one.quantile, 'bin': one.bins[i] if one.bins else None,
                 'value': value, 'lower': one.intervals[i].lower, 'upper': one.intervals[i].upper,
                 'noise_scale': one.noise_scale, 'epsilon': one.epsilon, 'delta': one.delta}
                for one in self.statistics for i, value in enumerate(one.values)]

    def _lines(self) -> list[tuple[str, ...]]:
        return [((one.name + (f' {one.bins[i]}' if one.bins else '')), f'{value:.6g}',
                 f'{one.intervals[i].lower:.6g} to {one.intervals[i].upper:.6g}',
                 f'{one.noise_scale:.4g}', f'{one.epsilon:g}', f'{one.delta:g}')
                for one in self.statistics for i, value in enumerate(one.values)]

    def _total(self) -> str:
        text = (f'total: epsilon {self.epsilon:g}, delta {self.delta:g}, {self._change} one '
                f'{self._unit}')
        text += f'; {self.charged}' if self.charged else ''
        return text if self.is_private else f'{text}; NOT PRIVATE: the noise has a typed seed'

    def __repr__(self) -> str:
        return '\n'.join(['  '.join(line[:3]) for line in self._lines()] + [self._total()])

    def _repr_html_(self) -> str:
        return _html.table(self._lines(), ('statistic', 'value', 'interval', 'noise', 'epsilon',
                                           'delta'), self._total())


def release(data: Any, *, count: bool = False, sum: Names = (), mean: Names = (),
            variance: Names = (), histogram: Names = (),
            quantile: Optional[Mapping[str, Union[float, Sequence[float]]]] = None,
            bounds: Union[Ends, Mapping[str, Ends], None] = None,
            bins: Union[int, Sequence[float], Mapping[str, Union[int, Sequence[float]]],
                        None] = None,
            categories: Union[Sequence[Cell], Mapping[str, Sequence[Cell]], None] = None,
            group_by: Union[Mapping[str, Optional[Sequence[Cell]]], Names, None] = None,
            schema: Optional[Path] = None, no_header: bool = False,
            encoding: Optional[str] = None, delimiter: Optional[str] = None,
            missing: Optional[Iterable[str]] = None,
            epsilon: Optional[float] = None, spend: Optional[Mapping[str, float]] = None,
            delta: Optional[float] = None,
            noise: Optional[Literal['laplace', 'gaussian']] = None,
            adjacency: Optional[Literal['add-remove', 'replace-one']] = None,
            user: Optional[str] = None, rows_per_user: Optional[int] = None,
            on_error: Optional[Literal['refuse', 'skip']] = None,
            confidence: Optional[float] = None, ledger: Optional[Path] = None,
            whole: bool = False, dry_run: bool = False,
            insecure_seed: Optional[int] = None) -> Release:
    """Private statistics of a table, as `sordino release` makes them of a file.

    `data` is a DataFrame of pandas or polars, a dict of columns, or the path of a CSV file, also
    compressed. The arguments are the flags of the command, and nothing is taken from the data:

    - `count`, and columns for `sum`, `mean`, `variance` and `histogram`; `quantile={'age': 0.5}`;
    - `bounds=(0, 120)`, or `{'age': (0, 120)}` where there are several columns; the same for
      `bins` (a number of equal ones within the bounds, or edges) and `categories`;
    - `group_by={'ward': ['surgery', 'oncology']}`: every statistic for each declared group; a value
      that is not declared is refused, unless `'*'` is declared for all others or
      `on_error='skip'` leaves such rows out;
    - `epsilon` is the total, split evenly where `spend={'mean:age': 0.2}` claims nothing; with
      `delta` the noise is Gaussian;
    - `user` and `rows_per_user` protect users instead of rows;
    - `ledger`, a file or a `Ledger`: it is charged before the noise is drawn, and a release that it
      does not admit is refused before the data are read.

    None and NaN in a column are empty cells, which are refused in a column of numbers unless
    `missing=['']` declares them. A truth value is 1 or 0.

    >>> stays = {'days': [1.0, 4.0, 9.0] * 100, 'ward': ['a', 'b', 'b'] * 100}
    >>> found = release(stays, mean='days', bounds=(0, 30), group_by={'ward': ['a', 'b']},
    ...                 epsilon=1)
    >>> [one.name for one in found], found.event
    (['mean days [ward=a]', 'mean days [ward=b]'], Event('add-remove: pure(1)'))
    """
    asked = _core.ReleaseArguments()
    asked.statistics = _statistics(count, sum, mean, variance, histogram, quantile, spend)
    columns = list(dict.fromkeys(column for _, column, _, _ in asked.statistics if column))
    histograms = list(dict.fromkeys(_names(histogram)))
    asked.bounds = {column: _ends(ends) for column, ends in
                    _by_column('bounds', bounds, columns).items()}
    split = _by_column('bins', bins, histograms)
    asked.bins = {column: given for column, given in split.items()
                  if isinstance(given, (int, float))}
    asked.edges = {column: [float(edge) for edge in given] for column, given in split.items()
                   if column not in asked.bins}
    asked.categories = {column: _cells(given) for column, given in
                        _by_column('categories', categories, histograms).items()}
    groups = (group_by if isinstance(group_by, Mapping)
              else dict.fromkeys(_names(group_by or ())))
    asked.group_by = [(column, None if values is None else _cells(values))
                      for column, values in groups.items()]
    asked.schema = None if schema is None else _file('schema', schema)
    asked.no_header = no_header
    asked.encoding = encoding
    asked.delimiter = delimiter
    asked.missing = None if missing is None else list(_names(missing))
    asked.epsilon = epsilon
    asked.delta = delta
    asked.noise = noise
    asked.adjacency = adjacency
    if user == '':
        raise Error('user is empty; name the column that tells users apart, or leave it out.')
    asked.user = user or ''
    asked.rows_per_user = rows_per_user
    asked.on_error = on_error
    asked.confidence = confidence
    is_file = isinstance(data, (str, os.PathLike))
    plan = _core.PlannedRelease(asked, os.fspath(data) if is_file else None,
                                '' if ledger is None else _file('ledger', ledger), whole,
                                insecure_seed)
    # Before the dry run ends: a column that is not there is told.
    table = [] if is_file else _table(data, plan.columns(), not dry_run)
    if dry_run:
        return _forecast(plan.forecast())
    found = Release(plan.make(table))
    if found.warning:
        warnings.warn(found.warning, stacklevel=2)
    if not found.is_private:
        warnings.warn('insecure_seed makes the noise predictable; the result is not private.',
                      stacklevel=2)
    return found


def _forecast(found: dict[str, Any]) -> Release:
    if 'ledger' in found:
        found['charged'] = (f"{100 * found['used']:.2f}% of the budget of {found['ledger']} would "
                            f"be used, and left would be {found['left']}")
    return Release(found)


def _names(given: Names) -> list[str]:
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _statistics(count: bool, sum: Names, mean: Names, variance: Names, histogram: Names,
                quantile: Optional[Mapping[str, Union[float, Sequence[float]]]],
                spend: Optional[Mapping[str, float]]
                ) -> list[tuple[str, str, Optional[float], Optional[float]]]:
    asked: list[tuple[str, str, Optional[float]]] = [('count', '', None)] if count else []
    for kind, names in (('sum', sum), ('mean', mean), ('variance', variance),
                        ('histogram', histogram)):
        asked += [(kind, name, None) for name in _names(names)]
    for column, ranks in (quantile or {}).items():
        asked += [('quantile', column, rank) for rank in
                  (ranks if isinstance(ranks, Iterable) else [ranks])]
    epsilons: dict[int, float] = {}
    for name, epsilon in (spend or {}).items():
        places = [i for i, one in enumerate(asked) if name in _spend_names(*one)]
        if len(places) != 1 or places[0] in epsilons:
            raise Error(f"spend names '{name}', which is not one statistic that was asked for; "
                        "write it as 'count', 'mean:age' or 'quantile:age:0.5'.")
        epsilons[places[0]] = epsilon
    return [(*one, epsilons.get(i)) for i, one in enumerate(asked)]


def _spend_names(kind: str, column: str, rank: Optional[float]) -> list[str]:
    name = f'{kind}:{column}' if column else kind
    return [name] if rank is None else [name, f'{name}:{rank:g}']


def _by_column(what: str, given: Any, columns: list[str]) -> dict[str, Any]:
    """What was given for each column; a single value is for the only column there is."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for column in given:
            if column not in columns:
                raise Error(f"{what} has the column '{column}', and no statistic that needs it "
                            'was asked for.')
        return dict(given)
    if len(columns) != 1:
        raise Error(f'{what} does not say which column it is for, and {len(columns)} columns '
                    f'could be meant; write {what}={{column: ...}}.')
    return {columns[0]: given}


def _ends(given: Any) -> Ends:
    try:
        low, high = given
        return float(low), float(high)
    except (TypeError, ValueError):
        raise Error('bounds are a pair of numbers; write them as (low, high).') from None


def _cells(given: Sequence[Cell]) -> list[str]:
    if isinstance(given, str):
        raise Error('values are given as a list of texts or numbers, not as one text.')
    return [_core.cell_text(cell) for cell in given]


def _file(what: str, path: Path) -> str:
    name = os.fspath(path)
    if not name:
        raise Error(f'{what} is empty; give the path of a file, or leave it out.')
    return name


def _table(data: Any, needed: list[str], with_values: bool) -> list[tuple[str, Any]]:
    """Name and values of the columns that a release reads, or of any one where it reads none."""
    if isinstance(data, Mapping):
        places = [(str(name).strip(), column) for name, column in data.items()]
    elif hasattr(data, 'iloc'):  # pandas
        places = [(str(name).strip(), data.iloc[:, i]) for i, name in enumerate(data.columns)]
    elif hasattr(data, 'get_columns'):  # polars
        places = [(name.strip(), column) for name, column in zip(data.columns,
                                                                  data.get_columns())]
    else:
        raise Error(f'data is a {type(data).__name__}; give a DataFrame of pandas or polars, a '
                    'dict of columns, or the path of a CSV file.')
    names = [name for name, _ in places]
    for column in needed:
        if column not in names:
            raise Error(f"there is no column '{column}' in the table; name one of its columns.")
    chosen = [(name, column) for name, column in places if name in needed] or places[:1]
    return [(name, _values(column)) for name, column in chosen] if with_values else []


def _values(column: Any) -> Any:
    """An array of numbers, or a list of texts, numbers and None."""
    if hasattr(column, 'null_count') and column.null_count():  # polars
        return [_item(item) for item in column.to_list()]
    array = column.to_numpy() if hasattr(column, 'to_numpy') else column
    dtype = getattr(array, 'dtype', None)
    if dtype is not None and dtype.kind in 'fiub' and dtype.isnative and dtype.itemsize <= 8 and (
            dtype.kind != 'f' or dtype.itemsize >= 4):
        return array
    # Times are shown as such, and not as counts of seconds.
    plain = dtype is not None and dtype.kind not in 'mM'
    return [_item(item) for item in (array.tolist() if plain else column)]


def _item(item: Any) -> Union[str, float, None]:
    if item is None or isinstance(item, (str, int, float)):
        return item
    if type(item).__name__ in ('NAType', 'NaTType') or str(item) == 'NaT':
        return None
    if isinstance(item, bytes):
        return item.decode('utf-8', 'replace')
    if type(item).__module__ == 'numpy' and hasattr(item, 'item'):
        return _item(item.item())
    return str(item)
