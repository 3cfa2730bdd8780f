"""What may not be done with a private fit: searches and cross-validations, and steps before it that
learn from the records."""
import sys

from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from sordino._error import Error

# Modules of scikit-learn that pass the data on and fit an estimator once.
_PASSING = ('sklearn.base', 'sklearn.pipeline', 'sklearn.utils')

_INSTEAD = (
    'leave the settings to theory (method "auto", which looks at no data), choose them on public '
    'data with non_private=True, or give tune= and a public test set: the best of several fits is '
    'then one charge, as with "sordino fit --tune"')


def _callers():
    frame = sys._getframe(2)
    while frame is not None:
        yield frame, frame.f_globals.get('__name__') or ''
        frame = frame.f_back


def _is_in(module, packages):
    return any(module == package or module.startswith(package + '.') for package in packages)


def refuse_repeated_fits():
    """Throws where a search, a cross-validation or an ensemble of scikit-learn is the caller."""
    for _, module in _callers():
        if _is_in(module, ('sklearn',)) and not _is_in(module, _PASSING):
            raise Error(
                f'{module} fits a model more than once on the private records or computes scores '
                f'from them, and every try is a release that it does not pay for; {_INSTEAD}.')


def _learns(step):
    if step is None or step == 'passthrough' or isinstance(step, FrozenEstimator):
        return False
    return get_tags(step).requires_fit


def refuse_learning_steps(estimator):
    """Throws where a pipeline fits a step before `estimator` to the private records."""
    for frame, module in _callers():
        pipeline = frame.f_locals.get('self') if _is_in(module, ('sklearn.pipeline',)) else None
        for name, step in getattr(pipeline, 'steps', None) or ():
            if step is not estimator and hasattr(step, 'transform') and _learns(step):
                raise Error(
                    f'the step {name!r} of the pipeline learns from the private records, and '
                    'nothing pays for it; use steps that learn nothing, such as '
                    'FunctionTransformer or Normalizer, fit the step to public data and freeze it '
                    '(sklearn.frozen.FrozenEstimator), or leave it out: numbers are scaled by '
                    'their bounds, and categories are encoded.')
