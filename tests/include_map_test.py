"""Holds the #include lines of src/sordino against the map of ARCHITECTURE.md.

    include_map_test.py SOURCE_DIR   checks every module, then the checker itself

A module may include its own headers and those of the modules named behind it. The tier without
torch includes no header of libtorch, except in benchmarks, which stand beside torch's own speed.
"""
import pathlib
import re
import sys
import tempfile

NO_TORCH = {
    'base': set(),
    'random': {'base'},
    'accounting': {'base'},
    'mechanisms': {'base', 'random', 'accounting'},
    'theory': {'base', 'accounting'},
    'ledger': {'base', 'accounting'},
    'report': {'base', 'accounting'},
}
TORCH = {
    'data': {'base', 'random', 'accounting'},
    'gradients': {'base'},
    'models': {'base'},
    'distributed': {'base'},
}
TORCH['training'] = {*NO_TORCH, *TORCH}
TORCH['convex'] = TORCH['training'] - {'distributed'}
TORCH['audit'] = {*TORCH['training'], 'training', 'convex'}
LEAVES = {'cli': {*NO_TORCH, *TORCH}, 'torch_cli': {*NO_TORCH, *TORCH, 'cli'},
          'python': {*NO_TORCH, *TORCH}}
MAP = {**NO_TORCH, **TORCH, **LEAVES}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
TORCH_HEADER = re.compile(r'(torch|ATen|c10)/')
SUFFIXES = {'.h', '.cc', '.cu', '.cuh'}


def violations(root):
    """One sentence for each include line under root/sordino that the map does not allow."""
    found = []
    for path in sorted((root / 'sordino').rglob('*')):
        if path.suffix not in SUFFIXES:
            continue
        place = path.relative_to(root)
        module = place.parts[1]
        if module not in MAP:
            found.append(f'{place}: the module {module} is not on the map')
            continue
        for quote, header in INCLUDE.findall(path.read_text(encoding='utf-8')):
            parts = header.split('/')
            if parts[0] == 'sordino':
                other = parts[1]
                if other not in MAP:
                    found.append(f'{place} includes {header}: {other} is not on the map')
                elif other != module and other not in MAP[module]:
                    found.append(f'{place} includes {header}: {module} may not include {other}')
                elif quote == '<':
                    found.append(f'{place} includes <{header}>: headers of ours stand in quotes')
                elif not (root / header).exists():
                    found.append(f'{place} includes {header}: there is no such header')
            elif quote == '"':
                found.append(f'{place} includes "{header}": headers of ours start with sordino/')
            elif TORCH_HEADER.match(header) and module in {*NO_TORCH, 'cli'}:
                if not path.stem.endswith('_benchmark'):
                    found.append(f'{place} includes {header}: {module} builds without libtorch')
    return found


def check_the_checker():
    """Every kind of violation is found in a sample that has just that one, and no other."""
    def sample(files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {'sordino/base/a.h': '', 'sordino/random/r.h': '', **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding='utf-8')
            return violations(root)

    allowed = sample({'sordino/random/x.cc':
                      '#include <vector>\n#include "sordino/base/a.h"\n#include "sordino/random/r.h"',
                      'sordino/random/x_benchmark.cc': '#include <torch/torch.h>'})
    assert allowed == [], allowed
    for name, line, word in [
            ('sordino/base/x.cc', '#include "sordino/random/r.h"', 'base may not include random'),
            ('sordino/base/x.h', '  #  include "sordino/random/r.h"', 'may not include'),
            ('sordino/base/x_test.cc', '#include "sordino/random/r.h"', 'may not include'),
            ('sordino/random/x.cc', '#include <sordino/base/a.h>', 'in quotes'),
            ('sordino/random/x.cc', '#include "../base/a.h"', 'start with sordino/'),
            ('sordino/random/x.cc', '#include "sordino/base/gone.h"', 'no such header'),
            ('sordino/random/x.cc', '#include "sordino/extra/x.h"', 'not on the map'),
            ('sordino/random/x.cc', '#include <torch/torch.h>', 'without libtorch'),
            ('sordino/extra/x.cc', '', 'the module extra is not on the map')]:
        found = sample({name: line + '\n'})
        assert len(found) == 1 and word in found[0], (name, line, found)


def main():
    root = pathlib.Path(sys.argv[1])
    if not (root / 'sordino/base').is_dir():
        sys.exit(f'{root} has no folder sordino/base')
    check_the_checker()
    found = violations(root)
    print('\n'.join(found) or 'every include line is on the map')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
