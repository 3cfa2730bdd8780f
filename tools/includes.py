"""Which headers of the project a file includes."""

import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@lru_cache(maxsize=None)
def direct_headers(file: Path) -> frozenset[Path]:
    names = INCLUDE.findall(file.read_text(encoding="utf-8"))
    found = [folder / name for name in names for folder in (ROOT / "src", file.parent)]
    return frozenset(path.resolve() for path in found if path.is_file())


@lru_cache(maxsize=None)
def all_headers(file: Path) -> frozenset[Path]:
    """Those that the file includes, and those that these include."""
    seen, left = set(), [file]
    while left:
        for header in direct_headers(left.pop()) - seen:
            seen.add(header)
            left.append(header)
    return frozenset(seen)
