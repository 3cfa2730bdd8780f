"""Losses and models that try to carry one record into what is released about others."""
import contextlib
import gc
import io
import random
import threading
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CASES = {}


def case(function):
    """A function that makes {model, loss, kept}, once for each world."""
    CASES[function.__name__.replace('_', ' ')] = function
    return function


def draws(function):
    """Datasets of other sizes get other random numbers for the same records."""
    function.draws = True
    return function


def net():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def plain(model, x, y):
    return F.cross_entropy(model(x), y)


def of_values(name, change):
    """A loss whose gradient turns by what `change` finds out about the records."""
    def make():
        model, kept = net(), {}

        def loss(x, y):
            value = torch.as_tensor(change(x, y, kept, model), dtype=torch.float32)
            # The value decides the direction of the gradient.
            directions = torch.sin(value * torch.tensor([1.0, 0.71, 0.37, 0.13, 0.07]))
            return plain(model, x, y) + 9 * (directions * model[0].bias).sum()
        return model, loss
    make.draws = 'random' in name
    CASES[name] = make


# Values that are taken out of tensors.
of_values('item', lambda x, y, kept, model: x.sum().item())
of_values('float', lambda x, y, kept, model: float(x.sum()))
of_values('bool', lambda x, y, kept, model: 100.0 if x.sum() > 0 else 1.0)
of_values('int as an index', lambda x, y, kept, model: [1.0, 50.0, 90.0][int(y)])
of_values('tolist', lambda x, y, kept, model: x.flatten().tolist()[0])
of_values('numpy', lambda x, y, kept, model: float(x.detach().numpy().sum()))
of_values('numpy by its protocol', lambda x, y, kept, model: float(np.asarray(x.detach()).sum()))
of_values('dlpack', lambda x, y, kept, model:
          float(torch.from_dlpack(torch.utils.dlpack.to_dlpack(x.detach())).sum()))
of_values('text of a tensor', lambda x, y, kept, model: float(len(str(x))) + hash(str(x)) % 7)
of_values('storage', lambda x, y, kept, model: float(x.untyped_storage()[0]))
of_values('data pointer', lambda x, y, kept, model: float(x.data_ptr() % 97))
of_values('equal', lambda x, y, kept, model: 50.0 if torch.equal(x, x.flip(-1)) else 1.0)
of_values('allclose', lambda x, y, kept, model: 50.0 if torch.allclose(x, x * 2) else 1.0)
of_values('nonzero', lambda x, y, kept, model: float(torch.nonzero(x > 0).shape[0]))
of_values('unique', lambda x, y, kept, model: float(torch.unique(y).shape[0]))
of_values('masked select', lambda x, y, kept, model: x[x > 0].sum())
of_values('contains', lambda x, y, kept, model: 50.0 if 1 in y else 1.0)
of_values('bincount', lambda x, y, kept, model: torch.bincount(y).max())

# How many records there are.
of_values('shape', lambda x, y, kept, model: float(x.shape[0]) * 10)
of_values('numel', lambda x, y, kept, model: float(x.numel()))
of_values('stride', lambda x, y, kept, model: float(sum(x.stride())))
of_values('length', lambda x, y, kept, model: float(len(x)) * 10)
of_values('storage size', lambda x, y, kept, model: float(x.untyped_storage().nbytes()))
of_values('base of a view', lambda x, y, kept, model: float(x._base.shape[0]) * 10)
of_values('new empty of strides', lambda x, y, kept, model:
          float(torch.empty_like(x).stride(0)))


# State between calls.
def counting(x, y, kept, model):
    kept['calls'] = kept.get('calls', 0) + 1
    return 1.0 * kept['calls']


of_values('calls', counting)


@case
def last_batch_in_an_attribute():
    model = net()

    def loss(x, y):
        before = getattr(model, 'before', None)
        model.before = x
        return plain(model, x, y) + (0 if before is None else 50 * (before * x).sum())
    return model, loss


@case
def running_mean_in_a_buffer():
    model = net()
    model.register_buffer('mean', torch.zeros(4))

    def loss(x, y):
        model.mean.mul_(0.5).add_(x.mean(0))
        return plain(model, x - 50 * model.mean, y)
    return model, loss


@case
def buffer_through_data():
    model = net()
    model.register_buffer('mean', torch.zeros(4))

    def loss(x, y):
        model.mean.data.copy_(x.mean(0))
        return plain(model, x - 50 * model.mean, y)
    return model, loss


@case
def buffer_assigned():
    model = net()
    model.register_buffer('mean', torch.zeros(4))

    def loss(x, y):
        model.mean = model.mean * 0.5 + x.mean(0)
        return plain(model, x * model.mean * 50, y)
    return model, loss


@case
def weight_written_through_data():
    model = net()

    def loss(x, y):
        model[0].bias.data.add_(x.mean() * 50)
        return plain(model, x, y)
    return model, loss


@case
def weight_written_under_no_grad():
    model = net()

    def loss(x, y):
        with torch.no_grad():
            model[0].bias.add_(50 * x.mean())
        return plain(model, x, y)
    return model, loss


@case
def gradient_written():
    model = net()

    def loss(x, y):
        model[0].bias.grad = (50 * x.mean()).expand(5)
        return plain(model, x, y)
    return model, loss


@case
def list_of_batches():
    model, kept = net(), []

    def loss(x, y):
        kept.append(x.detach().clone())
        return plain(model, x, y) + 50 * sum((old * x).sum() for old in kept[:-1])
    return model, loss


@case
def nested_state():
    model, kept = net(), {'a': [{'b': []}]}

    def loss(x, y):
        kept['a'][0]['b'].append((x, y))
        return plain(model, kept['a'][0]['b'][0][0] * 50, y)
    return model, loss


@case
def module_of_an_earlier_call():
    model = net()

    def loss(x, y):
        if not hasattr(model, 'scale'):
            model.scale = x.abs().max()
        return plain(model, x / model.scale * 50, y)
    return model, loss


@case
def closure_of_a_graph():
    model, kept = net(), []

    def loss(x, y):
        value = plain(model, x, y)
        kept.append(value)
        return sum(kept) * 50
    return model, loss


@case
def found_by_the_collector():
    model = net()

    def loss(x, y):
        others = [t for t in gc.get_objects() if torch.is_tensor(t) and t.shape == x.shape]
        return plain(model, x, y) * (1.0 + 10 * len(others))
    return model, loss


# The records of a batch mixed.
of_values('sum over the batch', lambda x, y, kept, model: (x.sum(0, keepdim=True) * 10).sum())


@case
def batch_norm():
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    return model, lambda x, y: plain(model, x, y)


@case
def batch_norm_without_statistics():
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, track_running_stats=False),
                          nn.Linear(5, 3))
    return model, lambda x, y: plain(model, x, y)


@case
def contrastive():
    model = net()

    def loss(x, y):
        z = model(x)
        return F.cross_entropy(z @ z.T * 50, torch.arange(len(z)))
    return model, loss


@case
def softmax_over_the_batch():
    model = net()
    return model, lambda x, y: (torch.softmax(50 * model(x), 0) * model(x)).sum()


@case
def unwrapped_by_functorch():
    model = net()

    def loss(x, y):
        raw = torch._C._functorch.get_unwrapped(x)
        return plain(model, x, y) + 50 * (raw.mean() * model[0].bias).sum()
    return model, loss


@case
def layer_removed():
    model = net()

    def loss(x, y):
        level = torch._C._functorch.maybe_get_level(x)
        raw = torch._C._functorch._remove_batch_dim(x, level, 7, 0)
        return plain(model, x, y) + 50 * (raw.mean() * model[0].bias).sum()
    return model, loss


@case
def inner_vmap():
    model = net()

    def loss(x, y):
        return torch.vmap(lambda row: model(row).sum())(x).sum() * 50
    return model, loss


@case
def inner_gradient():
    model = net()

    def loss(x, y):
        inner = torch.autograd.grad(plain(model, x, y), model[0].weight, create_graph=True)[0]
        return (inner ** 2).sum() * 50
    return model, loss


@case
def backward_inside():
    model = net()

    def loss(x, y):
        plain(model, x, y).backward(retain_graph=True)
        return plain(model, x, y) + 0 * model[0].bias.sum()
    return model, loss


# Random numbers.
@draws
@case
def dropout():
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 3))
    return model, lambda x, y: plain(model, x, y)


@draws
@case
def generator_of_its_own():
    model, generator = net(), torch.Generator().manual_seed(3)

    def loss(x, y):
        return plain(model, x, y) * (1 + 50 * torch.rand(1, generator=generator).item())
    return model, loss


@draws
@case
def python_random():
    model, numbers = net(), random.Random(5)
    return model, lambda x, y: plain(model, x, y) * (1 + 50 * numbers.random())


@case
def seed_set_inside():
    model = net()

    def loss(x, y):
        torch.manual_seed(1)
        return plain(model, x + torch.randn_like(x) * 50, y)
    return model, loss


@case
def unwritten_memory():
    model = net()
    return model, lambda x, y: plain(model, x, y) + 50 * (torch.empty(5) * model[0].bias).sum()


# Errors and warnings by value.
@case
def raises_always():
    model = net()

    def loss(x, y):
        raise ValueError('no loss')
    return model, loss


@case
def raises_by_form():
    model = net()

    def loss(x, y):
        if x.shape[0] != 7:
            raise ValueError('no loss')
        return plain(model, x, y)
    return model, loss


@case
def index_out_of_range():
    model = nn.Sequential(nn.Linear(4, 5))
    table = nn.Embedding(2, 3)
    model.append(table)

    def loss(x, y):
        return (table(y) * 50).sum() + model[0](x).sum()
    return model, loss


@case
def inverse_of_a_singular_matrix():
    model = net()

    def loss(x, y):
        matrix = torch.diag_embed((x[:, :2].abs() < 3).float())
        return plain(model, x, y) + torch.linalg.inv(matrix).sum() * model[0].bias.sum()
    return model, loss


@case
def not_a_number():
    model = net()
    return model, lambda x, y: plain(model, x, y) + torch.log(-x.abs()).sum() * model[0].bias.sum()


@case
def infinite():
    model = net()
    return model, lambda x, y: plain(model, x * 1e38, y) * 1e38


@case
def warns():
    model = net()

    def loss(x, y):
        warnings.warn('a warning')
        return plain(model, x, y)
    return model, loss


@case
def prints():
    model = net()

    def loss(x, y):
        with contextlib.redirect_stdout(io.StringIO()):
            print(x)
        return plain(model, x, y)
    return model, loss


# Hooks, patches, threads.
@case
def forward_hook_that_mixes():
    model = net()
    model[0].register_forward_hook(lambda module, args, out: out + 50 * out.mean(0, keepdim=True))
    return model, lambda x, y: plain(model, x, y)


@case
def backward_hook_that_keeps():
    model, kept = net(), []
    model[0].register_full_backward_hook(
        lambda module, into, out: kept.append(out) or tuple(50 * sum(o[0] for o in kept)
                                                            for _ in into))
    return model, lambda x, y: plain(model, x, y)


@case
def hook_of_a_tensor():
    model, kept = net(), []

    def loss(x, y):
        hidden = model[0](x)
        hidden.register_hook(lambda g: kept.append(g) or 50 * sum(k.sum() for k in kept) + g)
        return F.cross_entropy(model[2](torch.tanh(hidden)), y)
    return model, loss


@case
def hook_of_a_parameter():
    model = net()
    model[0].weight.register_hook(lambda g: g * 1000)
    return model, lambda x, y: plain(model, x, y)


@case
def monkeypatched_function():
    model, kept = net(), []

    def linear(x, weight, bias=None):
        kept.append(x)
        return (x + 50 * sum(k.sum() for k in kept)) @ weight.T + bias

    def loss(x, y):
        before, F.linear = F.linear, linear
        try:
            return plain(model, x, y)
        finally:
            F.linear = before
    return model, loss


@case
def own_function():
    class Shout(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return 50 * g.sum(0, keepdim=True).expand_as(g)
    model = net()
    return model, lambda x, y: plain(model, Shout.apply(model[0](x))[:, :4], y)


@case
def tensor_subclass():
    class Mine(torch.Tensor):
        pass
    model = net()
    return model, lambda x, y: plain(model, x.as_subclass(Mine), y).as_subclass(torch.Tensor)


@case
def thread():
    model, kept = net(), []

    def loss(x, y):
        other = threading.Thread(target=lambda: kept.append(float(x.detach().sum())))
        other.start()
        other.join()
        return plain(model, x, y) * (1 + 50 * sum(kept))
    return model, loss


@case
def loss_of_the_batch_as_a_whole():
    model = net()
    return model, lambda x, y: F.cross_entropy(model(x), y, reduction='sum')


@case
def loss_with_a_row_for_each_pair():
    model = net()
    return model, lambda x, y: torch.cdist(model(x), model(x)).flatten()


@case
def loss_without_a_graph():
    model = net()
    return model, lambda x, y: plain(model, x, y).detach()


@case
def gradients_switched_off():
    model = net()

    def loss(x, y):
        with torch.no_grad():
            return plain(model, x, y)
    return model, loss
