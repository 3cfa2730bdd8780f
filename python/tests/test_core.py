"""sordino without torch: what it loads, events, accounting, calibration and audits."""
import copy
import doctest
import itertools
import pathlib
import pickle
import subprocess
import sys
import threading
import time

import pytest

import core_support
import sordino
from sordino import Event


def _run(code):
    return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)


def test_import_loads_neither_torch_nor_numpy_nor_pandas():
    code = ('import sys, sordino; '
            'print(*[name for name in ("torch", "numpy", "pandas", "polars") if name in sys.modules])')
    assert _run(code).stdout.strip() == ''


def test_import_takes_a_few_hundredths_of_a_second_of_a_processor():
    # Of the processor, because other work may run beside it: 60 ms on an idle machine, and three
    # times as much here. The least of five, because the first one reads the disk.
    code = 'import time; a = time.process_time(); import sordino; print(time.process_time() - a)'
    assert min(float(_run(code).stdout) for _ in range(5)) < 0.18


def test_docstrings_of_the_extension_are_true():
    test = doctest.DocTestParser().get_doctest(Event.__doc__, {'Event': Event}, 'Event', None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize('text', [
    'add-remove: 10000*poisson(0.01, gaussian(4))', 'replace-one: compose(laplace(2), 3*pure(0.5))',
    'zero-out: none'])
def test_an_event_comes_back_from_its_text_its_pickle_and_its_copy(text):
    event = Event(text)
    assert str(event) == text
    assert repr(event) == f"Event('{text}')"
    for same in (Event.parse(text), pickle.loads(pickle.dumps(event)), copy.deepcopy(event)):
        assert same == event and hash(same) == hash(event)


def test_events_compose_as_their_text_says():
    step = Event.poisson(0.01, Event.gaussian(4))
    assert str(2 * step * 3) == 'add-remove: 6*poisson(0.01, gaussian(4))'
    assert Event.compose([step, step]) == 2 * step
    assert Event.compose([step, Event.pure(1)]) != 2 * step
    assert (3 * step).releases == 3
    assert step != 'add-remove: poisson(0.01, gaussian(4))'
    with pytest.raises(sordino.Error, match='adjacency'):
        Event.compose([step, Event.pure(1, 'replace-one')])


@pytest.mark.parametrize('given, expected, tolerance',
                         [*core_support.vectors('gaussian exact', 'epsilon'),
                          *itertools.islice(
                              core_support.vectors('poisson_gaussian PLD', 'epsilon'), 3)])
def test_the_interval_holds_reference_values(given, expected, tolerance):
    spent = sordino.account(rate=given.get('q'), noise=given['sigma'], steps=given.get('T', 1),
                            delta=given['delta'])
    assert spent.lower <= expected * (1 + tolerance)
    assert spent.upper >= expected * (1 - tolerance)
    assert spent.upper - spent.lower <= 1e-3 * expected


def test_calibrated_noise_is_the_reference_value():
    [(given, expected, tolerance), *_] = core_support.vectors('poisson_gaussian calibrate', 'sigma')
    least = sordino.calibrate(epsilon=given['eps'], delta=given['delta'], rate=given['q'],
                              steps=given['T'])
    assert least.noise == pytest.approx(expected, rel=max(tolerance, 2e-5))
    assert least.epsilon.upper <= given['eps']
    assert sordino.account(event=least.event, delta=given['delta']).upper <= given['eps']


@pytest.mark.parametrize('question', [
    {'noise': 4, 'rate': 0.01, 'steps': 10000, 'delta': 1e-5},
    {'noise': 2, 'mechanism': 'laplace', 'steps': 3, 'delta': 0},
    {'noise': 3, 'rate': 0.1, 'sampling': 'fixed', 'adjacency': 'replace-one', 'delta': 1e-6},
    {'noise': 3, 'mechanism': 'discrete-gaussian', 'sensitivity': 2, 'delta': 1e-6},
    {'noise': 1, 'rate': 0.05, 'steps': 20, 'epsilon': 2}])
def test_account_answers_as_the_command_does(question):
    flags = [word for name, value in question.items() for word in (f'--{name}', value)]
    theirs = core_support.run_program('account', *flags)
    ours = sordino.account(**question)
    asked = 'delta' if 'epsilon' in question else 'epsilon'
    assert (ours.lower, ours.upper) == (theirs[asked]['lower'], theirs[asked]['upper'])
    assert str(ours.event) == theirs['event']
    assert ours.decided_by == theirs['decided_by']
    assert ours.unit == theirs.get('unit', '')
    assert {method.name for method in ours.methods} == set(theirs['methods'])


@pytest.mark.parametrize('question, key', [
    ({'rate': 0.01, 'steps': 1000}, 'noise_multiplier'), ({'rate': 0.01, 'noise': 1}, 'steps'),
    ({'noise': 1, 'steps': 100}, 'sampling_rate'),
    ({'mechanism': 'laplace', 'steps': 2}, 'noise_multiplier')])
def test_calibrate_answers_as_the_command_does(question, key):
    flags = [word for name, value in question.items() for word in (f'--{name}', value)]
    theirs = core_support.run_program('calibrate', '--epsilon', 1, '--delta', 1e-5, *flags)
    ours = sordino.calibrate(epsilon=1, delta=1e-5, **question)
    assert ours.value == theirs[key]
    assert str(ours.event) == theirs['event']


def test_another_delta_and_another_epsilon_are_asked_of_the_answer():
    spent = sordino.account(noise=2, delta=1e-5)
    assert spent.epsilon(1e-6).lower > spent.upper
    assert spent.delta(spent.upper).lower == pytest.approx(1e-5, rel=1e-3)
    assert sordino.account(event=str(spent.event), steps=2, delta=1e-5).upper == sordino.account(
        noise=2, steps=2, delta=1e-5).upper


@pytest.mark.parametrize('question, sentence', [
    ({'noise': 1}, 'give delta to learn epsilon, or epsilon to learn delta.'),
    ({'noise': 1, 'delta': 1e-5, 'epsilon': 1}, 'leave out the one'),
    ({'delta': 1e-5}, 'noise is missing'),
    ({'noise': -1, 'delta': 1e-5}, 'noise multiplier is -1; it must be greater than 0'),
    ({'noise': float('nan'), 'delta': 1e-5}, 'noise is nan, which is not a finite number'),
    ({'noise': 1, 'steps': 1.5, 'delta': 1e-5}, 'not a whole number'),
    ({'noise': 1, 'rate': 0.1, 'sampling': 'posson', 'delta': 1e-5}, "did you mean 'poisson'"),
    ({'noise': 1, 'sampling': 'poisson', 'delta': 1e-5}, "sampling 'poisson' needs a rate"),
    ({'event': 'add-remove: gaussian(1)', 'noise': 1, 'delta': 1e-5}, 'only steps'),
    ({'event': 'gaussian(1)', 'delta': 1e-5}, 'wrong at character 1')])
def test_a_question_that_makes_no_sense_is_an_error_in_one_sentence(question, sentence):
    with pytest.raises(sordino.Error) as refused:
        sordino.account(**question)
    assert sentence in str(refused.value)
    assert '--' not in str(refused.value) and '\n' not in str(refused.value)


def test_a_budget_that_nothing_meets_is_refused_without_flags():
    with pytest.raises(sordino.Error, match='give a delta above 0, or use Laplace noise.'):
        sordino.calibrate(epsilon=1, delta=0)
    with pytest.raises(sordino.Error, match='nothing is left to solve for'):
        sordino.calibrate(epsilon=1, delta=1e-5, noise=1, rate=0.1, steps=1)


def test_an_answer_that_was_not_asked_for_is_not_made_up():
    least = sordino.calibrate(epsilon=1, delta=1e-5, rate=0.1, steps=3)
    with pytest.raises(sordino.Error, match='read noise'):
        print(least.steps)


def test_other_threads_run_while_an_accountant_computes():
    turns = []
    done = threading.Event()

    def count():
        while not done.is_set():
            turns.append(None)
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.monotonic()
    sordino.calibrate(epsilon=1, delta=1e-5, rate=0.01, steps=3000, sampling='fixed')
    took = time.monotonic() - start
    seen = len(turns)
    done.set()
    thread.join()
    # With the lock held there would be one turn or two.
    assert took < 0.05 or seen > 5


@pytest.mark.parametrize('problem', [
    {'kappa': 10, 'alpha': 1e-4}, {'kappa': 10, 'alpha': 1e-4, 'steps': 20},
    {'kappa': 10, 'alpha': 1e-6, 'momentum': 0.5},
    {'records': 10000, 'dimension': 10, 'lipschitz': 1, 'smoothness': 1, 'strong_convexity': 0.1,
     'initial_gap': 1, 'epsilon': 1, 'delta': 1e-5}])
def test_plan_answers_as_the_command_does(problem):
    flags = [word for name, value in problem.items()
             for word in (f"--{name.replace('_', '-')}", value)]
    theirs = core_support.run_program('plan', *flags)
    ours = sordino.plan(**problem)
    assert (ours.kappa, ours.alpha) == (theirs['kappa'], theirs['alpha'])
    best = theirs['momentum'] if 'momentum' in problem else theirs
    assert ours.dynamic == (best['dynamic']['horizon'], best['dynamic']['bound'])
    assert ours.noise == theirs['schedule']['noise'] and len(ours.noise) == ours.steps
    assert str(ours.steps) in ours._repr_html_()


@pytest.mark.parametrize('problem, sentence', [
    ({}, 'kappa is missing'), ({'kappa': 10, 'alpha': 1}, 'allows no step'),
    ({'kappa': 10, 'alpha': 1e-4, 'steps': 0}, 'from 1 to 1000000'),
    ({'kappa': 10, 'alpha': 1e-4, 'step_size': 1}, 'a step size is for momentum'),
    ({'kappa': 10, 'alpha': 1e-4, 'epsilon': 1}, 'delta is missing'),
    ({'records': 10}, 'there is no budget')])
def test_a_plan_without_a_problem_is_refused(problem, sentence):
    with pytest.raises(sordino.Error, match=sentence):
        sordino.plan(**problem)


@pytest.mark.parametrize('problem', [
    {'steps': 128, 'participations': 4, 'strategy': 'banded:32'},
    {'steps': 100, 'separation': 10, 'strategy': 'bifr:2', 'objective': 'max-error'},
    {'steps': 64, 'strategy': 'tree'}, {'steps': 40, 'separation': 10},
    {'steps': 12, 'rate': 0.5, 'epsilon': 4, 'delta': 1e-6}])
def test_plan_noise_answers_as_the_command_does(problem):
    flags = [word for name, value in problem.items() for word in (f'--{name}', value)]
    theirs = core_support.run_program('plan', 'noise', *flags)
    ours = sordino.plan_noise(**problem)
    for name in ('strategy', 'steps', 'separation', 'participations', 'rmse', 'max_error',
                 'sensitivity', 'independent_rmse'):
        assert getattr(ours, name) == theirs[name], name
    assert ours.coefficients == (theirs['coefficients'] or [])
    assert ours.strategy in repr(ours)
    if 'epsilon' not in problem:
        assert ours.best is None and ours.fixed_order is None and not ours.bands
        return
    budget = theirs['budget']
    assert ours.sampled_strategy == budget['strategy']
    for mine, other in [(ours.best, budget['best']), (ours.independent, budget['independent']),
                        *zip(ours.bands, budget['bands'])]:
        assert (mine.bands, mine.noise, mine.rmse, mine.ratio) == tuple(
            other[name] for name in ('bands', 'noise', 'rmse', 'ratio'))
        assert mine.epsilon.upper == other['epsilon']['upper'] <= 4
    assert len(ours.bands) == len(budget['bands'])
    assert ours.fixed_order._asdict() == budget['fixed_order']
    assert [cell._asdict() for cell in ours.table] == budget['table']


@pytest.mark.parametrize('problem, sentence', [
    ({'steps': 0}, 'steps'), ({'steps': 10.5}, 'steps'),
    ({'steps': 10, 'strategy': 'bandet:2'}, 'banded'),
    ({'steps': 10, 'objective': 'mean'}, 'objective'),
    ({'steps': 10, 'epsilon': 1, 'delta': 1e-6}, 'rate is missing'),
    ({'steps': 10, 'epsilon': 0, 'delta': 1e-6, 'rate': 0.1}, 'epsilon')])
def test_a_plan_of_noise_that_makes_no_sense_is_refused(problem, sentence):
    with pytest.raises(sordino.Error, match=sentence):
        sordino.plan_noise(**problem)


def test_right_guesses_prove_what_the_command_says():
    flags = ('audit', 'bound', '--canaries', 1000, '--guesses', 100, '--correct', 95, '--delta',
             1e-5)
    given = {'canaries': 1000, 'guesses': 100, 'correct': 95, 'delta': 1e-5}
    assert sordino.audit.bound(**given).epsilon == core_support.run_program(*flags)['epsilon_lower']
    gaussian = sordino.audit.bound(**given, method='one-run-fdp', confidence=0.99)
    theirs = core_support.run_program(*flags, '--method', 'one-run-fdp', '--confidence', 0.99)
    assert (gaussian.epsilon, gaussian.mu) == (theirs['epsilon_lower'], theirs['mu_lower'])
    assert sordino.audit.bound(**given, epsilon=1).p_value < 0.05
    with pytest.raises(sordino.Error, match='correct|guesses'):
        sordino.audit.bound(canaries=10, guesses=5, correct=6)
    with pytest.raises(sordino.Error, match='confidence'):
        sordino.audit.bound(**given, confidence=1)


def test_scores_prove_what_the_command_says(tmp_path):
    members = [0.01 * i + (0.9 if i % 3 else 0.0) for i in range(400)]
    others = [0.01 * i for i in range(400)]
    files = []
    for name, scores in (('members', members), ('others', others)):
        files.append(tmp_path / f'{name}.csv')
        files[-1].write_text(''.join(f'{score!r}\n' for score in scores))
    theirs = core_support.run_program('audit', 'scores', *files, '--delta', 1e-5)
    ours = sordino.audit.scores(members, others, delta=1e-5, rates=[0.1, 0.01])
    assert ours.epsilon == theirs['epsilon_lower']['clopper-pearson']
    assert ours.mu == theirs['mu_lower']
    assert ours.auc.value == theirs['auc']['value']
    assert ours.tpr[0.1].value == theirs['tpr']['0.1']['value']
    with pytest.raises(sordino.Error):
        sordino.audit.scores([], others)


@pytest.mark.parametrize('shown', [
    lambda: sordino.account(noise=2, delta=1e-5), lambda: sordino.account(noise=2, delta=1e-5).interval,
    lambda: sordino.calibrate(epsilon=1, delta=1e-5),
    lambda: sordino.plan(kappa=10, alpha=1e-4),
    lambda: sordino.plan_noise(steps=20),
    lambda: sordino.plan_noise(steps=12, rate=0.5, epsilon=4, delta=1e-6),
    lambda: sordino.audit.bound(canaries=100, guesses=50, correct=45, epsilon=1),
    lambda: sordino.audit.scores(range(10, 20), range(10), rates=[0.1])])
def test_answers_are_shown_in_a_notebook(shown):
    html = shown()._repr_html_()
    assert html.count('<tr>') == html.count('</tr>')
    assert any(digit in html for digit in '123456789')


def test_what_is_shown_of_an_upper_end_is_never_below_it():
    interval = sordino.account(noise=4, rate=0.01, steps=10000, delta=1e-5).interval
    low, high = str(interval).strip('[]').split(', ')
    assert float(low) <= interval.lower and float(high) >= interval.upper


def test_the_example_script_runs_and_is_typed(tmp_path):
    pytest.importorskip('pandas')
    script = core_support.ROOT / 'examples/python/statistics.py'
    result = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True,
                            text=True, check=True)
    assert 'nothing was released' in result.stdout
    pytest.importorskip('mypy')
    package = pathlib.Path(sordino.__file__).parent
    checked = subprocess.run(
        [sys.executable, '-m', 'mypy', '--strict', '--cache-dir', str(tmp_path / 'cache'),
         '--ignore-missing-imports', '--disable-error-code', 'import-untyped', str(script)],
        capture_output=True, text=True, check=False, cwd=package.parent)
    assert checked.returncode == 0, checked.stdout
