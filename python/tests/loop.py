"""The reference: one backward pass for each record."""
import torch
from torch.utils import _pytree as pytree


def gradients(model, loss, batch):
    """For each record, the gradient of its loss by every parameter that is trained, float64."""
    leaves, tree = pytree.tree_flatten(batch)
    parameters = [value for value in model.parameters() if value.requires_grad]
    all_records = []
    for i in range(leaves[0].shape[0]):
        record = pytree.tree_unflatten([leaf[i:i + 1] for leaf in leaves], tree)
        arguments = record if isinstance(record, tuple) else (record,)
        found = torch.autograd.grad(loss(*arguments).sum(), parameters, allow_unused=True)
        all_records.append([torch.zeros_like(p).double() if g is None else g.double()
                            for p, g in zip(parameters, found)])
    return all_records


def norm(gradient):
    return torch.sqrt(sum((part ** 2).sum() for part in gradient)).item()
