"""scikit-learn's own checks of estimators, with the reason of each that is expected to fail."""
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from sordino.sklearn import LinearRegression, LinearSVC, LogisticRegression

# A large budget, so that what is checked is the interface. The data of the checks lie about 0.
PRIVATE = {'epsilon': 30, 'delta': 1e-3, 'bounds': (-3, 3), 'adjacency': 'replace-one'}
SEEDED = {**PRIVATE, 'insecure_seed': 1}
CLASSES = [0, 1]
MODELS = [LogisticRegression(**SEEDED, classes=list(range(10))), LinearSVC(**SEEDED, classes=CLASSES),
          LinearRegression(**SEEDED, target=(-3, 3)), LinearSVC(**PRIVATE, classes=CLASSES)]

NOISE = 'two fits differ by their noise, so they are not compared'
DECLARED = 'classes are declared and not read off y, and the check fits one model to several sets'
REFUSED = ('a label that is not declared and a target that is no number are refused, in other words '
           'than the check wants')
FEW = 'the check predicts every label of a fit to ten records, and the noise may change one'
CELL = ('a cell that is no number is refused by a ValueError in one sentence, and the check wants '
        'a TypeError of numpy, whose sentence may hold the value')
EXPECTED = {
    'check_dtype_object': CELL,
    'check_supervised_y_no_nan': REFUSED,
}
OF_CLASSIFIERS = {
    'check_classifiers_classes': DECLARED,
    'check_classifiers_regression_target': REFUSED,
}
OF_TWO_CLASSES = dict.fromkeys(['check_classifier_not_supporting_multiclass',
                                'check_estimators_dtypes', 'check_classifier_data_not_an_array',
                                'check_fit2d_1feature'], DECLARED)
OF_MANY_CLASSES = dict.fromkeys(['check_classifiers_train', 'check_decision_proba_consistency'],
                                DECLARED)
OF_NOISE = dict.fromkeys(['check_classifier_data_not_an_array', 'check_supervised_y_2d',
                          'check_fit_idempotent'], NOISE)
OF_NOISE['check_classifiers_one_label'] = FEW


def expected_failures(model):
    expected = dict(EXPECTED)
    if not isinstance(model, LinearRegression):
        expected |= OF_CLASSIFIERS
    if isinstance(model, LinearSVC):
        expected |= OF_TWO_CLASSES
    if isinstance(model, LogisticRegression):
        expected |= OF_MANY_CLASSES
    if model.insecure_seed is None:
        expected |= OF_NOISE
    return expected


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        yield


@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_scikit_learn_finds_nothing_but_what_is_expected(estimator, check):
    check(estimator)


def test_blobs_of_declared_classes_are_told_apart():
    """What the check that trains classifiers asks for, with the classes declared."""
    X, y = make_blobs(n_samples=300, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for classes in ([0, 1], [0, 1, 2]):
        rows = np.isin(y, classes)
        model = LogisticRegression(**PRIVATE, classes=classes).fit(X[rows], y[rows])
        assert model.score(X[rows], y[rows]) > 0.83
