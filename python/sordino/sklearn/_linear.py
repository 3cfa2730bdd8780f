"""Linear models: those of `sordino fit`, with the interface of scikit-learn."""
import warnings
from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.utils.validation import validate_data

from sordino._error import Error
from sordino.sklearn import _table
from sordino.sklearn._base import (CLASSES, DECLARED, TARGET, PrivateClassifier, PrivateModel,
                                   PrivateRegressor, Path, Self, call)
from sordino.torch._extension import extension

_SETTINGS = """
    records : about how many records there are, where their number is private.
    adjacency : 'add-remove' or 'replace-one'; if left out that of the ledger, 'add-remove' with
        `records`, else 'replace-one', under which the number of records is public.
    ledger : the file that the fit is charged to before its noise is drawn.
    whole : let the fit take all of the ledger's budget where nothing else admits it.
    method, method_options : a method by name with its options, such as `'gradient'` and
        `{'clip': 0.1}`; if left out the one of the least predicted risk, found without the data.
    regularisation : (x / 2) |theta|^2 beside the sum of the losses; by theory if left out.
    row_bound : the norm to which rows are scaled down; it follows from the columns if left out.
    weight_norm : the norm of the best weights that theory assumes.
    tune : the best of about so many fits on the public test set of `fit`, as one charge.
    out : a folder for the run, which `sordino report` and `sordino predict` read.
    name : what statement and ledger call the data.
    curator, use : who answers for the model, and what it is for.
    insecure_seed : NOT PRIVATE: predictable noise, for tests.
    non_private : NOT PRIVATE: the best model without noise, for public data.

    Columns that are not declared are not used. A numeric coefficient is the change of the score
    from the lower to the upper bound of its column; a category has one for each of its values.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    coefficients_ : a list of the feature, the class, the value and, where they are known, the
        deviation of the noise and the 95 % interval of each coefficient.
    epsilon_, delta_ : what the fit has spent; `epsilon_interval_` has both ends.
    event_ : the same as data, for `sordino account --event`.
    statement_, guarantee_ : what is guaranteed, on a page and in a sentence.
    method_, regularisation_, adjacency_ : what the plan chose.
    is_private_ : False with `insecure_seed` or `non_private`.
"""
# Settings that go to the library as they are.
_PASSED = ('epsilon', 'delta', 'records', 'adjacency', 'whole', 'method', 'method_options',
           'regularisation', 'row_bound', 'weight_norm', 'tune', 'insecure_seed', 'non_private',
           'curator', 'use')


def _documented(answer):
    def decorate(estimator):
        declared = DECLARED.format(answer=answer, pure='; `delta=0` asks for pure epsilon')
        estimator.__doc__ = f'{estimator.__doc__.rstrip()}\n{declared}{_SETTINGS}'
        return estimator
    return decorate


_CLASSES = CLASSES.format(rest=""" A label of
        another class is refused before the charge.""")


class _LinearModel(PrivateModel):
    """What the linear models share."""

    def _settings(self, declared):
        settings = {name: getattr(self, name) for name in _PASSED}
        settings |= {name: self._path(name) for name in ('ledger', 'out')}
        return {**declared, **settings, 'model': self._model}

    def fit(self: Self, X: Any, y: Any, public_test: Optional[Tuple[Any, Any]] = None) -> Self:
        """Fits the model: one release, charged to the ledger before the noise is drawn.

        `public_test` is a pair of records and labels that are public, for `tune`.
        """
        self._refuse(y, public=self.non_private)
        if (public_test is None) != (self.tune is None):
            raise Error('tune and public_test belong together: the best of several fits is taken '
                        'on public records; give both or none.')
        X = _table.as_table(X)
        y = _table.as_column(y)
        validate_data(self, X, skip_check_array=True)
        declared = self._declare(X)
        settings = {**self._settings(declared), 'brings_test': public_test is not None}
        prepared = call(extension.TableFit, settings,
                         'a table' if self.name is None else self.name)
        if prepared.takes_number_as_public:
            self._warn_of_number()
        train = _table.held_columns(X, declared['columns'], y)
        if len(y) == 0 and not self._counts_none(settings):
            raise Error('X has no rows; give the records.')
        test = []
        if public_test is not None:
            public_X, public_y = public_test
            test = _table.held_columns(_table.as_table(public_X), declared['columns'],
                                       _table.as_column(public_y))
        self._keep(declared, call(prepared.run, train, test))
        return self

    @staticmethod
    def _counts_none(settings):
        """Under add-remove nobody is told that there are no records."""
        return settings['records'] is not None and settings['adjacency'] != 'replace-one'

    def _keep(self, declared, outcome):
        self._declared = declared
        self.coefficients_ = outcome['coefficients']
        scores = len({one['score'] for one in self.coefficients_})
        values = np.array([one['value'] for one in self.coefficients_]).reshape(scores, -1)
        self._take_coefficients(values[:, :-1].copy(), values[:, -1].copy())
        self.epsilon_interval_ = outcome['epsilon']
        self.epsilon_ = outcome['epsilon'][1]
        self.delta_ = outcome['delta']
        self.event_ = outcome['event']
        self.statement_ = outcome['statement']
        self.guarantee_ = outcome['guarantee']
        self.method_ = outcome['method']
        self.regularisation_ = outcome['regularisation']
        self.adjacency_ = outcome['adjacency']
        self.is_private_ = outcome['is_private']
        if not self.is_private_:
            warnings.warn(self.guarantee_, stacklevel=3)

    def _scores(self, X):
        features = self._features(X).numpy().astype(np.float64)
        return features @ np.atleast_2d(self.coef_).T + self.intercept_


class _LinearClassifier(PrivateClassifier, _LinearModel):
    def __init__(self, *, epsilon: Optional[float] = None, delta: Optional[float] = None,
                 bounds: Any = None, categories: Optional[Mapping[Any, Any]] = None,
                 classes: Optional[Sequence[Any]] = None, schema: Optional[Path] = None,
                 missing: Optional[Sequence[str]] = None, records: Optional[int] = None,
                 adjacency: Optional[str] = None, ledger: Optional[Path] = None,
                 whole: bool = False, method: Optional[str] = None,
                 method_options: Optional[Mapping[str, Any]] = None,
                 regularisation: Optional[float] = None, row_bound: Optional[float] = None,
                 weight_norm: Optional[float] = None, tune: Optional[float] = None,
                 out: Optional[Path] = None, name: Optional[str] = None,
                 curator: Optional[str] = None, use: Optional[str] = None,
                 insecure_seed: Optional[int] = None, non_private: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.schema = schema
        self.missing = missing
        self.records = records
        self.adjacency = adjacency
        self.ledger = ledger
        self.whole = whole
        self.method = method
        self.method_options = method_options
        self.regularisation = regularisation
        self.row_bound = row_bound
        self.weight_norm = weight_norm
        self.tune = tune
        self.out = out
        self.name = name
        self.curator = curator
        self.use = use
        self.insecure_seed = insecure_seed
        self.non_private = non_private

    def _take_coefficients(self, weights, intercepts):
        self.classes_ = self._classes
        self.coef_ = weights
        self.intercept_ = intercepts

    def decision_function(self, X: Any) -> np.ndarray:
        """A score for each class; with two classes one score, of the second."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

@_documented(_CLASSES)
class LogisticRegression(_LinearClassifier):
    """Private logistic regression; softmax where there are more than two classes.

    >>> import numpy as np
    >>> X, y = np.arange(4000).reshape(-1, 1) % 10, np.arange(4000) % 10 > 4
    >>> LogisticRegression(epsilon=1, delta=1e-6, bounds=(0, 9), classes=[False, True],
    ...                    records=4000).fit(X, y).predict([[0], [9]])
    array([False,  True])
    """

    _model = 'logistic'

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of the classes."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return softmax(scores, axis=1)
        return np.stack([expit(-scores), expit(scores)], axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Their logarithms."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return log_softmax(scores, axis=1)


@_documented(_CLASSES)
class LinearSVC(_LinearClassifier):
    """A private support vector machine (Huber's loss) of two classes."""

    _model = 'svm'

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@_documented(TARGET)
class LinearRegression(PrivateRegressor, _LinearModel):
    """Private least squares. Coefficients are in the units of y."""

    _model = 'least-squares'

    def __init__(self, *, epsilon: Optional[float] = None, delta: Optional[float] = None,
                 bounds: Any = None, categories: Optional[Mapping[Any, Any]] = None,
                 target: Optional[Tuple[float, float]] = None, schema: Optional[Path] = None,
                 missing: Optional[Sequence[str]] = None, records: Optional[int] = None,
                 adjacency: Optional[str] = None, ledger: Optional[Path] = None,
                 whole: bool = False, method: Optional[str] = None,
                 method_options: Optional[Mapping[str, Any]] = None,
                 regularisation: Optional[float] = None, row_bound: Optional[float] = None,
                 weight_norm: Optional[float] = None, tune: Optional[float] = None,
                 out: Optional[Path] = None, name: Optional[str] = None,
                 curator: Optional[str] = None, use: Optional[str] = None,
                 insecure_seed: Optional[int] = None, non_private: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.target = target
        self.schema = schema
        self.missing = missing
        self.records = records
        self.adjacency = adjacency
        self.ledger = ledger
        self.whole = whole
        self.method = method
        self.method_options = method_options
        self.regularisation = regularisation
        self.row_bound = row_bound
        self.weight_norm = weight_norm
        self.tune = tune
        self.out = out
        self.name = name
        self.curator = curator
        self.use = use
        self.insecure_seed = insecure_seed
        self.non_private = non_private

    def _take_coefficients(self, weights, intercepts):
        self.coef_ = weights[0]
        self.intercept_ = float(intercepts[0])

    def predict(self, X: Any) -> np.ndarray:
        """The predicted numbers, in the units of y."""
        return self._scores(X)[:, 0]
