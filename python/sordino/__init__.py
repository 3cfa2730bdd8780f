"""Differentially private statistics, accounting and machine learning."""
from sordino._core import Event
from sordino._error import Error

__all__ = ['Error', 'Event']
