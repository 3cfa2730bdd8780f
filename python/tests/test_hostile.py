"""Hostile losses on neighbouring datasets: refused in each, or a record moves the sum by its bound.

After each step the weights are put back, so that the updates of two worlds differ by what the record
did to the sum of the step, or by what was kept of it from an earlier one. The noise is the same in
both and small.
"""
import warnings

import pytest
import torch

import hostile
import sordino
import sordino.torch as private

RECORDS = 7
STEPS = 3
CLIP = 0.1
# What rounding may add to the bound.
SLACK = 1.02


class Recorded(torch.optim.Optimizer):
    """Keeps the noised gradients and moves nothing."""

    def __init__(self, parameters):
        super().__init__(parameters, {})
        self.seen = []

    def step(self):
        self.seen.append(torch.cat([p.grad.flatten() if p.grad is not None else p.detach().flatten() * 0
                                    for group in self.param_groups for p in group['params']]))


def _records(world):
    torch.manual_seed(77)
    x, y = torch.randn(RECORDS, 4), torch.arange(RECORDS) % 3
    x[0], x[-1] = 6, -6
    if world == 'the first is another one':
        x[0] = torch.tensor([-5., 9, 0, 2])
        y[0] = 1
    if world == 'the first is missing':
        x, y = x[1:], y[1:]
    if world == 'the last is missing':
        x, y = x[:-1], y[:-1]
    return torch.utils.data.TensorDataset(x.clone(), y.clone())


def _live(make, world, steps=STEPS):
    torch.manual_seed(5)
    model, loss = make()
    optimizer = Recorded(model.parameters())
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    try:
        trainer = private.Trainer(
            model, optimizer, _records(world), sampling='full', noise=1e-3, delta=1e-5,
            steps=steps, clip=CLIP, records=RECORDS, insecure_seed=9, progress=False)
        for step in trainer:
            step(loss)
            for name, value in model.named_parameters():
                value.data.copy_(start[name])
    except sordino.Error as error:
        return str(error), []
    return None, [RECORDS * seen for seen in optimizer.seen]


@pytest.mark.parametrize('name', hostile.CASES)
def test_is_refused_or_within_the_bound(name, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        refusal, updates = _live(hostile.CASES[name], 'all')
        for world in ('the first is another one', 'the first is missing', 'the last is missing'):
            if getattr(hostile.CASES[name], 'draws', False) and 'missing' in world:
                continue
            other, others = _live(hostile.CASES[name], world)
            assert (refusal is None) == (other is None), f'{refusal} / {other}'
            assert refusal == other
            bound = CLIP * SLACK * (2 if world == 'the first is another one' else 1)
            for mine, theirs in zip(updates, others, strict=True):
                assert torch.isfinite(mine).all() and torch.isfinite(theirs).all()
                assert float((mine - theirs).norm()) <= bound, world


def test_there_are_many_cases():
    assert len(hostile.CASES) >= 60


def test_a_record_that_leaves_the_bound_is_found():
    """The harness itself: a model that mixes its records outside of the library is found."""
    def updates(world):
        torch.manual_seed(5)
        model = hostile.net()
        x, y = _records(world).tensors
        total = torch.zeros(())
        for i in range(len(x)):
            total = total + hostile.plain(model, x[i:i + 1] + x.mean(0), y[i:i + 1])
        return torch.cat([g.flatten() for g in torch.autograd.grad(total, list(model.parameters()))])
    assert float((updates('all') - updates('the last is missing')).norm()) > CLIP * SLACK
