"""What people put around their models: each has right gradients, or is refused by name."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import loop
import sordino
import sordino.torch as private


def _batch(n=5, features=6):
    torch.manual_seed(2)
    return torch.randn(n, features), torch.arange(n) % 3


def _net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def _agrees(model, loss, batch, reference=None, tolerance=1e-5):
    expected = [loop.norm(g) for g in loop.gradients(model, reference or loss, batch)]
    assert private.norms(model, loss, batch).tolist() == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize('reentrant', [True, False])
def test_checkpoints_compute_the_same(reentrant):
    model = _net()

    def loss(x, y):
        hidden = checkpoint(model[:2], x, use_reentrant=reentrant)
        return F.cross_entropy(model[2](hidden), y)
    _agrees(model, loss, _batch(), reference=lambda x, y: F.cross_entropy(model(x), y))


def test_an_autograd_function_is_refused_by_its_name():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g
    model = _net()
    with pytest.raises(sordino.Error, match="autograd function 'Twice'"):
        private.norms(model, lambda x, y: F.cross_entropy(model(Twice.apply(x)), y), _batch())


def test_compiled_models_compute_the_same():
    model = _net()
    compiled = torch.compile(model, backend='aot_eager')
    _agrees(model, lambda x, y: F.cross_entropy(compiled(x), y), _batch(),
            reference=lambda x, y: F.cross_entropy(model(x), y))


def test_autocast_is_refused_with_what_to_do_instead():
    model = _net()

    def inside(x, y):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            return F.cross_entropy(model(x), y)

    def disabled(x, y):
        with torch.autocast('cpu', enabled=False):
            return F.cross_entropy(model(x), y)
    with pytest.raises(sordino.Error, match="precision='bfloat16'"):
        private.norms(model, inside, _batch())
    with pytest.raises(sordino.Error, match="precision='bfloat16'"):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            private.norms(model, lambda x, y: F.cross_entropy(model(x), y), _batch())
    _agrees(model, disabled, _batch())


@pytest.mark.parametrize('inside', [False, True])
def test_bfloat16_is_a_setting_of_the_trainer(inside):
    """The update is near that of float32, and not the same. Autocast changes nothing then."""
    updates = []
    for precision in ('float32', 'bfloat16'):
        model = _net()

        def loss(x, y):
            with torch.autocast('cpu', dtype=torch.bfloat16,
                                enabled=inside and precision == 'bfloat16'):
                return F.cross_entropy(model(x), y)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = model[0].weight.detach().clone()
        for step in private.Trainer(
                model, optimizer, torch.utils.data.TensorDataset(*_batch()), noise=1e-4, delta=1e-5,
                sampling='full', steps=1, clip=0.1, insecure_seed=4, precision=precision,
                progress=False):
            step(loss)
        updates.append(before - model[0].weight.detach())
    difference = float((updates[0] - updates[1]).norm() / updates[0].norm())
    assert 1e-5 < difference < 2e-2


@pytest.mark.parametrize('causal', [True, False])
def test_attention(causal):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 3)

        def forward(self, x):
            q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return self.out(y.transpose(1, 2).flatten(2)).mean(1)
    torch.manual_seed(1)
    model = Attention()
    _agrees(model, lambda x, y: F.cross_entropy(model(x), y),
            (torch.randn(5, 7, 8), torch.arange(5) % 3))


def test_losses_of_no_dimension_and_of_one():
    model, (x, y) = _net(), _batch()
    one = private.norms(model, lambda x, y: F.cross_entropy(model(x), y), (x, y))
    other = private.norms(model, lambda x, y: F.cross_entropy(model(x), y, reduction='none'), (x, y))
    assert torch.equal(one, other)


def test_parameters_that_the_loss_does_not_reach_have_no_gradient():
    model = nn.ModuleDict({'used': nn.Linear(6, 3), 'unused': nn.Linear(6, 3)})
    total = private.clipped_sum(model, lambda x, y: F.cross_entropy(model['used'](x), y), _batch(),
                                clip=1.0)
    assert float(total['unused.weight'].abs().sum()) == 0


@pytest.mark.parametrize('kind', ['in place', 'index', 'einsum', 'where', 'pad', 'interpolate'])
def test_operations_of_models(kind):
    model = _net()

    def forward(x):
        if kind == 'in place':
            return model[2](F.relu(model[0](x).mul_(2).add_(1), inplace=True))
        if kind == 'index':
            h = model[0](x)
            h[:, 2] = h[:, 3] * 2
            return model[2](h)
        if kind == 'einsum':
            return torch.einsum('bf,of->bo', model[1](model[0](x)), model[2].weight)
        if kind == 'where':
            h = model[0](x)
            return model[2](torch.where(h > 0, h, 0.1 * h))
        if kind == 'pad':
            return model[2](F.pad(model[0](x)[:, :7], (0, 1)))
        h = F.interpolate(model[0](x)[:, None], size=16, mode='linear')
        return model[2](h[:, 0, ::2])
    _agrees(model, lambda x, y: F.cross_entropy(forward(x), y), _batch())


def test_a_tensor_of_a_record_has_no_text():
    model, seen = _net(), []

    def loss(x, y):
        seen.append(f'{x} {[x.sum()]!r}')
        return F.cross_entropy(model(x), y)
    private.norms(model, loss, _batch())
    assert seen
    assert 'tensor(of a record' in seen[0]
    assert 'tensor([[' not in seen[0]


def test_what_is_replaced_during_a_loss_is_put_back():
    before = (torch.jit.is_tracing, torch.empty, torch.autograd.Function.apply, torch.Tensor.new_empty)
    model = _net()
    private.norms(model, lambda x, y: F.cross_entropy(model(x), y), _batch())
    with pytest.raises(sordino.Error):
        private.norms(model, lambda x, y: 1 / 0, _batch())
    assert before == (torch.jit.is_tracing, torch.empty, torch.autograd.Function.apply,
                      torch.Tensor.new_empty)


def test_messages_have_no_traceback_and_no_assertion():
    model = _net()

    def loss(x, y):
        raise KeyError('hidden')
    with pytest.raises(sordino.Error) as error:
        private.norms(model, loss, _batch())
    assert 'KeyError' in str(error.value) and 'site-packages' not in str(error.value)
