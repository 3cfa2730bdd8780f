"""Layers by the names of Opacus: those of PyTorch work as they are."""
from torch.nn import GRU as DPGRU
from torch.nn import LSTM as DPLSTM
from torch.nn import RNN as DPRNN
from torch.nn import MultiheadAttention as DPMultiheadAttention

__all__ = ['DPGRU', 'DPLSTM', 'DPMultiheadAttention', 'DPRNN']
