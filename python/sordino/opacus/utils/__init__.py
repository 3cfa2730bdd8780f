from sordino.opacus.utils import batch_memory_manager

__all__ = ['batch_memory_manager']
