"""The networks of sordino.sklearn: trained by sordino.torch.Trainer, declared as the linear models."""
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import sordino
from sordino.sklearn import MLPClassifier, MLPRegressor

ROWS = 1500


def ring(seed=1):
    """Points in a ring are another class than those inside: no linear model tells them apart."""
    draw = np.random.default_rng(seed)
    points = draw.uniform(-1, 1, (ROWS, 2))
    return (pd.DataFrame(points, columns=['east', 'north']),
            np.where((points ** 2).sum(axis=1) < 0.55, 'in', 'out'))


def network(**more):
    return MLPClassifier((32,), **{
        'epsilon': 8, 'delta': 1e-5, 'bounds': (-1, 1), 'classes': ['in', 'out'], 'records': ROWS,
        'epochs': 15, 'batch_size': 150, 'clip': 1.0, 'learning_rate': 0.5, **more})


def test_a_network_learns_what_no_linear_model_does_and_says_what_it_has_spent():
    X, y = ring()
    model = network().fit(X, y)
    test, truth = ring(seed=2)
    assert model.score(test, truth) > 0.8
    assert 0 < model.epsilon_ <= 8 and model.delta_ == 1e-5
    assert 'Privacy statement' in model.statement_
    assert sordino.Event(model.event_)
    assert 'differentially private' in model._repr_html_()
    assert [each.shape for each in model.coefs_] == [(2, 32), (32, 2)]
    assert model.feature_names_in_.tolist() == ['east', 'north'] and model.n_iter_ == 150
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(test), model.predict(test))


def test_numbers_are_predicted_in_their_units():
    X, _ = ring()
    y = 500 + 400 * X['east'].abs().to_numpy()
    model = MLPRegressor((32,), activation='tanh', epsilon=8, delta=1e-5, bounds=(-1, 1),
                         target=(500, 900), records=ROWS, epochs=30, batch_size=150, clip=1.0,
                         learning_rate=0.2, insecure_seed=1)
    with pytest.warns(UserWarning, match='NOT PRIVATE'):
        model.fit(X, y)
    assert model.score(X, y) > 0.5


def test_a_typed_seed_gives_the_same_bits_and_is_not_private():
    X, y = ring()
    fits = []
    for _ in range(2):
        with pytest.warns(UserWarning, match='NOT PRIVATE'):
            fits.append(network(steps=5, epochs=None, insecure_seed=3).fit(X, y))
    assert all(np.array_equal(a, b) for a, b in zip(fits[0].coefs_, fits[1].coefs_))
    assert not fits[0].is_private_


@pytest.mark.parametrize('parameters, sentence', [
    ({'epsilon': None}, 'no budget'),
    ({'delta': None}, 'there is no delta'),
    ({'bounds': None}, 'no column is declared'),
    ({'classes': None}, 'classes are not declared'),
    ({'activation': 'rely'}, "'rely', which is not known"),
    ({'hidden_layer_sizes': (0,)}, 'hidden_layer_sizes'),
    ({'learning_rate': 'fast'}, 'learning_rate'),
    ({'train_settings': {'sampling': 'posson'}}, "did you mean 'poisson'"),
    ({'train_settings': {'epsilon': 1}}, 'parameter of its own'),
    ({'train_settings': {'colour': 1}}, 'colour'),
])
def test_a_mistake_is_refused_in_one_sentence(parameters, sentence):
    X, y = ring()
    with pytest.raises(sordino.Error, match=sentence):
        network().set_params(**parameters).fit(X, y)


def test_searches_learning_steps_and_labels_that_are_not_declared_are_refused():
    X, y = ring()
    with pytest.raises(sordino.Error, match='every try is a release'):
        GridSearchCV(network(), {'clip': [1, 2]}).fit(X, y)
    with pytest.raises(sordino.Error, match='learns from the private records'):
        make_pipeline(StandardScaler(), network()).fit(X, y)
    with pytest.raises(sordino.Error, match='not declared') as refusal:
        network().fit(X, np.where(y == 'in', 'patient-4711', y))
    assert 'patient' not in str(refusal.value)


# Of the interface. A fit takes seconds, most of it accounting; the linear models share the rest.
CHECKS = ['check_no_attributes_set_in_init', 'check_parameters_default_constructible',
          'check_set_params', 'check_get_params_invariance', 'check_estimators_unfitted',
          'check_dont_overwrite_parameters', 'check_requires_y_none', 'check_complex_data',
          'check_estimator_sparse_tag', 'check_estimators_nan_inf', 'check_n_features_in']


@pytest.mark.parametrize('name', CHECKS)
def test_scikit_learn_finds_nothing_about_the_interface(name):
    model = MLPClassifier((4,), epsilon=1, delta=1e-5, bounds=(-3, 3), classes=list(range(10)),
                          records=300, steps=2, batch_size=10, insecure_seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        check, = [check for _, check in estimator_checks_generator(model)
                  if getattr(check, 'func', check).__name__ == name]
        check(clone(model))


def test_a_clone_has_the_parameters():
    assert clone(network()).get_params() == network().get_params()
