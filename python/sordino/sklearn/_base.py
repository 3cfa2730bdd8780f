"""What all models share: declarations, refusals, and answers that are classes or numbers."""
import html
import os
import warnings
from typing import Any, TypeVar, Union

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from sordino._error import Error
from sordino.sklearn import _guard, _table
from sordino.torch._extension import extension, in_python

Path = Union[str, 'os.PathLike[str]']
Self = TypeVar('Self', bound='PrivateModel')

DECLARED = """
    Parameters
    ----------
    epsilon, delta : what may be spent{pure}.
    bounds : bounds of numbers: `(low, high)` for all columns, a pair for each, or pairs by the name
        of the column. Numbers are clamped to them and scaled to [0, 1].
    categories : values of categorical columns by the name of the column; '*' takes all others.
{answer}
    schema : a schema file, as `sordino fit` reads it, for a DataFrame; instead of the declarations.
    missing : cells without a value, such as `['?', '']`; `''` is also NaN, None and NA."""
CLASSES = """    classes : the classes, which are not read off y; `classes_` has them sorted.{rest}"""
TARGET = """    target : the bounds of y, to which it is clamped."""

def sentence(text):
    """The sentence of the library with the names that are used here."""
    for flag, name in (('--lambda', 'regularisation'), ('--test', 'public_test'),
                       ('--columns', 'bounds'), ('--model logistic', 'LogisticRegression'),
                       ('--model svm', 'LinearSVC'), ('--model least-squares', 'LinearRegression'),
                       ("with --missing", "with missing ('' is NaN)"),
                       ('no finite number in', 'no finite number (text or infinity) in')):
        text = text.replace(flag, name)
    return in_python(text)


def call(function, *arguments):
    try:
        return function(*arguments)
    except Error as error:
        words = sentence(str(error))
    except TypeError:  # its words hold the arguments
        words = 'a value of the table or of the settings has a type that the library does not take.'
    raise Error(words)


class PrivateModel(BaseEstimator):
    """A model of a table that Python holds."""

    def __sklearn_clone__(self):
        if not self.non_private:
            _guard.refuse_repeated_fits()
        return super().__sklearn_clone__()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def _html_repr(self):
        diagram = super()._html_repr()
        if not hasattr(self, 'guarantee_'):
            return diagram
        return f'{diagram}<p>{html.escape(self.guarantee_)}</p>'

    def _declare(self, X):
        """Columns, missing cells and the rows of a user, from the parameters alone."""
        names = _table.column_names(X)
        if self.schema is None:
            features = _table.declared_features(names, self.bounds, self.categories)
            schema = {'missing': [], 'rows_per_user': 0}
        else:
            if self.bounds is not None or self.categories is not None:
                raise Error('both a schema and bounds or categories are given; declare the columns '
                            'in one of them.')
            if not _table.is_frame(X):
                raise Error('a schema names columns, and X is an array; give a DataFrame, or '
                            'bounds and categories.')
            schema = call(extension.schema, os.fspath(self.schema))
            features = schema['columns']
        answer = self._declared_answer([column for column in features if column[1] in
                                        (_table.LABEL, _table.TARGET)], names)
        columns = [column for column in features
                   if column[1] in _table.FEATURES or column[1] == _table.USER]
        missing = schema['missing'] if self.missing is None else list(self.missing)
        return {'columns': [*columns, answer], 'missing': missing,
                'rows_per_user': schema['rows_per_user']}

    def _refuse(self, y, public=False):
        if not public:
            _guard.refuse_repeated_fits()
            _guard.refuse_learning_steps(self)
        if y is None:
            raise Error('the model requires y to be passed, but the target y is None; give a label '
                        'for each row.')

    def _path(self, name):
        value = getattr(self, name)
        if value is not None and not os.fspath(value):
            raise Error(f'{name} is empty; name a file, or leave it out.')
        return None if value is None else os.fspath(value)

    def _warn_of_number(self):
        warnings.warn('the number of records was not declared, so it is taken to be public; '
                      'records= keeps it private.', stacklevel=3)

    def _features(self, X):
        """What a fitted model sees of records."""
        check_is_fitted(self, 'event_')
        X = _table.as_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        columns = [column for column in self._declared['columns'] if column[1] != _table.USER]
        declared = {**self._declared, 'columns': columns, 'rows_per_user': 0}
        return call(extension.records, declared, _table.held_columns(X, columns), False)[0]


class PrivateClassifier(ClassifierMixin, PrivateModel):
    """Predicts classes that were declared."""

    def _declared_answer(self, columns, names):
        if self.classes is None and not columns:
            raise Error('the classes are not declared; give all of them, such as classes=[0, 1]: '
                        'which labels occur is private and is not read off y.')
        if self.classes is not None and columns:
            raise Error('both classes and the label of a schema are given; declare the classes in '
                        'one of them.')
        if columns:
            name, kind, low, high, values = columns[0]
            if kind != _table.LABEL:
                raise Error(f'the schema declares the target {name!r}, and a classifier predicts '
                            'classes; declare a label, or use a regressor.')
            values = sorted(values)
            self._classes = np.array([spellings[0] for spellings in values])
        else:
            name, low, high = _table.free_name('y', names), 0.0, 1.0
            try:
                self._classes = np.unique(np.asarray(self.classes))
            except (TypeError, ValueError):
                raise Error('classes are of different types; give numbers or texts.') from None
            if self._classes.ndim != 1 or len(self._classes) < 2:
                raise Error('fewer than two classes are declared; a model needs two different '
                            'classes or more, such as classes=[0, 1].')
            values = [[_table.text(value)] for value in self._classes.tolist()]
        return name, _table.LABEL, low, high, values

    def _places(self, X):
        scores = self.decision_function(X)
        return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score."""
        places = self._places(X)
        return self.classes_[places]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on records that are public: nothing is paid for it.

        Every spelling of a class counts as the class.
        """
        places = self._places(X)
        classes = self._declared['columns'][-1][4]
        spellings = {spelling: place for place, values in enumerate(classes) for spelling in values}
        truth = [spellings.get(_table.text(value).strip(), -1) for value in
                 _table.as_column(y).tolist()]
        return accuracy_score(truth, places, sample_weight=sample_weight)


class PrivateRegressor(RegressorMixin, PrivateModel):
    """Predicts a number within declared bounds."""

    def _declared_answer(self, columns, names):
        if self.target is None and not columns:
            raise Error('the bounds of y are not declared; give the lower and the upper one, such '
                        'as target=(0, 5000), as public knowledge and not from the data.')
        if self.target is not None and columns:
            raise Error('both target and the target of a schema are given; declare it in one of '
                        'them.')
        if not columns:
            low, high = _table.pair(self.target, 'target')
            return _table.free_name('y', names), _table.TARGET, low, high, []
        if columns[0][1] != _table.TARGET:
            raise Error(f'the schema declares the label {columns[0][0]!r}, and least squares '
                        'predict a number; declare a target, or use a classifier.')
        return columns[0]
