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


def _zeros_of_sizes(x, a, b):
    y = torch.zeros(x.shape[0], 16)
    y[:, :8] = a(x)
    y[:, 8:] = torch.tanh(b(x))
    return y


def _zeros_over_time(x, a, b):
    state, states = torch.zeros(x.shape[0], 8), torch.zeros(6, x.shape[0], 8)
    for t in range(6):
        state = torch.tanh(a(x * state[:, :1]) + state)
        states[t] = state
    return torch.cat([states.mean(0), b(x)], 1)


def _zeros_scattered(x, a, b):
    order = torch.argsort(x, 1)
    y = torch.zeros(x.shape[0], 16).scatter_(1, order, a(x)[:, :6])
    y.index_add_(1, torch.arange(8) + 4, b(x))
    return y


def _zeros_added_to(x, a, b):
    y = x.new_zeros(x.shape[0], 8)
    z = torch.ones(x.shape[0], 8)
    y += a(x)
    z.mul_(b(x))
    return torch.cat([y, z], 1)


def _masks_written(x, a, b):
    h, g = a(x), b(x)
    h[h < 0] = 0.1
    g[x[:, :1].expand(-1, 8) > 0] = float(8)
    y = torch.zeros(x.shape[0], 16)
    y[x[:, 0] > 0] = 1.
    return torch.cat([h, g], 1) + y


def _counts(x, a, b):
    return torch.cat([a(x) * torch.histc(x, 8, -2, 2), b(x)], 1)


def _spectrum(x, a, b):
    f = torch.zeros(x.shape[0], 4, dtype=torch.cfloat)
    f[:, :2] = torch.fft.rfft(a(x))[:, :2] * torch.view_as_complex(a.weight[:2, :2])
    return torch.cat([torch.fft.irfft(f, 8), torch.fft.fft2(b(x).view(-1, 2, 4)).real.flatten(1)], 1)


def _grid(x, a, b):
    theta = a(x)[:, :6].view(-1, 2, 3)
    grid = F.affine_grid(theta, [x.shape[0], 1, 4, 4], align_corners=False)
    return F.grid_sample(b(x).view(-1, 1, 2, 4), grid, align_corners=False).flatten(1)


@pytest.mark.parametrize('forward', [
    _zeros_of_sizes, _zeros_over_time, _zeros_scattered, _zeros_added_to, _masks_written, _counts,
    _spectrum, _grid], ids=lambda function: function.__name__[1:])
def test_models_that_write_count_and_transform(forward):
    torch.manual_seed(3)
    model = nn.ModuleList([nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(16, 3)])
    _agrees(model, lambda x, y: F.cross_entropy(model[2](forward(x, *model[:2])), y), _batch())


def test_a_trainer_learns_once_that_a_model_writes_into_zeros():
    model, calls = _net(), []

    def loss(x, y):
        calls.append(1)
        padded = torch.zeros(x.shape[0], 6)
        padded[:, :4] = x[:, :4]
        calls.append(2)
        return F.cross_entropy(model(padded), y)
    steps = private.Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1),
                            torch.utils.data.TensorDataset(*_batch()), noise=1, delta=1e-5,
                            sampling='full', steps=3, clip=0.1, insecure_seed=4, progress=False)
    for step in steps:
        step(loss)
    assert calls.count(1) == calls.count(2) + 1


@pytest.mark.parametrize('norm', [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm,
                                  nn.utils.parametrizations.weight_norm,
                                  nn.utils.parametrizations.orthogonal])
@pytest.mark.parametrize('training', [True, False])
def test_weights_that_are_computed(norm, training):
    torch.manual_seed(1)
    model = nn.Sequential(norm(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 3)).train(training)
    state = {name: value.clone() for name, value in model.state_dict().items()}

    def loss(x, y):
        # Each pass begins at the same estimate of the largest singular value.
        for name, value in model.named_buffers():
            value.data.copy_(state[name])
        return F.cross_entropy(model(x), y)
    _agrees(model, loss, _batch())


@pytest.mark.parametrize('norm_first', [True, False])
@pytest.mark.parametrize('training', [True, False])
def test_a_stock_transformer_with_padding(norm_first, training):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=norm_first)
    model = nn.ModuleDict({'table': nn.Embedding(20, 8, padding_idx=0), 'head': nn.Linear(8, 3),
                           'encoder': nn.TransformerEncoder(layer, 2)}).train(training)
    tokens = torch.randint(1, 20, (5, 7))
    for i in range(5):
        tokens[i, 7 - i:] = 0

    def loss(tokens, y):
        padding = tokens == 0
        h = model['encoder'](model['table'](tokens), src_key_padding_mask=padding)
        return F.cross_entropy(model['head'](h.masked_fill(padding.unsqueeze(-1), 0).sum(1)), y)
    _agrees(model, loss, (tokens, torch.arange(5) % 3))


class _Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(9, 4), nn.LSTM(4, 5, batch_first=True)

    def forward(self, tokens):
        lengths = (tokens != 0).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.table(tokens), lengths, batch_first=True,
                                                   enforce_sorted=False)
        return self.layer(packed)[1][0][-1]


def _complex_weights():
    layer = nn.Linear(6, 3)
    layer.filter = nn.Parameter(torch.randn(4, dtype=torch.cfloat))
    return layer


@pytest.mark.parametrize('make, forward, sentence', [
    (_Packed, lambda m, x: m((x > 0).long() + 1), 'on the padded sequence, and choose the steps'),
    (lambda: nn.Linear(6, 3), lambda m, x: m(x[x > 0].mean() + x), 'weighted with the mask'),
    (lambda: nn.Linear(6, 3), lambda m, x: m(x.index_copy(1, torch.where(x[0] > 0)[0], x)),
     'weighted with the mask'),
    (lambda: nn.Linear(6, 3), lambda m, x: m(x * torch.bincount(x[0].long() + 9, minlength=30)[:6]),
     'count with one_hot and a sum'),
    (_complex_weights, lambda m, x: m(torch.fft.irfft(torch.fft.rfft(x) * m.filter, 6)),
     'in a last dimension of two'),
], ids=['packed', 'masked', 'where', 'bincount', 'complex weights'])
def test_a_refusal_names_a_way_out(make, forward, sentence):
    torch.manual_seed(1)
    model = make()
    with pytest.raises(sordino.Error, match=sentence):
        private.norms(model, lambda x, y: F.cross_entropy(forward(model, x), y), _batch())


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
