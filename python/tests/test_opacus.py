"""A loop for Opacus is private after a changed import, and makes the updates of Opacus."""
import copy
import shutil
import signal
import subprocess
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import loop
import sordino
from sordino import opacus
from sordino.opacus.data_loader import DPDataLoader
from sordino.opacus.utils.batch_memory_manager import BatchMemoryManager
from sordino.opacus.validators import ModuleValidator
from sordino.torch._extension import extension

DELTA = 1e-5


def _records(n=40):
    torch.manual_seed(3)
    return TensorDataset(torch.randn(n, 1, 8, 8), torch.arange(n) % 3)


def _net(bias=True):
    torch.manual_seed(7)
    return nn.Sequential(nn.Conv2d(1, 4, 3, bias=bias), nn.ReLU(), nn.Flatten(),
                         nn.Linear(144, 3, bias=bias))


def _private(model, data, engine=None, *, package=opacus, batch=None, lr=0.5, optimizer=None,
             **options):
    """Engine and the objects of a loop; all records are in each batch if none is given."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    engine = engine or package.PrivacyEngine()
    options = {'noise_multiplier': 1.0, 'max_grad_norm': 1.0, **options}
    made = engine.make_private(module=model, optimizer=optimizer,
                               data_loader=DataLoader(data, batch or len(data)), **options)
    return (engine, *made)


def _turn(model, optimizer, x, y, criterion=F.cross_entropy):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def _weights(model):
    return torch.cat([value.detach().flatten() for value in model.parameters()])


def _changed(model, data, passes=1, **options):
    """The model after some epochs of a loop."""
    model = copy.deepcopy(model)
    _, model, optimizer, loader = _private(model, data, **options)
    for _ in range(passes):
        for x, y in loader:
            _turn(model, optimizer, x, y)
    return model


def _no_pass_is_open():
    return torch._C._functorch.maybe_current_level() is None \
        and torch.overrides._get_current_function_mode() is None


# Updates.

def test_the_update_is_the_clipped_mean_of_a_loop_over_records():
    net, records = _net(), _records()
    gradients = loop.gradients(net, lambda x, y: F.cross_entropy(net(x), y), records.tensors)
    clip = sorted(loop.norm(g) for g in gradients)[20]
    mean = [sum(min(1, clip / loop.norm(g)) * g[i] for g in gradients) / 40 for i in range(4)]
    changed = _changed(net, records, noise_multiplier=1e-5, max_grad_norm=clip)
    for before, after, gradient in zip(net.parameters(), changed.parameters(), mean):
        torch.testing.assert_close(before - 0.5 * gradient.float(), after, rtol=0, atol=1e-4)


@pytest.mark.parametrize('options', [
    {}, {'loss_reduction': 'sum', 'lr': 0.01}, {'max_grad_norm': 100.0, 'noise_multiplier': 1e-6},
    {'clipping': 'per_layer', 'max_grad_norm': [0.4, 0.4]}, {'grad_sample_mode': 'ghost'}])
def test_the_update_is_that_of_opacus(options):
    theirs = pytest.importorskip('opacus')
    records = _records()
    options = {'noise_multiplier': 1e-5, 'max_grad_norm': 0.7, **options}

    def trained(package):
        model = _net(bias=False)
        reduction = options.get('loss_reduction', 'mean')
        criterion = nn.CrossEntropyLoss(reduction=reduction)
        made = _private(model, records, package=package, criterion=criterion, **options)
        module, optimizer, loader = made[1], made[2], made[-1]
        if len(made) == 5:
            criterion = made[3]
        for _ in range(3):
            for x, y in loader:
                _turn(module, optimizer, x, y, criterion)
        return _weights(model)

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        expected = trained(theirs)
    found = trained(opacus)
    moved = (expected - _weights(_net(bias=False))).norm()
    assert (found - expected).norm() < 1e-3 * moved


def test_noise_is_in_units_of_the_norm_over_the_expected_batch():
    # 4,000 draws: their deviation is within 6 % but for 1 run in 10^7.
    model = nn.Linear(2000, 2, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    records = TensorDataset(torch.zeros(50, 2000), torch.zeros(50, dtype=torch.int64))
    changed = _changed(model, records, noise_multiplier=3.0, max_grad_norm=0.2,
                       optimizer=None, lr=1.0)
    assert changed.weight.std().item() == pytest.approx(3.0 * 0.2 / 50, rel=0.06)


def test_losses_of_several_backward_calls_are_one_loss():
    net, records = _net(), _records()
    options = {'noise_multiplier': 1e-5, 'max_grad_norm': 0.5}
    whole = _changed(net, records, **options)
    _, model, optimizer, loader = _private(copy.deepcopy(net), records, **options)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        (0.25 * loss).backward(retain_graph=True)
        (0.75 * loss).backward()
        optimizer.step()
    torch.testing.assert_close(_weights(model), _weights(whole), rtol=0, atol=1e-4)


def test_a_record_that_fails_adds_nothing_and_nobody_is_told():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 3))
    x, y = torch.randint(0, 10, (40, 3)), torch.arange(40) % 3
    bad = x.clone()
    bad[7, 1] = 10
    rest = torch.arange(40) != 7
    options = {'noise_multiplier': 1e-5, 'records': 40, 'epochs': 1}
    found = _changed(model, TensorDataset(bad, y), **options)
    model_without = copy.deepcopy(model)
    _, model_without, optimizer, loader = _private(
        model_without, TensorDataset(x[rest], y[rest]), batch=39, rate=1.0, **options)
    for a, b in loader:
        _turn(model_without, optimizer, a, b)
    moved_by_all = _weights(found) - _weights(model)
    moved_without = _weights(model_without) - _weights(model)
    torch.testing.assert_close(moved_by_all * 40, moved_without * 39, rtol=0, atol=1e-2)


# Costs.

def test_epsilon_is_the_certified_upper_end():
    engine, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    assert engine.get_epsilon(DELTA) == 0
    for _ in range(2):
        for x, y in loader:
            _turn(model, optimizer, x, y)
    lower, upper = engine.accountant.epsilon_interval(DELTA)
    assert lower <= upper == engine.get_epsilon(DELTA) == engine.accountant.get_epsilon(delta=DELTA)
    assert upper < lower * (1 + 1e-4)
    assert engine.get_epsilon(1e-6) > upper
    # 8 steps at rate 1/4 and noise 1.
    assert engine.accountant._runs[0].events[0] == ['add-remove: 8*poisson(0.25, gaussian(1))']
    assert len(engine.accountant) == 8


def test_a_target_is_kept_and_cannot_be_exceeded():
    engine = opacus.PrivacyEngine(accountant='rdp', secure_mode=True)
    model = _net()
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(_records(100), batch_size=30), target_epsilon=2, target_delta=DELTA,
        epochs=2, max_grad_norm=1.0)
    assert len(loader) == 4 and optimizer.noise_multiplier > 0.5
    for _ in range(2):
        for x, y in loader:
            _turn(model, optimizer, x, y)
    assert 1.99 < engine.get_epsilon(DELTA) <= 2
    with pytest.raises(sordino.Error, match='all steps of the run are made'):
        for x, y in loader:
            _turn(model, optimizer, x, y)
    assert len(engine.accountant) == 8


def test_runs_of_one_engine_add_up():
    engine = opacus.PrivacyEngine()
    spent = []
    for _ in range(2):
        _, model, optimizer, loader = _private(_net(), _records(120), engine, batch=30)
        for x, y in loader:
            _turn(model, optimizer, x, y)
        spent.append(engine.get_epsilon(DELTA))
    one, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    for _ in range(2):
        for x, y in loader:
            _turn(model, optimizer, x, y)
    assert spent[0] < spent[1] == pytest.approx(one.get_epsilon(DELTA), rel=1e-6)


@pytest.mark.skipif(shutil.which('sordino') is None, reason='sordino is not on the path')
def test_a_ledger_is_charged_and_ends_the_loop(tmp_path):
    ledger = tmp_path / 'patients.db'

    def call(*words):
        return subprocess.run(['sordino', 'ledger', *words], check=True, capture_output=True,
                              text=True).stdout

    call('init', str(ledger), '--epsilon', '10', '--delta', '1e-5')
    engine, model, optimizer, loader = _private(_net(), _records(120), batch=30, ledger=ledger)
    assert 'gaussian' not in call('show', str(ledger))
    for x, y in loader:
        _turn(model, optimizer, x, y)
    assert '4*poisson(0.25, gaussian(1))' in call('show', str(ledger))
    with pytest.raises(sordino.Error, match='the ledger ends the run'):
        for _ in range(10):
            for x, y in loader:
                _turn(model, optimizer, x, y)
    assert engine.get_epsilon(DELTA) <= 10
    assert _no_pass_is_open()


# Turns.

def test_a_step_is_one_turn_once_the_model_is_known():
    _, model, optimizer, loader = _private(_net(), _records(120), batch=60)
    turns = []
    for _ in range(3):
        turns.append(0)
        for x, y in loader:
            assert x.shape == (1, 1, 8, 8) and len(y) == 1
            _turn(model, optimizer, x, y)
            turns[-1] += 1
    assert turns[0] > 2 and turns[1:] == [2, 2]


def test_batches_in_parts_have_more_turns_and_the_same_update():
    net, records = _net(), _records()
    options = {'noise_multiplier': 1e-5, 'max_grad_norm': 0.5}
    whole = _changed(net, records, passes=2, **options)
    engine, model, optimizer, loader = _private(copy.deepcopy(net), records, **options)
    turns = []
    for _ in range(2):
        turns.append(0)
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=16,
                                optimizer=optimizer) as parts:
            for x, y in parts:
                before = _weights(model)
                _turn(model, optimizer, x, y)
                turns[-1] += 1
                is_last = not torch.equal(before, _weights(model))
        assert is_last
    assert turns[1] == 3 and len(engine.accountant) == 2
    torch.testing.assert_close(_weights(model), _weights(whole), rtol=0, atol=1e-4)
    with pytest.raises(sordino.Error, match='before the first step'):
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=8).__enter__()


def test_schedules_make_one_step_for_each_of_the_optimizer():
    model, records = _net(), _records(120)
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    of_inner = torch.optim.lr_scheduler.ExponentialLR(inner, 0.5)
    _, model, optimizer, loader = _private(model, records, batch=30, optimizer=inner)
    of_outer = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    assert isinstance(optimizer, torch.optim.Optimizer)
    for x, y in loader:
        _turn(model, optimizer, x, y)
        of_inner.step()
        of_outer.step()
    assert of_inner.last_epoch == of_outer.last_epoch == 4
    assert optimizer.state_dict()['param_groups'][0]['initial_lr'] == 1.0


def test_a_loop_that_is_left_charges_nothing_and_can_be_gone_on_with():
    engine, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        break
    assert len(engine.accountant) == 0 and _no_pass_is_open()
    with pytest.raises(KeyError):
        for x, y in loader:
            _turn(model, optimizer, x, y)
            if len(engine.accountant) == 2:
                raise KeyError
    assert len(engine.accountant) == 2 and _no_pass_is_open()
    for x, y in loader:
        if len(engine.accountant) == 3:
            model(x)
            break
        _turn(model, optimizer, x, y)
    for x, y in loader:
        _turn(model, optimizer, x, y)
    assert len(engine.accountant) == 7
    assert engine.get_epsilon(DELTA) == pytest.approx(
        _epsilon(steps=7, rate=0.25), rel=1e-4)


def test_a_signal_ends_the_loop_after_the_step_in_hand():
    engine, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    for x, y in loader:
        _turn(model, optimizer, x, y)
    with pytest.raises(KeyboardInterrupt):
        for x, y in loader:
            signal.raise_signal(signal.SIGINT)
            _turn(model, optimizer, x, y)
    assert len(engine.accountant) == 5 and _no_pass_is_open()
    for x, y in loader:
        _turn(model, optimizer, x, y)
    assert len(engine.accountant) == 9


def _epsilon(steps, rate):
    event = f'add-remove: {steps}*poisson({rate}, gaussian(1))'
    return extension.spent_epsilon([event], DELTA, 0.0)[1]


def test_what_follows_the_step_in_the_body_is_ordinary_code():
    _, model, optimizer, loader = _private(_net(), _records(120), batch=60)
    other = nn.Linear(2, 1)
    public = DataLoader(_records(6), batch_size=3, shuffle=True)
    turns = 0
    for x, y in loader:
        _turn(model, optimizer, x, y)
        turns += 1
        assert torch.randn(3).tolist()
        assert sum(int((model(a).argmax(1) == b).sum()) for a, b in public) <= 6
        other(torch.ones(5, 2)).sum().backward()
        assert str(torch.ones(2)) == 'tensor([1., 1.])'
    assert other.bias.grad.item() == 5 * turns


# Values of records.

def test_values_behind_the_loss_are_not_numbers_and_warn_once():
    _, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    kept = []
    with pytest.warns(UserWarning, match='test data') as seen:
        for x, y in loader:
            loss = _turn(model, optimizer, x, y)
            accuracy = float((model(x).argmax(1) == y).sum()) / len(y)
            kept.append((loss.item(), accuracy, f'{loss:.3f}', loss))
    assert len(seen) == 1
    assert all(value != value for *values, _, _ in kept for value in values)
    assert {text for _, _, text, _ in kept} == {'nan'}
    # Also outside of the loop, where they are dead.
    for *_, loss in kept:
        assert repr(loss) == str(loss) == '<private tensor of shape []>'
        with pytest.raises(RuntimeError):
            loss.item()
        with pytest.raises(RuntimeError):
            loss + 1


@pytest.mark.parametrize('ask', [
    torch.Tensor.item, float, int, bool, torch.Tensor.tolist, lambda t: t.detach().numpy(),
    lambda t: t.detach().cpu().numpy(), lambda t: [1, 2][t.long()], torch.Tensor.__array__])
def test_values_before_the_loss_are_refused_by_name(ask):
    engine, model, optimizer, loader = _private(_net(), _records())
    with pytest.raises(sordino.Error, match='asks for a value of a private record by'):
        for x, y in loader:
            ask(model(x).sum())
    assert len(engine.accountant) == 0 and _no_pass_is_open()


def test_a_loss_behind_a_nan_is_refused():
    _, model, optimizer, loader = _private(_net(), _records())
    with pytest.raises(sordino.Error, match='not a number'), pytest.warns(UserWarning):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            loss.backward(retain_graph=True)
            (loss * loss.item()).backward()


def test_a_tensor_of_an_earlier_turn_is_of_no_use():
    _, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    old = None
    with pytest.raises(sordino.Error, match='earlier turn'):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            loss = loss if old is None else loss + old
            old = loss.detach()
            loss.backward()
            optimizer.step()
    assert _no_pass_is_open()


def test_sums_for_a_log_stay_without_a_value():
    engine, model, optimizer, loader = _private(_net(), _records(120), batch=30)
    total = 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        total = total + loss.detach()
        loss.backward()
        optimizer.step()
    assert str(total) == '<private tensor of shape []>' and len(engine.accountant) == 4


@pytest.mark.parametrize('use', [
    lambda t: t.T, lambda t: t.data, lambda t: t.mT, lambda t: t.real, lambda t: t[0],
    lambda t: torch.add(torch.ones(1, 3), other=t), lambda t: torch.cat([t, t]),
    lambda t: F.linear(t, torch.ones(2, 3)), lambda t: F.cross_entropy(input=t, target=t),
    lambda t: t.grad_fn, lambda t: list(t), lambda t: t.numpy,
    lambda t: torch.zeros(1, 3).copy_(t), lambda t: torch.stack(tensors=[t]),
    lambda t: torch.optim.SGD([t], lr=1.0)])
def test_tensors_of_a_step_that_is_made_have_no_values(use):
    _, model, optimizer, loader = _private(_net(), _records(120), batch=60)
    old = None
    for x, y in loader:
        if old is not None:
            use(old)
        old = model(x)
        F.cross_entropy(old, y).backward()
        optimizer.step()
        assert old.shape == (1, 3) and old.dtype == torch.float32 and len(old) == 1
        result = use(old)
        if isinstance(result, torch.Tensor):
            with pytest.raises(sordino.Error, match='value of a private record'):
                result.tolist()
    assert _no_pass_is_open()


# Refusals.

class _Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer('mean', torch.zeros(4))
        self.kept = None
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def _running(model, x):
    model.mean.mul_(0.9).add_(0.1 * x.mean(0))
    return model.linear(x - model.mean)


def _remembering(model, x):
    out = model.linear(x) if model.kept is None else model.linear(x) + model.kept
    model.kept = out.detach()
    return out


@pytest.mark.parametrize('function, sentence', [
    (lambda m, x: F.batch_norm(m.linear(x), None, None, training=True), 'batch norm'),
    (lambda m, x: m.linear(x) if x.sum() > 0 else -m.linear(x), '__bool__'),
    (lambda m, x: m.linear(x) * x.sum().item(), r'item\(\)'),
    (_running, 'all examples share'),
    (_remembering, 'earlier turn'),
    (lambda m, x: m.linear(x[:, :3]), 'cannot be multiplied'),
    (lambda m, x: m.linear(x).detach(), 'do not depend on any parameter'),
    (lambda m, x: torch.unique(m.linear(x)).sum().expand(1, 3), 'values of an example')])
def test_a_model_is_refused_before_the_first_charge(function, sentence):
    records = TensorDataset(torch.randn(40, 4), torch.arange(40) % 3)
    engine, model, optimizer, loader = _private(_Model(function), records)
    before = _weights(model)
    with pytest.raises(sordino.Error, match=sentence):
        for x, y in loader:
            _turn(model, optimizer, x, y)
    assert len(engine.accountant) == 0 and _no_pass_is_open()
    assert torch.equal(before, _weights(model))


def test_errors_of_a_program_are_its_own():
    engine, model, optimizer, loader = _private(_net(), _records())
    with pytest.raises(ZeroDivisionError):
        for x, y in loader:
            1 / 0
    assert _no_pass_is_open() and len(engine.accountant) == 0


@pytest.mark.parametrize('body, sentence', [
    (lambda m, o, x, y: F.cross_entropy(m(x), y).backward(), r'without optimizer.step\(\)'),
    (lambda m, o, x, y: o.step(), r'without loss.backward\(\)'),
    (lambda m, o, x, y: o.step(lambda: 0), 'closure'),
    (lambda m, o, x, y: (m(x).sum().backward(), o.zero_grad(), o.step()), 'without loss.backward'),
    (lambda m, o, x, y: (_turn(m, o, x, y), o.step()), 'once in each turn'),
    (lambda m, o, x, y: m(torch.ones(2, 1, 8, 8)).sum().backward(), 'records of this turn'),
    (lambda m, o, x, y: m(x).backward(), r'shape \[1, 3\]'),
    (lambda m, o, x, y: m(x).sum().backward(torch.ones(())), 'more than retain_graph'),
    (lambda m, o, x, y: _turn(m, o, x, y).backward(), r'after optimizer.step\(\)'),
    (lambda m, o, x, y: o.grad_samples, 'never stored'),
    (lambda m, o, x, y: o.add_param_group({'params': []}), 'began with'),
    (lambda m, o, x, y: copy.copy(o), 'state_dict')])
def test_a_body_is_refused_by_name(body, sentence):
    engine, model, optimizer, loader = _private(_net(), _records())
    with pytest.raises(sordino.Error, match=sentence):
        for x, y in loader:
            body(model, optimizer, x, y)
    assert _no_pass_is_open() and len(engine.accountant) == 0


def test_two_open_loops_are_refused():
    one = _private(_net(), _records())
    two = _private(_net(), _records())
    with pytest.raises(sordino.Error, match='two private loops'):
        for _ in zip(one[-1], two[-1]):
            pass
    assert _no_pass_is_open()


@pytest.mark.parametrize('options, sentence', [
    ({'noise_generator': torch.Generator()}, 'noise_generator'),
    ({'poisson_sampling': False}, 'poisson_sampling'),
    ({'batch_first': False}, 'batch_first'),
    ({'wrap_model': False}, 'wrap_model'),
    ({'loss_reduction': 'none'}, 'mean or sum'),
    ({'grad_sample_mode': 'no_op'}, 'grad_sample_mode'),
    ({'clipping': 'per_layer', 'max_grad_norm': [1.0, 2.0, 1.0, 1.0]}, 'equal numbers'),
    ({'max_grad_norm': [1.0]}, 'per_layer'),
    ({'max_clipbound': 1.0, 'clipping': 'adaptive'}, 'max_clipbound'),
    ({'clipping': 'unknown'}, 'unknown'),
    ({'alphas': [2]}, 'alphas'),
    ({'steps_of_mine': 1}, 'steps_of_mine'),
    ({'noise_multiplier': -1.0}, 'noise')])
def test_an_option_that_cannot_be_honoured_is_refused_by_name(options, sentence):
    with pytest.raises(sordino.Error, match=sentence):
        _private(_net(), _records(), **options)


@pytest.mark.parametrize('call, sentence', [
    (lambda e: e.save_checkpoint(path='x', module=None), 'ledger'),
    (lambda e: e.load_checkpoint(path='x', module=None), 'ledger'),
    (lambda e: e.accountant.step(noise_multiplier=1, sample_rate=1), 'nobody else'),
    (lambda e: e.accountant.state_dict(), 'ledger'),
    (lambda e: e.accountant.history, 'ledger'),
    (lambda e: opacus.GradSampleModule, 'GradSampleModule'),
    (lambda e: opacus.PrivacyEngine(accountant='x'), 'prv, rdp, gdp'),
    (lambda e: DPDataLoader.from_data_loader(None), 'make_private'),
    (lambda e: BatchMemoryManager(data_loader=None, max_physical_batch_size=1), 'make_private')])
def test_what_is_not_there_is_refused_by_name(call, sentence):
    with pytest.raises(sordino.Error, match=sentence):
        call(opacus.PrivacyEngine())


def test_loaders_without_a_batch_size_or_a_map_are_refused():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([])

    for loader in (DataLoader(Stream(), 4), DataLoader(_records(), batch_size=None), [1]):
        with pytest.raises(sordino.Error, match='data_loader'):
            model = _net()
            opacus.PrivacyEngine().make_private(
                module=model, optimizer=torch.optim.SGD(model.parameters()), data_loader=loader,
                noise_multiplier=1.0, max_grad_norm=1.0)


# Other options.

@pytest.mark.parametrize('mode', ['hooks', 'ew', 'functorch'])
def test_modes_are_accepted(mode):
    assert len(_private(_net(), _records(), grad_sample_mode=mode)) == 4


def test_adaptive_clipping_has_the_options_of_opacus():
    engine, model, optimizer, loader = _private(
        _net(), _records(120), batch=30, clipping='adaptive', target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.1, unclipped_num_std=5.0)
    for x, y in loader:
        _turn(model, optimizer, x, y)
    assert len(engine.accountant) == 4


def test_a_seeded_run_repeats():
    runs = [_weights(_changed(_net(), _records(120), batch=30, insecure_seed=5))
            for _ in range(2)]
    assert torch.equal(*runs)


def test_dicts_are_batches():
    class Words(torch.utils.data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            return {'x': torch.ones(4) * index, 'y': torch.tensor(index % 2)}

    model = nn.Linear(4, 2)
    engine, model, optimizer, loader = _private(model, Words(), batch=10)
    for batch in loader:
        _turn(model, optimizer, batch['x'], batch['y'])
    assert len(engine.accountant) == 4


# The validator.

def _with_batch_norm():
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                         nn.Linear(288, 3), nn.BatchNorm1d(3, affine=False))


def test_batch_norm_is_found_and_replaced_as_in_opacus():
    model = _with_batch_norm()
    assert [str(error).split("'")[1] for error in ModuleValidator.validate(model)] == ['1', '5']
    with pytest.raises(sordino.Error, match='group norm'):
        _private(model, _records())
    fixed = opacus.PrivacyEngine.get_compatible_module(model)
    assert isinstance(model[1], nn.BatchNorm2d)
    assert fixed[1].num_groups == 8 and fixed[1].affine and not fixed[5].affine
    _changed(fixed, _records())
    theirs = pytest.importorskip('opacus.validators').ModuleValidator.fix(model)
    assert [str(layer) for layer in theirs[:5]] == [str(layer) for layer in fixed[:5]]


def test_options_of_fix_are_those_of_opacus():
    model = _with_batch_norm()
    with pytest.raises(sordino.Error, match='num_groups is 2'):
        ModuleValidator.fix(model, num_groups=2)  # 3 features in the last one
    assert ModuleValidator.fix(model[:2], num_groups=2)[1].num_groups == 2
    assert isinstance(ModuleValidator.fix(model, replace_bn_with_in=True)[1], nn.InstanceNorm2d)
    norm = ModuleValidator.fix(nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True)))
    assert ModuleValidator.is_valid(norm) and norm[0].running_mean is None
    assert ModuleValidator.fix(nn.BatchNorm1d(6)).num_groups == 2
    assert ModuleValidator.is_valid(_with_batch_norm().eval())
