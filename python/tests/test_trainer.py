"""A run from Python has the plan, the charges, the noise and the files of `sordino train`."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.nn.functional as F

import loop
import sordino
import sordino.torch as private


def _records(n=120, features=4):
    torch.manual_seed(3)
    x = torch.randn(n, features)
    return torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())


def _model(features=4):
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(features, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))


def _trainer(model=None, optimizer=None, data=None, **settings):
    model = model or _model()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.5)
    settings = {'epsilon': 3, 'delta': 1e-5, 'epochs': 2, 'batch': 30, 'clip': 1.0,
                'progress': False, **settings}
    return private.Trainer(model, optimizer, data or _records(), **settings)


def _loss(model):
    return lambda x, y: F.cross_entropy(model(x), y)


def _run(trainer, model):
    for step in trainer:
        step(_loss(model))
    return trainer


def test_update_is_the_clipped_mean_of_the_loop():
    model, records = _model(), _records(40)
    x, y = records.tensors
    gradients = loop.gradients(model, _loss(model), (x, y))
    clip = sorted(loop.norm(g) for g in gradients)[20]
    expected = [sum(min(1, clip / loop.norm(g)) * g[i] for g in gradients) / 40
                for i in range(4)]
    before = [p.detach().clone() for p in model.parameters()]
    trainer = _trainer(model, torch.optim.SGD(model.parameters(), lr=1.0), records, epsilon=None,
                       epochs=None, batch=None, noise=1e-4, sampling='full', steps=1, clip=clip,
                       insecure_seed=1)
    _run(trainer, model)
    for p, old, want in zip(model.parameters(), before, expected):
        assert torch.allclose(old - p.detach(), want.float(), atol=3e-5)


@pytest.mark.parametrize('size', [1, 4, 8])
def test_micro_batches_make_steps_of_the_same_length(size):
    """Without clipping, the mean over micro-batches of their means is the mean over the records."""
    model = _model()
    before = model[0].weight.detach().clone()
    trainer = _trainer(model, torch.optim.SGD(model.parameters(), lr=1.0), _records(40),
                       epsilon=None, epochs=None, batch=None, noise=1e-4, sampling='full', steps=1,
                       clip=5.0, micro_batch=size, adjacency='replace-one', insecure_seed=1)
    for step in trainer:
        step(lambda x, y: F.cross_entropy(model(x), y, reduction='none'))
    x, y = _records(40).tensors
    fresh = _model()
    gradient, = torch.autograd.grad(F.cross_entropy(fresh(x), y), [fresh[0].weight])
    assert torch.allclose(before - model[0].weight.detach(), gradient, atol=2e-3)
    assert float(gradient.abs().max()) > 0.02


def test_noise_has_the_size_of_the_plan():
    model = torch.nn.Linear(2000, 1)
    records = torch.utils.data.TensorDataset(torch.zeros(50, 2000))
    before = model.weight.detach().clone()
    trainer = _trainer(model, torch.optim.SGD(model.parameters(), lr=1.0), records, epsilon=None,
                       epochs=None, batch=10, noise=2.0, steps=1, clip=0.5)
    for step in trainer:
        step(lambda x: model(x).sum())
    # 2,000 draws: the estimate is off by more than 8 % once in 10^6 times.
    assert float((before - model.weight.detach()).std()) == pytest.approx(2.0 * 0.5 / 10, rel=0.08)


@pytest.mark.parametrize('strategy, noise_of_sums', [('none', 2.0 ** 0.5), ('tree', 1.0)])
def test_noise_is_correlated_as_the_setting_says(strategy, noise_of_sums):
    """The second node of a tree takes off the first: two steps have the noise of one draw."""
    model = torch.nn.Linear(2000, 1)
    records = torch.utils.data.TensorDataset(torch.zeros(50, 2000))
    before = model.weight.detach().clone()
    trainer = _trainer(model, torch.optim.SGD(model.parameters(), lr=1.0), records, epsilon=None,
                       epochs=None, batch=25, noise=2.0, steps=2, clip=0.5, sampling='ordered',
                       noise_correlation=strategy)
    for step in trainer:
        step(lambda x: model(x).sum())
    # 2,000 draws: the estimate is off by more than 8 % once in 10^6 times.
    assert float((before - model.weight.detach()).std()) == pytest.approx(
        2.0 * 0.5 / 25 * noise_of_sums, rel=0.08)
    assert ('matrix(2' in trainer.event) == (strategy == 'tree')


def test_auto_chooses_bands_where_they_pay():
    model = _model()
    trainer = _run(_trainer(model, epsilon=16, epochs=2, batch=12, noise_correlation='auto'), model)
    assert trainer.epsilon() <= 16
    assert 'poisson(' in trainer.event and 'matrix(' in trainer.event


def test_epsilon_is_that_of_the_plan_and_at_most_what_was_asked():
    model = _model()
    trainer = _trainer(model)
    assert trainer.epsilon() == 0
    _run(trainer, model)
    assert trainer.steps_done == trainer.steps == 8
    assert 2.9 < trainer.epsilon() <= 3
    assert trainer.epsilon_interval()[0] <= trainer.epsilon()
    assert 'poisson(0.25, gaussian(' in trainer.event
    assert str(sordino.Event(trainer.event)) == trainer.event


@pytest.mark.parametrize('make', [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.Adam(p),
    lambda p: torch.optim.AdamW(p), lambda p: torch.optim.Adagrad(p),
    lambda p: torch.optim.RMSprop(p)])
def test_any_optimizer_and_scheduler_of_torch(make):
    model = _model()
    optimizer = make(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    before = model[0].weight.detach().clone()
    for step in _trainer(model, optimizer):
        step(_loss(model))
        scheduler.step()
    assert not torch.equal(before, model[0].weight)


@pytest.mark.parametrize('settings', [
    {'sampling': 'full', 'batch': None, 'epochs': None, 'steps': 3}, {'sampling': 'fixed', 'adjacency': 'replace-one'},
    {'clipping': 'layerwise'}, {'clipping': 'automatic'}, {'clipping': 'adaptive'},
    {'norms': 'ghost'}, {'norms': 'materialise'}, {'norms': 'loop'}, {'norms': 'jl'},
    {'noise_kind': 'laplace'}, {'noise_schedule': 'linear:0.5'}, {'canaries': 20},
    {'physical_batch': 7}])
def test_every_choice_of_train_has_its_name(settings):
    model = _model()
    trainer = _run(_trainer(model, **settings), model)
    assert trainer.steps_done == trainer.steps
    assert trainer.epsilon() <= 3


def test_an_unknown_setting_is_refused_with_what_is_near():
    with pytest.raises(sordino.Error, match='clipping'):
        _trainer(clippin='flat')


def test_settings_of_train_that_a_program_has_itself_are_refused():
    with pytest.raises(sordino.Error):
        _trainer(lr=0.1)


def test_sentences_name_arguments_and_no_flags():
    with pytest.raises(sordino.Error) as error:
        _trainer(epsilon=None)
    assert '--' not in str(error.value)


# The ledger.

def _ledger(tmp_path, epsilon=3):
    path = tmp_path / 'patients.db'
    sordino.Ledger.init(path, epsilon=epsilon, delta=1e-5)
    return path


def test_a_ledger_is_charged_and_ends_the_run(tmp_path):
    path = _ledger(tmp_path)
    model = _model()
    trainer = _run(_trainer(model, epsilon=1, ledger=path), model)
    assert trainer.epsilon() <= 1
    used = sordino.Ledger(path)
    assert len(used.entries) > 0
    with pytest.raises(sordino.Error, match='ledger'):
        other = _model()
        _run(_trainer(other, epsilon=2.9, ledger=path), other)


def test_a_refusal_charges_nothing(tmp_path):
    path = _ledger(tmp_path)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 2))
    with pytest.raises(sordino.Error, match='batch norm'):
        _run(_trainer(model, ledger=path), model)
    assert [entry.kind for entry in sordino.Ledger(path).entries] == ['budget']


def test_a_run_goes_on_from_its_state(tmp_path):
    path = _ledger(tmp_path)
    model = _model()
    optimizer = torch.optim.Adam(model.parameters())
    first = _trainer(model, optimizer, ledger=path)
    for step in first:
        step(_loss(model))
        if first.steps_done == 3:
            break
    torch.save(first.state_dict(), tmp_path / 'state.pt')
    del first
    again = _model()
    state = torch.load(tmp_path / 'state.pt', weights_only=True)
    second = _trainer(again, torch.optim.Adam(again.parameters()), ledger=path, state=state)
    assert second.steps_done == 3
    assert torch.equal(again[0].weight, model[0].weight)
    _run(second, again)
    assert second.steps_done == 8
    assert second.epsilon() <= 3


def test_an_old_state_is_charged_again(tmp_path):
    path = _ledger(tmp_path)
    model = _model()
    first = _trainer(model, ledger=path, epsilon=2)
    states = []
    for step in first:
        step(_loss(model))
        states.append(first.state_dict())
        if first.steps_done == 4:
            break
    del first
    again = _model()
    second = _run(_trainer(again, ledger=path, epsilon=2, state=states[0]), again)
    # Four steps were made, and seven behind the state that knows of one.
    assert second.event.count('11*poisson') == 1
    assert second.epsilon() > 2


def test_a_state_needs_a_ledger():
    model = _model()
    trainer = _run(_trainer(model), model)
    with pytest.raises(sordino.Error, match='ledger'):
        trainer.state_dict()


def test_another_plan_does_not_go_on(tmp_path):
    path = _ledger(tmp_path)
    model = _model()
    trainer = _trainer(model, ledger=path, epsilon=1)
    for step in trainer:
        step(_loss(model))
        break
    state = trainer.state_dict()
    del trainer
    with pytest.raises(sordino.Error, match='plan'):
        _trainer(_model(), ledger=path, epsilon=1, batch=40, state=state)


# The folder.

def test_the_folder_is_one_of_train(tmp_path):
    model = _model()
    trainer = _trainer(model, canaries=20, name='small net')
    for step in trainer:
        step(_loss(model))
        trainer.log(accuracy=0.5)
    trainer.save(tmp_path / 'run')
    files = {path.name for path in (tmp_path / 'run').iterdir()}
    assert {'statement.txt', 'event.txt', 'record.json', 'metrics.jsonl', 'model.safetensors',
            'accuracy-and-epsilon.svg', 'audit.json'} <= files
    assert (tmp_path / 'run/event.txt').read_text().strip() == trainer.event
    assert 'small net' in (tmp_path / 'run/statement.txt').read_text()
    rows = [json.loads(line) for line in (tmp_path / 'run/metrics.jsonl').read_text().splitlines()]
    assert [row['step'] for row in rows] == list(range(1, 9))
    from safetensors.torch import load_file
    weights = load_file(tmp_path / 'run/model.safetensors')
    assert torch.equal(weights['0.weight'], model[0].weight.detach())
    with pytest.raises(sordino.Error, match='holds a run already'):
        trainer.save(tmp_path / 'run')


def test_a_seeded_run_says_that_it_is_not_private(tmp_path):
    model = _model()
    trainer = _run(_trainer(model, insecure_seed=4), model)
    assert not trainer.is_private
    assert 'not private' in trainer.statement.lower()
    trainer.save(tmp_path / 'run')
    assert 'NOT PRIVATE' in (tmp_path / 'run/event.txt').read_text()


# Records.

class Rows(torch.utils.data.Dataset):
    """Records as dicts, some of which cannot be read."""

    def __init__(self, n, fails=(), odd=()):
        self._n, self._fails, self._odd = n, fails, odd

    def __len__(self):
        return self._n

    def __getitem__(self, i):
        if i in self._fails:
            raise OSError(f'the file of patient {i} is damaged')
        return {'x': torch.full((5 if i in self._odd else 4,), float(i % 3)), 'y': i % 2}


def _dict_loss(model):
    return lambda batch: F.cross_entropy(model(batch['x']), batch['y'])


def test_dicts_and_workers():
    model = _model()
    for step in _trainer(model, data=Rows(60), workers=2):
        step(_dict_loss(model))


def test_the_collate_function_sees_one_record_at_a_time():
    sizes = set()

    def collate(records):
        sizes.add(len(records))
        return torch.utils.data.default_collate(records)
    model = _model()
    for step in _trainer(model, data=Rows(60), collate_fn=collate):
        step(_dict_loss(model))
    assert sizes == {1}


@pytest.mark.parametrize('broken', [{'fails': (30, 31, 59)}, {'odd': (30, 31, 59)}])
def test_a_record_that_fails_adds_nothing_and_nobody_is_told(broken, capfd):
    updates = []
    for records in (Rows(60, **broken), torch.utils.data.Subset(
            Rows(60), [i for i in range(60) if i not in (30, 31, 59)])):
        model = _model()
        trainer = _trainer(model, data=records, sampling='full', epsilon=None, epochs=None,
                           batch=None, steps=1, noise=1e-4, insecure_seed=2, records=60,
                           example=Rows(1)[0])
        for step in trainer:
            step(_dict_loss(model))
        updates.append(model[0].weight.detach().clone())
    assert torch.allclose(*updates, atol=1e-6)
    out = capfd.readouterr()
    assert 'patient' not in out.out + out.err


def test_a_declared_form_asks_nothing_of_the_records():
    """A dataset without records, or with others, is trained on as one with records."""
    for records in (Rows(0), Rows(60, odd=range(60)), Rows(60, fails=range(60))):
        model = _model()
        trainer = _trainer(model, data=records, rate=0.5, steps=2, batch=30, epochs=None,
                           epsilon=3, example=Rows(1)[0])
        for step in trainer:
            step(_dict_loss(model))
        assert trainer.steps_done == 2


def test_lengths_that_differ_are_refused_where_the_form_is_not_declared():
    with pytest.raises(sordino.Error, match='pad texts to a fixed length'):
        _trainer(data=Rows(60, odd=(3,)))


def test_an_error_of_the_loss_that_every_record_has_is_shown_before_the_first_charge(tmp_path):
    path = _ledger(tmp_path)
    model = _model()

    def loss(x, y):
        raise ValueError('no such layer')
    with pytest.raises(sordino.Error, match='no such layer'):
        for step in _trainer(model, ledger=path):
            step(loss)
    assert [entry.kind for entry in sordino.Ledger(path).entries] == ['budget']


def test_a_step_that_is_not_made_is_a_mistake():
    trainer = _trainer()
    with pytest.raises(sordino.Error, match='not made'):
        for step in trainer:
            pass


def test_an_optimizer_of_another_model_is_refused():
    with pytest.raises(sordino.Error, match='optimizer'):
        _trainer(_model(), torch.optim.SGD(_model().parameters(), lr=0.1))


def test_parameters_that_are_frozen_stay():
    model = _model()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    trained = [p for p in model.parameters() if p.requires_grad]
    _run(_trainer(model, torch.optim.SGD(trained, lr=1.0)), model)
    assert torch.equal(before, model[0].weight)


# The process.

def test_ctrl_c_ends_after_the_step_in_hand(tmp_path):
    path = _ledger(tmp_path)
    model = _model()
    trainer = _trainer(model, ledger=path, epochs=None, steps=2000)

    def stop():
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=stop).start()
    with pytest.raises(KeyboardInterrupt):
        _run(trainer, model)
    assert 0 < trainer.steps_done < 2000
    trainer.save(tmp_path / 'run')
    assert 'interrupted' in json.loads((tmp_path / 'run/record.json').read_text()).get(
        'state', 'interrupted')


def test_other_threads_run_during_a_step():
    counted = [0]
    done = threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.0005)
    thread = threading.Thread(target=count)
    thread.start()
    model = _model(400)
    _run(_trainer(model, data=_records(4000, 400), batch=2000, epochs=2), model)
    done.set()
    thread.join()
    assert counted[0] > 10


def test_a_fork_has_no_key_of_the_noise():
    """A worker that is forked during a run cannot make a step with the same noise."""
    script = '''
import os, sys, torch, torch.nn.functional as F
import sordino.torch as private
model = torch.nn.Linear(200, 1)
trainer = private.Trainer(model, torch.optim.SGD(model.parameters(), lr=1.0),
    torch.utils.data.TensorDataset(torch.zeros(50, 200)), noise=2.0, delta=1e-5, batch=10, steps=3,
    clip=0.5, progress=False)
steps = iter(trainer)
next(steps)(lambda x: model(x).sum())
model.weight.data.zero_()
read, write = os.pipe()
torch.set_num_threads(1)
child = os.fork()
try:
    next(steps)(lambda x: model(x).sum())
    mine = model.weight.detach().clone()
except BaseException as error:
    mine = None
if child == 0:
    os.write(write, (b"none" if mine is None else mine.numpy().tobytes()))
    os._exit(0)
os.close(write)
theirs = b""
while part := os.read(read, 65536):
    theirs += part
os.waitpid(child, 0)
sys.exit(0 if mine is not None and theirs != mine.numpy().tobytes() else 1)
'''
    done = subprocess.run([sys.executable, '-c', script], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_trainer_shows_itself():
    model = _model()
    trainer = _run(_trainer(model), model)
    assert '8 of 8' in repr(trainer)
    assert 'differentially private' in trainer._repr_html_()
    assert 'adding or removing one record' in ' '.join(trainer.statement.split())


def test_a_hook_of_a_parameter_is_refused():
    model = _model()
    model[0].weight.register_hook(lambda gradient: gradient)
    with pytest.raises(sordino.Error, match='a parameter has a hook'):
        _run(_trainer(model), model)


def test_a_tensor_that_was_kept_shows_no_value():
    model, kept = _model(), []

    def loss(x, y):
        kept.append(x)
        return F.cross_entropy(model(x), y)
    for step in _trainer(model):
        step(loss)
    assert all('private tensor' in text for text in (str(kept[-1]), repr(kept), f'{kept[-1]}'))


def test_the_loss_is_called_in_a_step_without_records():
    """How often it is called is seen by the program, and whether there were records is private."""
    model, calls = _model(), []

    def loss(x, y):
        calls.append(1)
        return F.cross_entropy(model(x), y)
    counts = []
    for step in _trainer(model, data=_records(1), rate=1e-6, batch=1, epsilon=None, noise=1,
                         epochs=None, steps=4, records=None):
        step(loss)
        counts.append(len(calls))
    assert [b - a for a, b in zip(counts, counts[1:])] == [1, 1, 1]


def test_the_seeds_of_a_program_do_not_decide_what_datasets_draw():
    import random
    drawn = []
    for _ in range(2):
        random.seed(7)
        torch.manual_seed(7)
        _trainer(_model())
        drawn.append((random.random(), torch.rand(1).item()))
    assert drawn[0] != drawn[1]


class Panic(BaseException):
    """What a library in another language may raise."""


class Panics(Rows):
    def __getitem__(self, i):
        if i == 7:
            raise Panic('the text of patient 7')
        return super().__getitem__(i)


@pytest.mark.parametrize('workers', [0, 2])
def test_no_record_stops_the_run(workers):
    model = _model()
    trainer = _trainer(model, data=Panics(60), workers=workers, sampling='full', batch=None,
                       epochs=None, steps=2, example=Rows(1)[0])
    for step in trainer:
        step(_dict_loss(model))
    assert trainer.steps_done == 2
