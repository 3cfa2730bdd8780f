from sordino.opacus.validators.module_validator import ModuleValidator

__all__ = ['ModuleValidator']
