"""Arrays and DataFrames as the columns of a table, and what is declared about them."""
import collections.abc
import numbers
import warnings

import numpy as np
from sklearn.exceptions import DataConversionWarning

from sordino._error import Error

# What the extension reads: name, kind, the bounds, and the values with their spellings.
NUMERIC, CATEGORICAL, LABEL, TARGET, USER = 'numeric', 'categorical', 'label', 'target', 'user'
FEATURES = (NUMERIC, CATEGORICAL)


def text(value):
    """A cell as it would stand in a file; nothing for NaN, None and NA."""
    if value is None or type(value).__name__ in ('NAType', 'NaTType'):
        return ''
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if number != number:
            return ''
        return str(int(value)) if number.is_integer() else repr(number)
    if isinstance(value, bytes):
        return value.decode('utf-8', 'replace')
    return str(value).encode('utf-8', 'replace').decode()


def is_frame(X):
    return hasattr(X, 'columns') and hasattr(X, '__getitem__')


def as_table(X):
    """An array of two dimensions or a DataFrame. Throws without a value or a count in the message.
    """
    if hasattr(X, 'toarray') or hasattr(X, 'sparse') and not is_frame(X):
        raise TypeError('sparse data are not supported; give a dense array, such as X.toarray().')
    if is_frame(X):
        if len(X.columns) == 0:
            raise Error('X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.')
    else:
        try:
            X = np.asarray(X)
        except ValueError:
            raise Error('X is not an array of two dimensions; give rows of the same length.') \
                from None
        if X.dtype.kind == 'c':
            raise Error('Complex data not supported; give real numbers.')
        if X.ndim != 2:
            raise Error('Expected 2D array: X has another number of dimensions. Reshape your data, '
                        'by X.reshape(-1, 1) if it has one feature.')
        if X.shape[1] == 0:
            raise Error('X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.')
    return X


def as_column(y):
    """Labels or targets as an array of one dimension."""
    y = np.asarray(y)
    if y.dtype.kind == 'c':
        raise Error('Complex data not supported; give real numbers.')
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn('A column-vector y was passed when a 1d array was expected.',
                      DataConversionWarning, stacklevel=4)
        y = y[:, 0]
    if y.ndim != 1:
        raise Error('y should be a 1d array; give one label for each row.')
    return y


def column_names(X):
    if is_frame(X):
        return [str(name) for name in X.columns]
    return [f'x{i}' for i in range(X.shape[1])]


def _values(X, name, names):
    if not is_frame(X):
        return X[:, names.index(name)]
    if names.count(name) > 1:
        raise Error(f'X has the column {name!r} twice; give it two names.')
    return np.asarray(X[X.columns[names.index(name)]].to_numpy())


def _codes(name, values):
    """Places in a list of texts."""
    if values.dtype.kind in 'iufb':
        different, places = np.unique(values, return_inverse=True)
        return name, None, [text(value) for value in different], places.astype(np.int64)
    found = {}
    try:
        places = [found.setdefault(value, len(found)) for value in values.tolist()]
    except TypeError:
        raise Error(f'a cell of the column {name!r} is neither text nor a number; give one of '
                    'them.') from None
    return name, None, [text(value) for value in found], np.asarray(places, dtype=np.int64)


def _held(name, values, is_number):
    """A column as the extension takes it."""
    if values.dtype.kind == 'c':
        raise Error('Complex data not supported; give real numbers.')
    if is_number and values.dtype.kind in 'iufb':
        return name, np.ascontiguousarray(values, dtype=np.float64), [], None
    return _codes(name, values)


def held_columns(X, declared, y=None):
    """The declared columns of X, and y as the label or target."""
    names = column_names(X)
    held = []
    for name, kind, *_ in declared:
        if kind in (LABEL, TARGET):
            if y is not None:
                held.append(_held(name, y, kind == TARGET))
        else:
            if name not in names:
                raise Error(f'X has no column {name!r}, which is declared; give the table with all '
                            'declared columns.')
            held.append(_held(name, _values(X, name, names), kind == NUMERIC))
    if y is not None and len({len(columns[1] if columns[1] is not None else columns[3])
                              for columns in held}) > 1:
        raise Error('X and y have different numbers of rows; give one label for each row.')
    return held


def _by_column(given, names, what):
    """A declaration for some columns, by name or place."""
    by_name = {}
    for key, value in given.items():
        is_place = isinstance(key, numbers.Integral) and str(key) not in names
        if is_place and not 0 <= key < len(names):
            raise Error(f'{what} are declared for the column {key}, and X has {len(names)} '
                        'columns; they are counted from 0.')
        name = names[key] if is_place else str(key)
        if name not in names:
            raise Error(f'{what} are declared for the column {name!r}, which X does not have; give '
                        'the name of a column, or its place in an array.')
        by_name[name] = value
    return by_name


def pair(value, what):
    """Two numbers, the lower one first; the library checks their order."""
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError):
        raise Error(f'{what} is not a pair of numbers; give the lower and the upper bound, such as '
                    '(0, 120), as public knowledge and not from the data.') from None
    return low, high


def spelled(values, what):
    """Declared values, each with its spellings."""
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise Error(f'{what} is not a list of values; give every value that may stand there, such '
                    "as ['no', 'yes'].")
    return [[text(each) for each in value] if isinstance(value, (list, tuple)) else [text(value)]
            for value in values]


def declared_features(names, bounds, categories):
    """Columns by `bounds` and `categories`; those in neither are left out, as in a schema."""
    if categories is not None and not isinstance(categories, collections.abc.Mapping):
        raise Error('categories is not a mapping; give the values of each column by its name, such '
                    "as {'sex': ['female', 'male']}.")
    values = _by_column(categories or {}, names, 'categories')
    if bounds is None:
        pairs = {}
    elif isinstance(bounds, collections.abc.Mapping):
        pairs = _by_column(bounds, names, 'bounds')
    else:
        bounds = list(bounds) if isinstance(bounds, collections.abc.Iterable) else [bounds]
        is_one = len(bounds) == 2 and all(isinstance(bound, numbers.Real) for bound in bounds)
        if not is_one and len(bounds) != len(names):
            raise Error(f'bounds has {len(bounds)} entries and X {len(names)} columns; give one '
                        'pair for all of them, a pair for each, or pairs by the name of the '
                        'column.')
        pairs = {name: bounds if is_one else bounds[i] for i, name in enumerate(names)
                 if name not in values}
    both = sorted(set(pairs) & set(values))
    if both:
        raise Error(f'the column {both[0]!r} has both bounds and categories; give one of them.')
    if not pairs and not values:
        raise Error('no column is declared; give bounds of numbers, such as (0, 120) or '
                    "{'age': (0, 120)}, categories, or a schema: what is declared is public "
                    'knowledge and is not learned from the data.')
    declared = []
    for name in names:
        if name in pairs:
            low, high = pair(pairs[name], f'the bound of the column {name!r}')
            declared.append((name, NUMERIC, low, high, []))
        elif name in values:
            what = f'the declaration of the column {name!r}'
            declared.append((name, CATEGORICAL, 0.0, 1.0, spelled(values[name], what)))
    return declared


def free_name(name, names):
    while name in names:
        name += '_'
    return name
