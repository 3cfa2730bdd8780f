"""Scripts for Opacus, private by Sordino.

>>> import torch, torch.nn.functional as F
>>> from sordino import opacus
>>> records = torch.utils.data.TensorDataset(torch.randn(200, 3), torch.arange(200) % 2)
>>> model = torch.nn.Linear(3, 2)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
>>> engine = opacus.PrivacyEngine()
>>> model, optimizer, loader = engine.make_private_with_epsilon(
...     module=model, optimizer=optimizer, max_grad_norm=1.0, target_epsilon=3, target_delta=1e-5,
...     epochs=2, data_loader=torch.utils.data.DataLoader(records, batch_size=50))
>>> for epoch in range(2):
...     for x, y in loader:
...         optimizer.zero_grad()
...         loss = F.cross_entropy(model(x), y)
...         loss.backward()
...         optimizer.step()
>>> engine.get_epsilon(1e-5) <= 3
True

The model is not changed, and in the body of the loop the batch is one record: the library runs the
body for all records of a batch at once, each as if it were alone, clips their gradients, charges
the step and adds noise before the optimizer sees anything.
"""
from sordino.opacus import layers, utils
from sordino.opacus.privacy_engine import PrivacyEngine

__all__ = ['PrivacyEngine', 'layers', 'utils']


def __getattr__(name):
    from sordino._error import Error
    if name in ('GradSampleModule', 'GradSampleModuleFastGradientClipping'):
        raise Error(f'{name} is not there: gradients of single records are never stored, and the '
                    'model is not wrapped; give the model itself to make_private().')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
