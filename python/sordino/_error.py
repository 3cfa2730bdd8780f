"""The one exception of the package."""


class Error(ValueError):
    """A mistake of the caller, in one sentence: what was given, what is allowed, what to do."""
