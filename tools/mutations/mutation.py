"""One way of breaking the code, and the test that is meant to notice."""
from dataclasses import dataclass


@dataclass
class Mutation:
    name: str
    file: str  # below src/sordino
    old: str | tuple[str, ...]  # one piece of text, or several that change together
    new: str | tuple[str, ...]
    noticed_by: str  # a gtest filter: the tests whose names say so
