"""Layers that cannot be trained privately, and what to put in their place."""
import copy
import math
from typing import List, Optional

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from sordino._error import Error


def _problem(name, layer):
    if isinstance(layer, _BatchNorm) and not isinstance(layer, _InstanceNorm) and layer.training:
        return Error(f'the layer {name!r} is a batch norm, which normalises over the records of a '
                     'batch; replace it by group norm (ModuleValidator.fix), or put it into '
                     'evaluation mode.')
    if isinstance(layer, _InstanceNorm) and layer.track_running_stats and layer.training:
        return Error(f'the layer {name!r} keeps running statistics of records; set '
                     'track_running_stats=False (ModuleValidator.fix).')
    return None


class ModuleValidator:
    """What can be said of a model without records.

    Everything else that cannot be trained privately is found before the first step is charged.
    Layers such as LSTM, GRU and MultiheadAttention stay as they are.
    """

    @classmethod
    def validate(cls, module: nn.Module, *, strict: bool = False) -> List[Error]:
        """The errors; with `strict` the first one is raised."""
        problems = [_problem(name, layer) for name, layer in module.named_modules()]
        errors = [error for error in problems if error is not None]
        if strict and errors:
            raise errors[0]
        return errors

    @classmethod
    def is_valid(cls, module: nn.Module) -> bool:
        return not cls.validate(module)

    @classmethod
    def fix(cls, module: nn.Module, *, num_groups: Optional[int] = None,
            replace_bn_with_in: bool = False) -> nn.Module:
        """A copy with group norm (or instance norm) instead of batch norm.

        Batch norms whose parameters are frozen stay: put them into evaluation mode.
        """
        if replace_bn_with_in and num_groups is not None:
            raise Error('num_groups and replace_bn_with_in are both given; give one of them.')
        module = copy.deepcopy(module)
        for name, layer in list(module.named_modules()):
            new = _fixed(layer, num_groups, replace_bn_with_in)
            if new is layer:
                continue
            if not name:
                return new
            parent, _, child = name.rpartition('.')
            setattr(module.get_submodule(parent), child, new)
        return module

    @classmethod
    def fix_and_validate(cls, module: nn.Module, **options) -> nn.Module:
        fixed = cls.fix(module, **options)
        cls.validate(fixed, strict=True)
        return fixed


def _fixed(layer, num_groups, replace_bn_with_in):
    if isinstance(layer, _InstanceNorm):
        if layer.track_running_stats:
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None
        return layer
    if not isinstance(layer, _BatchNorm):
        return layer
    parameters = list(layer.parameters())
    if parameters and not any(value.requires_grad for value in parameters):
        return layer
    features = layer.num_features
    if not replace_bn_with_in:
        if num_groups and features % num_groups:
            raise Error(f'num_groups is {num_groups}, which does not divide the {features} '
                        'features of a batch norm; leave it out, or give another number.')
        new = nn.GroupNorm(num_groups or math.gcd(32, features), features, affine=layer.affine)
    else:
        kinds = {nn.BatchNorm1d: nn.InstanceNorm1d, nn.BatchNorm2d: nn.InstanceNorm2d,
                 nn.BatchNorm3d: nn.InstanceNorm3d}
        kind = next((kinds[of] for of in kinds if isinstance(layer, of)), None)
        if kind is None:
            raise Error(f'no instance norm can replace {type(layer).__name__}; leave '
                        'replace_bn_with_in out.')
        new = kind(features)
    return new.to(parameters[0].device) if parameters else new
