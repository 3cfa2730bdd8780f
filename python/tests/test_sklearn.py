"""sordino.sklearn: the same fits as `sordino fit`, refusals before the charge, and the interface."""
import os
import pathlib
import pickle
import subprocess
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression as OrdinaryLeastSquares
from sklearn.linear_model import LogisticRegression as OrdinaryLogistic
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import sordino
from sordino.sklearn import LinearRegression, LinearSVC, LogisticRegression

PROGRAM = pathlib.Path(os.environ.get(
    'SORDINO_PROGRAM', pathlib.Path(sordino.__file__).parents[2] / 'bin' / 'sordino'))
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason='needs the program sordino')

BUDGET = {'epsilon': 1, 'delta': 1e-6}
TOWNS = ['Bern', 'Basel', 'Chur']
ROWS = 600


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True)


def visits(rows=ROWS, seed=1):
    """Age, town, cost, and whether somebody is sick."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 100, rows)
    town = draw.choice(TOWNS, rows)
    chance = 1 / (1 + np.exp(-(age - 50) / 10 - (town == 'Chur')))
    sick = np.where(draw.random(rows) < chance, 'yes', 'no')
    cost = np.round(20.0 * age + 300 * (town == 'Basel') + draw.normal(0, 50, rows), 2)
    return pd.DataFrame({'age': age, 'town': town, 'sick': sick, 'cost': cost})


def declared(**more):
    return {**BUDGET, 'bounds': {'age': (0, 100)}, 'categories': {'town': TOWNS}, 'records': ROWS,
            **more}


def sick(**more):
    return LogisticRegression(**declared(classes=['no', 'yes'], **more))


def seeded(**more):
    return sick(insecure_seed=7, **more)


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        return model.fit(X, y, **more)


FLAGS = ['--columns', 'age:numeric:0:100', 'town:categorical:Bern|Basel|Chur']


@needs_program
@pytest.mark.parametrize('model, flags', [
    (seeded(), ['sick:label:no|yes']),
    (seeded(method='objective'), ['sick:label:no|yes', '--method', 'objective']),
    (seeded(method='gradient', method_options={'clip': 0.5}),
     ['sick:label:no|yes', '--method', 'gradient', '--clip', '0.5']),
    (LinearSVC(**declared(classes=['no', 'yes'], insecure_seed=7)),
     ['sick:label:no|yes', '--model', 'svm']),
    (LinearRegression(**declared(target=(0, 3000), insecure_seed=7)),
     ['cost:target:0:3000', '--model', 'least-squares']),
    (LogisticRegression(**declared(classes=['Basel', 'Bern', 'Chur'], insecure_seed=7) |
                        {'categories': None}),
     ['town:label:Basel|Bern|Chur']),
])
def test_coefficients_and_statement_of_a_typed_seed_are_those_of_the_program(model, flags,
                                                                             tmp_path):
    data = visits()
    data.to_csv(tmp_path / 'visits.csv', index=False)
    columns = FLAGS[:2] if flags[0].startswith('town') else FLAGS
    run('fit', tmp_path / 'visits.csv', *columns, *flags, '--epsilon', 1, '--delta', 1e-6,
        '--records', ROWS, '--insecure-seed', 7, '--out', tmp_path / 'run')
    model = clone(model).set_params(name='visits.csv')
    fitted(model, data[['age', 'town']], data[flags[0].split(':')[0]])
    theirs = pd.read_csv(tmp_path / 'run/coefficients.csv', dtype=str)
    assert [one['feature'] for one in model.coefficients_] == theirs['feature'].tolist()
    values = theirs['coefficient'].map(float).tolist()
    assert [one['value'] for one in model.coefficients_] == values
    assert model.statement_ == (tmp_path / 'run/statement.txt').read_text()
    assert model.event_ in (tmp_path / 'run/event.txt').read_text()


@needs_program
def test_predictions_are_those_of_the_program_from_the_run_folder(tmp_path):
    data = visits()
    data.to_csv(tmp_path / 'visits.csv', index=False)
    model = sick(out=tmp_path / 'run').fit(data, data['sick'])
    run('predict', '--run', tmp_path / 'run', '--data', tmp_path / 'visits.csv', '--out',
        tmp_path / 'predictions.csv', '--probabilities')
    theirs = pd.read_csv(tmp_path / 'predictions.csv')
    assert (model.predict(data) == theirs['class']).all()
    np.testing.assert_allclose(model.predict_proba(data), theirs[['no', 'yes']], atol=1e-5)


def test_a_run_folder_holds_the_statement_and_is_not_overwritten(tmp_path):
    data = visits()
    model = sick(out=tmp_path / 'run').fit(data, data['sick'])
    assert (tmp_path / 'run/statement.txt').read_text() == model.statement_
    with pytest.raises(sordino.Error, match='never overwritten'):
        model.fit(data, data['sick'])


def test_arrays_and_frames_of_pandas_and_polars_give_the_same_bits():
    data = visits()
    y = data['sick']
    array = data[['age', 'town']].to_numpy()
    by_place = seeded().set_params(bounds={0: (0, 100)}, categories={1: TOWNS})
    same = [fitted(seeded(), data[['age', 'town']], y),
            fitted(seeded(), data[['town', 'cost', 'age']][['age', 'town']], y.tolist()),
            fitted(seeded(), pl.DataFrame(data.to_dict('list')), pl.Series(y.tolist())),
            fitted(seeded(), data.astype({'town': 'category', 'age': 'Float64'}), y),
            fitted(by_place, array, y)]
    for model in same[1:]:
        assert np.array_equal(model.coef_, same[0].coef_)
        assert np.array_equal(model.intercept_, same[0].intercept_)


def test_fits_without_a_seed_differ():
    data = visits()
    fits = [sick().fit(data, data['sick']).coef_ for _ in range(2)]
    assert not np.array_equal(*fits)


def test_a_large_epsilon_is_as_accurate_as_no_privacy():
    data = visits(4000)
    X = pd.get_dummies(data[['age', 'town']]).to_numpy(dtype=float) / [100, 1, 1, 1]
    ordinary = OrdinaryLogistic(C=1e4, max_iter=2000).fit(X, data['sick'])
    private = sick(records=4000).set_params(epsilon=20).fit(data, data['sick'])
    assert private.score(data, data['sick']) >= ordinary.score(X, data['sick']) - 0.01
    least = OrdinaryLeastSquares().fit(X, data['cost'])
    cost = LinearRegression(**declared(target=(-500, 3000), records=4000) | {'epsilon': 20})
    cost.fit(data, data['cost'])
    assert cost.score(data, data['cost']) >= least.score(X, data['cost']) - 0.01
    svm = LinearSVC(**declared(classes=['no', 'yes'], records=4000) | {'epsilon': 20})
    assert svm.fit(data, data['sick']).score(data, data['sick']) >= \
        ordinary.score(X, data['sick']) - 0.01


def test_more_than_two_classes_have_probabilities_that_sum_to_one():
    data = visits()
    model = LogisticRegression(**BUDGET, bounds={'age': (0, 100)}, classes=TOWNS, records=ROWS)
    model.fit(data, data['town'])
    assert model.classes_.tolist() == sorted(TOWNS)
    assert model.coef_.shape == (3, 1)
    np.testing.assert_allclose(model.predict_proba(data).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(data)), model.predict_proba(data))


def test_classes_are_sorted_however_they_were_declared():
    data = visits()
    one, other = seeded(), seeded().set_params(classes=['yes', 'no'])
    assert np.array_equal(fitted(one, data, data['sick']).coef_,
                          fitted(other, data, data['sick']).coef_)
    assert other.classes_.tolist() == ['no', 'yes']


def test_a_fit_says_what_it_has_spent():
    data = visits()
    model = sick().fit(data, data['sick'])
    assert 0 < model.epsilon_interval_[0] <= model.epsilon_ <= 1
    assert model.delta_ == 1e-6
    assert model.is_private_ and model.adjacency_ == 'add-remove'
    assert 'Privacy statement' in model.statement_
    assert sordino.Event(model.event_)
    assert 'differentially private' in model._repr_html_()
    assert model.feature_names_in_.tolist() == list(data.columns)
    assert model.coef_.shape == (1, 4) and model.n_features_in_ == 4
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(data), model.predict(data))


def test_a_typed_seed_and_a_fit_without_noise_are_said_not_to_be_private():
    data = visits()
    for model in (seeded(), sick(non_private=True).set_params(epsilon=None, delta=None)):
        with pytest.warns(UserWarning, match='NOT PRIVATE'):
            model.fit(data, data['sick'])
        assert 'NOT PRIVATE' in model.guarantee_ and not model.is_private_


def test_a_number_of_records_that_was_not_declared_is_said_to_be_public():
    data = visits()
    with pytest.warns(UserWarning, match='taken to be public'):
        model = sick(records=None).fit(data, data['sick'])
    assert model.adjacency_ == 'replace-one'


def test_a_schema_declares_the_same_as_parameters(tmp_path):
    schema = tmp_path / 'visits.toml'
    schema.write_text('''
[[column]]
name = "age"
kind = "numeric"
low = 0
high = 100
[[column]]
name = "town"
kind = "categorical"
values = ["Bern", "Basel", "Chur"]
[[column]]
name = "cost"
kind = "ignored"
[[column]]
name = "sick"
kind = "label"
values = ["no", ["yes", "ill"]]
''')
    data = visits()
    model = LogisticRegression(**BUDGET, schema=schema, records=ROWS, insecure_seed=7)
    fitted(model, data, data['sick'])
    assert np.array_equal(model.coef_, fitted(seeded(), data, data['sick']).coef_)
    spelled = data['sick'].replace('yes', 'ill')
    assert np.array_equal(model.coef_, fitted(clone(model), data, spelled).coef_)
    assert model.score(data, spelled) == model.score(data, data['sick'])
    with pytest.raises(sordino.Error, match='both a schema and bounds'):
        clone(model).set_params(bounds=(0, 1)).fit(data, data['sick'])
    with pytest.raises(sordino.Error, match='both classes and the label'):
        clone(model).set_params(classes=['no', 'yes']).fit(data, data['sick'])
    with pytest.raises(sordino.Error, match='X is an array'):
        clone(model).fit(data.to_numpy(), data['sick'])


def test_a_label_of_a_class_that_is_not_declared_is_refused():
    data = visits()
    for more in (data.assign(sick='perhaps'), pd.concat([data, data[:1].assign(sick='perhaps')])):
        with pytest.raises(sordino.Error, match='not declared') as refusal:
            seeded().fit(more, more['sick'])
        assert 'perhaps' not in str(refusal.value) and '--' not in str(refusal.value)


def test_missing_cells_are_the_middle_of_the_bounds_where_they_are_declared():
    data = visits().astype({'age': float})
    half = data.assign(age=data['age'].where(data['age'] < 90, 50.0))
    none = data.assign(age=data['age'].where(data['age'] < 90, np.nan))
    marked = data.assign(age=data['age'].where(data['age'] < 90, None).astype(object).fillna('?'))
    expected = fitted(seeded(), half, half['sick']).coef_
    assert np.array_equal(fitted(seeded(missing=['']), none, none['sick']).coef_, expected)
    assert np.array_equal(fitted(seeded(missing=['?']), marked, marked['sick']).coef_, expected)
    with pytest.raises(sordino.Error, match='missing'):
        sick().fit(none, none['sick'])


def test_numbers_are_clamped_to_their_bounds():
    data = visits()
    wild = data.assign(age=data['age'].where(data['age'] < 99, 10**6))
    tame = data.assign(age=data['age'].where(data['age'] < 99, 100))
    assert np.array_equal(fitted(seeded(), wild, wild['sick']).coef_,
                          fitted(seeded(), tame, tame['sick']).coef_)


def test_the_best_of_several_fits_is_one_charge():
    data, test = visits(), visits(seed=2)
    model = sick(tune=3).fit(data, data['sick'], public_test=(test, test['sick']))
    assert model.epsilon_ <= 1
    assert 'several fits' in model.statement_
    with pytest.raises(sordino.Error, match='public_test'):
        sick(tune=3).fit(data, data['sick'])
    with pytest.raises(sordino.Error, match='public_test'):
        sick().fit(data, data['sick'], public_test=(test, test['sick']))


REFUSED = [
    ({'epsilon': None}, 'there is no budget'),
    ({'epsilon': -1}, 'epsilon'),
    ({'epsilon': 'one'}, "epsilon is of the type 'str'"),
    ({'delta': None}, 'there is no delta'),
    ({'delta': 2}, 'delta'),
    ({'bounds': None, 'categories': None}, 'no column is declared'),
    ({'bounds': {'age': (5, 5)}}, 'two bounds'),
    ({'bounds': {'age': (0, float('inf'))}}, 'two bounds'),
    ({'bounds': {'aeg': (0, 1)}}, "'aeg'"),
    ({'bounds': {17: (0, 1)}}, 'counted from 0'),
    ({'bounds': [(0, 1)] * 3}, '3 entries'),
    ({'bounds': {'age': 7}}, 'pair of numbers'),
    ({'bounds': {'age': (0, 1), 'town': (0, 1)}}, 'both bounds and categories'),
    ({'categories': {'town': 'Bern'}}, 'not a list of values'),
    ({'categories': {'town': ['Bern']}}, 'two different values'),
    ({'categories': {'town': ['Bern', 'Bern']}}, 'two different values'),
    ({'classes': None}, 'classes are not declared'),
    ({'classes': ['no']}, 'fewer than two classes'),
    ({'method': 'gradent'}, "did you mean 'gradient'"),
    ({'method': 'adassp'}, 'LinearRegression'),
    ({'method_options': {'clip': 1}}, 'without the method'),
    ({'method': 'gradient', 'method_options': {'clap': 1}}, "did you mean 'clip'"),
    ({'regularisation': -1}, 'regularisation'),
    ({'adjacency': 'replace'}, 'replace'),
    ({'adjacency': 'add-remove', 'records': None}, 'records'),
    ({'records': -5}, 'records'),
    ({'records': 1.5}, 'records'),
    ({'schema': 'nowhere.toml', 'bounds': None, 'categories': None}, 'nowhere.toml'),
    ({'ledger': ''}, 'ledger is empty'),
    ({'non_private': True}, 'non_private'),
    ({'use': 'x' * 1000}, 'use'),
]


@pytest.mark.parametrize('parameters, sentence', REFUSED,
                         ids=[next(iter(parameters)) + str(i) for i, (parameters, _) in
                              enumerate(REFUSED)])
def test_a_mistake_is_refused_in_one_sentence(parameters, sentence):
    data = visits()
    with pytest.raises(sordino.Error, match=sentence) as refusal:
        sick().set_params(**parameters).fit(data, data['sick'])
    assert '--' not in str(refusal.value)


@needs_program
def test_a_ledger_is_charged_once_and_not_at_all_where_the_fit_is_refused(tmp_path):
    ledger = tmp_path / 'visits.db'
    run('ledger', 'init', ledger, '--epsilon', 1.5, '--delta', 1e-5)
    before = ledger.read_bytes()
    data = visits()
    for parameters, _ in REFUSED:
        with pytest.raises(sordino.Error):
            sick(**{'ledger': ledger}).set_params(**parameters).fit(data, data['sick'])
    bad = [(data.drop(columns='town'), data['sick']), (data, data['sick'][:-1]),
           (data.assign(town='Genf'), data['sick']), (data.assign(age='old'), data['sick'])]
    for X, y in bad:
        with pytest.raises(sordino.Error):
            sick(ledger=ledger).fit(X, y)
    with pytest.raises(sordino.Error):
        GridSearchCV(sick(ledger=ledger), {'regularisation': [1, 2]}).fit(data, data['sick'])
    with pytest.raises(sordino.Error):
        make_pipeline(StandardScaler(), sick(ledger=ledger)).fit(data[['age']], data['sick'])
    assert ledger.read_bytes() == before
    model = sick(ledger=ledger).fit(data, data['sick'])
    charges = run('ledger', 'show', ledger).stdout
    assert charges.count('fit logistic') == 1
    assert str(ledger) in model.statement_
    after = ledger.read_bytes()
    with pytest.raises(sordino.Error, match='nothing was released'):
        sick(ledger=ledger).fit(data, data['sick'])
    assert ledger.read_bytes() == after


@pytest.mark.parametrize('search', [
    lambda model, X, y: GridSearchCV(model, {'regularisation': [1, 10]}).fit(X, y),
    lambda model, X, y: GridSearchCV(make_pipeline(model),
                                     {'logisticregression__regularisation': [1]}).fit(X, y),
    lambda model, X, y: cross_val_score(model, X, y),
    lambda model, X, y: cross_val_score(model, X, y, n_jobs=2),
    lambda model, X, y: cross_val_predict(model, X, y),
    lambda model, X, y: RFE(model).fit(X, y),
    lambda model, X, y: BaggingClassifier(model).fit(X, y),
    lambda model, X, y: CalibratedClassifierCV(model).fit(X, y),
], ids=['grid', 'grid of a pipeline', 'scores', 'scores of two processes', 'predictions',
        'features', 'bagging', 'calibration'])
def test_whoever_fits_more_than_once_is_refused_with_what_to_use_instead(search):
    data = visits()
    model = LogisticRegression(**BUDGET, bounds=(0, 3000), classes=['no', 'yes'], records=ROWS)
    with pytest.raises(sordino.Error, match='release.*public data.*tune'):
        search(model, data[['age', 'cost']], data['sick'])


def test_an_estimator_that_a_search_does_not_clone_is_refused_at_its_fit():
    """A search could hold an estimator that was cloned before."""
    from sklearn.model_selection import _validation
    data = visits()
    code = 'def fit(model, X, y): return model.fit(X, y)'
    names = {'__name__': _validation.__name__}
    exec(code, names)
    with pytest.raises(sordino.Error, match='release'):
        names['fit'](sick(), data, data['sick'])


def test_a_search_on_public_data_is_allowed():
    data = visits()
    model = sick(non_private=True).set_params(epsilon=None, delta=None)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        search = GridSearchCV(model, {'regularisation': [0.1, 100]}).fit(data, data['sick'])
    assert search.best_score_ > 0.7


def test_a_pipeline_may_have_steps_that_learn_nothing():
    data = visits()
    X = data[['age', 'cost']].to_numpy()
    model = LogisticRegression(**BUDGET, bounds=(0, 1), classes=['no', 'yes'], records=ROWS)
    scale = FunctionTransformer(lambda X: X / [100, 3000])
    pipeline = clone(make_pipeline(scale, model)).fit(X, data['sick'])
    assert pipeline.score(X, data['sick']) > 0.6
    public = StandardScaler().fit(visits(seed=3)[['age', 'cost']].to_numpy())
    make_pipeline(FrozenEstimator(public), clone(model).set_params(bounds=(-3, 3))).fit(
        X, data['sick'])
    with pytest.raises(sordino.Error, match="'standardscaler' of the pipeline learns"):
        make_pipeline(StandardScaler(), model).fit(X, data['sick'])
    with pytest.raises(sordino.Error, match="'standardscaler' of the pipeline learns"):
        make_pipeline(make_pipeline(StandardScaler(), model)).fit(X, data['sick'])


SECRET = 'patient-4711'


class Secretive:
    """A cell that no table has."""

    def __repr__(self):
        return SECRET

    __hash__ = None


@pytest.mark.parametrize('spoil', [
    lambda data: (data.assign(town=[SECRET, *data['town'][1:]]), data['sick']),
    lambda data: (data.assign(age=[SECRET, *data['age'][1:]]), data['sick']),
    lambda data: (data.assign(age=[Secretive(), *data['age'][1:]]), data['sick']),
    lambda data: (data.assign(age=[float('inf'), *data['age'][1:]]), data['sick']),
    lambda data: (data, data['sick'][:-1]),
    lambda data: (data, data[['sick', 'town']]),
    lambda data: (data.to_numpy()[0], data['sick']),
    lambda data: (data[[]], data['sick']),
    lambda data: ([[1, 2], [SECRET]], data['sick']),
], ids=['category', 'number', 'object', 'infinity', 'rows', 'labels', 'dimensions', 'columns',
        'ragged'])
def test_no_message_holds_a_value_or_a_number_of_the_records(spoil):
    X, y = spoil(visits(613))
    with pytest.raises((sordino.Error, TypeError)) as refusal:
        sick().fit(X, y)
    shown = ''.join([str(refusal.value), *getattr(refusal.value, '__notes__', [])])
    assert SECRET not in shown and '613' not in shown and '612' not in shown
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_parameters_are_those_that_a_clone_gets():
    model = sick(method='gradient', method_options={'steps': 10})
    assert clone(model).get_params() == model.get_params()
