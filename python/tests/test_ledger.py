"""sordino.Ledger: charges that are on the disk, refusals that change nothing."""
import multiprocessing
import os

import pytest

import core_support
import sordino
from sordino import Event, Ledger


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv('SORDINO_STATE', str(tmp_path / 'state'))


@pytest.fixture(name='ledger')
def _ledger(tmp_path):
    return Ledger.init(tmp_path / 'patients.db', epsilon=1, delta=1e-5)


def test_a_budget_is_read_back_as_it_was_declared(tmp_path):
    file = tmp_path / 'users.db'
    Ledger.init(file, epsilon=2, delta=1e-6, adjacency='replace-one', unit='user',
                filter='renyi', order=8)
    budget = Ledger(file, read_only=True).budget
    assert budget[:6] == (2, 1e-6, 'replace-one', 'user', 'renyi', 8)
    assert str(budget).startswith('epsilon 2 at delta 1e-06')


def test_a_charge_is_seen_by_the_command_and_by_others_that_have_the_file_open(ledger):
    other = Ledger(ledger.file)
    run = ledger.charge(Event.pure(0.25), 'survey of 2025')
    assert [entry.kind for entry in other.entries] == ['budget', 'run', 'charge']
    assert other.entries[1].words == 'survey of 2025' and other.entries[1].run == run
    assert other.used == ledger.used == pytest.approx(0.25)
    assert other.total == Event.pure(0.25)
    theirs = core_support.run_program('ledger', 'show', ledger.file)
    assert theirs['verdict']['used'] == ledger.used
    assert theirs['head']['hash'] == ledger.head
    assert theirs['left']['pure']['epsilon'] == ledger.left.pure
    assert theirs['left']['gaussian']['epsilon'] == ledger.left.gaussian


def test_a_charge_beyond_the_budget_is_refused_and_changes_nothing(ledger):
    ledger.charge('add-remove: pure(0.7)', 'first')
    before = (ledger.head, ledger.used, len(ledger.entries))
    with pytest.raises(sordino.Error) as refused:
        ledger.charge(Event.pure(0.5), 'second')
    assert str(refused.value).startswith('nothing was charged: the release costs epsilon')
    assert '--' not in str(refused.value)
    assert (ledger.head, ledger.used, len(ledger.entries)) == before


@pytest.mark.parametrize('charge, sentence', [
    (lambda ledger: ledger.charge(Event('add-remove: none'), 'x'), 'event is of nothing'),
    (lambda ledger: ledger.charge(Event.pure(0.1), ' '), 'note is empty'),
    (lambda ledger: ledger.charge(Event.pure(0.1, 'replace-one'), 'x'), 'replace-one'),
    (lambda ledger: ledger.note(''), 'the note is empty')])
def test_a_charge_that_says_nothing_sensible_is_refused(ledger, charge, sentence):
    before = ledger.head
    with pytest.raises(sordino.Error, match=sentence):
        charge(ledger)
    assert ledger.head == before


@pytest.mark.parametrize('budget', [{'epsilon': 0, 'delta': 1e-5}, {'epsilon': 1, 'delta': 1},
                                    {'epsilon': float('nan'), 'delta': 0},
                                    {'epsilon': 1, 'delta': 1e-5, 'unit': 'person'}])
def test_a_ledger_without_a_sensible_budget_is_not_made(tmp_path, budget):
    with pytest.raises(sordino.Error):
        Ledger.init(tmp_path / 'none.db', **budget)
    assert not (tmp_path / 'none.db').exists()


def test_a_ledger_is_not_made_twice(ledger):
    with pytest.raises(sordino.Error):
        Ledger.init(ledger.file, epsilon=5, delta=1e-5)
    assert ledger.budget.epsilon == 1


def test_verify_counts_entries_and_finds_a_hash_that_is_missing(ledger):
    kept = ledger.head
    ledger.note('agreed on by the board')
    assert ledger.verify() == ledger.verify(kept) == 2
    with pytest.raises(sordino.Error, match='older copy'):
        ledger.verify('0' * 64)


def test_verify_finds_a_changed_byte(ledger):
    ledger.charge(Event.pure(0.1), 'words to be changed')
    file = ledger.file
    with open(file, 'rb') as stream:
        content = stream.read()
    assert b'words to be changed' in content
    with open(file, 'wb') as stream:
        stream.write(content.replace(b'words to be changed', b'words that were set'))
    with pytest.raises(sordino.Error):
        Ledger(file, read_only=True).verify()


def test_a_read_only_ledger_is_not_charged(ledger):
    before = ledger.head
    with pytest.raises((sordino.Error, RuntimeError)):
        Ledger(ledger.file, read_only=True).charge(Event.pure(0.1), 'x')
    assert ledger.head == before


def _use(ledger, answers):
    try:
        ledger.charge(Event.pure(0.1), 'in the child')
        answers.put('charged')
    except sordino.Error as refusal:
        answers.put(str(refusal))


def test_a_forked_child_is_told_to_open_the_ledger_again(ledger):
    fork = multiprocessing.get_context('fork')
    answers = fork.Queue()
    child = fork.Process(target=_use, args=(ledger, answers))
    child.start()
    assert 'open it again' in answers.get(timeout=60)
    child.join()
    assert ledger.used == 0


def test_a_ledger_is_a_path_and_is_shown_in_a_notebook(ledger):
    assert os.fspath(ledger) == ledger.file
    ledger.charge(Event.pure(0.1), '<b>visits</b>')
    html = ledger._repr_html_()
    assert '&lt;b&gt;visits' in html and '<b>' not in html
    assert 'epsilon 1 at delta 1e-05' in html and 'epsilon 1' in ledger.budget._repr_html_()
