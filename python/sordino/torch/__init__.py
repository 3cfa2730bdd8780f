"""Private training of PyTorch models as they are: no layer is replaced and no hook is set.

>>> import torch, torch.nn.functional as F
>>> import sordino.torch as private
>>> records = torch.utils.data.TensorDataset(torch.randn(200, 3), torch.arange(200) % 2)
>>> model = torch.nn.Linear(3, 2)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
>>> trainer = private.Trainer(model, optimizer, records, epsilon=3, delta=1e-5, epochs=2, batch=50,
...                           clip=1.0, progress=False)
>>> for step in trainer:
...     step(lambda x, y: F.cross_entropy(model(x), y))
>>> trainer.steps_done, trainer.epsilon() <= 3
(8, True)

The batch that the model and the loss see is one record. So a loss that is a mean over its batch is
the loss of the record, and works as it stands.
"""
from sordino.torch import _extension as _extension  # first: it says which torch fits
from sordino.torch._clipping import clipped_sum, norms
from sordino.torch._trainer import Trainer

__all__ = ['Trainer', 'clipped_sum', 'norms']
