"""Checks the #include lines of src/sordino against the map of ARCHITECTURE.md.

    include_map_test.py PROJECT_DIR CMAKE   checks the checker itself, then every module

The table of ARCHITECTURE.md is the map; cmake/SordinoMap.cmake reads it too, and must read the same.
A module may include its own headers and those of the modules named in its row. The tier without
torch includes no header of libtorch, except in benchmarks, which stand beside torch's own speed.

Where a header lies says who may include it, and only public headers are installed:

    x.h                   programs, of which examples/ and tests/install* include nothing else;
                          it names public headers of modules, and no module includes it
    module/x.h            everybody; another module, a header for programs or a page of docs/ names it
    module/internal/x.h   the module itself, but not its public headers
    module/testing/x.h    tests and benchmarks

The leaf `python` lies beside src: the includes of python/src follow the map too, and a header of its own is
named without a folder.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple


class Row(NamedTuple):
    torch: bool
    has_code: bool
    may_include: tuple


ROW = re.compile(r'^\| (no torch|torch) \| ([^|]*)`([a-z_]+)`[^|]* \| [^|]* \| ([^|]*) \|$',
                 re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
TORCH_HEADER = re.compile(r'(torch|ATen|c10)/')
SUFFIXES = {'.h', '.cc', '.cu', '.cuh'}
# Programs, which install no header.
PROGRAMS = {'cli', 'torch_cli', 'python'}
# What lies beside src/, not in src/sordino.
LEAF = 'python'


def read_map(text):
    """The rows of the table, by module."""
    return {module: Row(tier == 'torch', not mark.startswith('*'),
                        tuple(re.findall('[a-z_]+', deps)))
            for tier, mark, module, deps in ROW.findall(text)}


def map_violations(rows, sources):
    """One sentence for each row or folder that the other one lacks, and for each unknown name."""
    found = []
    folders = {path.name for path in sources.iterdir() if path.is_dir()}
    for module in sorted(folders - set(rows)):
        found.append(f'the module {module} is not on the map')
    above = []
    for module, row in rows.items():
        folder = sources.parents[1] / LEAF if module == LEAF else sources / module
        if row.has_code and not (folder / 'CMakeLists.txt').exists():
            found.append(f'the map has a row for {module}, but there is no such module')
        if not row.has_code and module in folders:
            found.append(f'{module} has code but stands in italics on the map')
        for other in row.may_include:
            if other not in above:
                found.append(f'{module} may include {other}, which has no row above it')
            elif rows[other].torch and not row.torch:
                found.append(f'{module} needs no libtorch but may include {other}')
        above.append(module)
    return found


def include_violations(rows, root):
    """One sentence for each include line under root/sordino that the map does not allow."""
    found = []
    for path in sorted((root / 'sordino').rglob('*')):
        place = path.relative_to(root)
        if path.suffix not in SUFFIXES or (place.parts[1] not in rows and not for_programs(place)):
            continue
        for quote, header in INCLUDE.findall(path.read_text(encoding='utf-8')):
            if wrong := wrong_include(rows, root, place, quote, header):
                found.append(f'{place} includes {header}: {wrong}')
    for path in sorted((root.parent / LEAF / 'src').rglob('*')):
        place = pathlib.Path('sordino', LEAF, path.name)
        for quote, header in INCLUDE.findall(path.read_text(encoding='utf-8')):
            if quote == '"' and (path.parent / header).exists():
                continue
            if wrong := wrong_include(rows, root, place, quote, header):
                found.append(f'{path.relative_to(root.parent)} includes {header}: {wrong}')
    return found


def for_programs(place):
    """Whether it lies in no module: a header for programs."""
    return len(place.parts) == 2 and place.parts[0] == 'sordino'


def program_violations(project):
    """One sentence for each header of a module that an example or an installed program includes."""
    return [f'{path.relative_to(project)} includes {header}: programs include sordino/<name>.h'
            for top in ['examples', 'tests/install', 'tests/install_torch']
            for path in sorted((project / top).glob('*.cc'))
            for _, header in INCLUDE.findall(path.read_text(encoding='utf-8'))
            if header.startswith('sordino/') and not for_programs(pathlib.Path(header))]


def wrong_include(rows, root, place, quote, header):
    """What is wrong with one include line of the file at `place`, or nothing."""
    module = place.parts[1]
    parts = header.split('/')
    if for_programs(place):
        if place.suffix != '.h' or quote != '"' or parts[0] != 'sordino' or \
                not is_public(pathlib.Path(header)) or not (root / header).exists():
            return 'a header for programs includes public headers of modules'
        return None
    if parts[0] != 'sordino':
        if quote == '"':
            return 'headers of ours start with sordino/'
        if TORCH_HEADER.match(header) and not rows[module].torch and \
                not place.stem.endswith('_benchmark'):
            return f'{module} builds without libtorch'
        return None
    other = parts[1]
    if for_programs(pathlib.Path(header)):
        return 'it is for programs; include the headers of modules'
    if other not in rows:
        return f'{other} is not on the map'
    if other != module and other not in rows[module].may_include:
        return f'{module} may not include {other}'
    if quote == '<':
        return 'headers of ours stand in quotes'
    if not (root / header).exists():
        return 'there is no such header'
    if 'internal' in parts[2:-1]:
        if other != module:
            return f'it is internal to {other}'
        if is_public(place):
            return 'a public header may not include an internal one'
    if 'testing' in parts[2:-1] and not is_for_tests(place):
        return 'only tests and benchmarks may include what lies in testing/'
    return None


def is_public(place):
    return place.suffix in {'.h', '.cuh'} and len(place.parts) == 3 and \
        place.parts[1] not in PROGRAMS


def is_for_tests(place):
    """Tests, benchmarks, what they share, and programs that are built with the tests."""
    return 'testing' in place.parts or place.stem.endswith(
        ('_test', '_benchmark', 'test_support', '_hunt', '_sweep'))


def placement_violations(project):
    """One sentence for each header that lies among the public ones and is not one."""
    sources = project / 'src'
    includes = {}  # by file, relative to src or to the project
    for top in ['src', 'examples', 'tests', 'fuzz', LEAF]:
        for path in sorted((project / top).rglob('*')):
            if path.suffix in SUFFIXES:
                place = path.relative_to(sources if top == 'src' else project)
                includes[place] = {pathlib.Path(header) for _, header in
                                   INCLUDE.findall(path.read_text(encoding='utf-8'))}
    pages = ' '.join(page.read_text(encoding='utf-8') for page in
                     [*sorted((project / 'docs').glob('*.md')), project / 'README.md'])
    public = {place for place in includes if place.parts[0] == 'sordino' and is_public(place)}
    used = {header for header in public if re.search(rf'\b{header.name}\b', pages)}
    for place, headers in includes.items():
        if not is_for_tests(place):
            used |= {header for header in headers & public
                     if place.parts[:2] != header.parts[:2]}
    unseen = sorted(used)
    while unseen:  # what a public header includes is public too
        more = (includes[unseen.pop()] & public) - used
        used |= more
        unseen.extend(more)
    found = []
    for header in sorted(public):
        if is_for_tests(header) or pathlib.Path('gtest/gtest.h') in includes[header]:
            found.append(f'{header} is for tests: it belongs in testing/')
        elif header not in used:
            found.append(f'{header}: no other module, header for programs or page of docs/ names '
                         'it, so it belongs in internal/')
    return found


def cmake_violations(rows, project, cmake):
    """One sentence for each row that CMake reads otherwise."""
    built = {module for module, row in rows.items() if row.has_code}
    expected = [('torch' if rows[module].torch else 'no torch') + f'|{module}|' +
                ' '.join(other for other in rows[module].may_include if other in built)
                for module in rows if module in built]
    output = subprocess.run(
        [cmake, f'-DMAP={project}/ARCHITECTURE.md', '-P', f'{project}/cmake/SordinoMap.cmake'],
        capture_output=True, text=True, check=True).stdout
    read = [line.removeprefix('-- ') for line in output.splitlines()]
    return [f'only one of CMake and this test reads the row {row}'
            for row in sorted({*expected} ^ {*read})]


SAMPLE_MAP = '''
| tier | module | what lives there | may include |
|---|---|---|---|
| no torch | [`base`](docs/base.md) | types | – |
| no torch | `random` | streams, [noise](docs/noise.md) | base |
| no torch | *`theory`* | bounds | base random |
| torch | `data` | readers | base random theory |

| torch of another table | `extra` |
'''
SAMPLE_FILES = {
    'sordino/base/CMakeLists.txt': '', 'sordino/base/a.h': '',
    'sordino/random/CMakeLists.txt': '', 'sordino/random/r.h': '',
    'sordino/data/CMakeLists.txt': '', 'sordino/data/d.h': '#include <torch/torch.h>',
}


# A leaf beside src, and its row.
SAMPLE_LEAF = {'../python/CMakeLists.txt': '', '../python/src/errors.h': '',
               '../python/src/x.cc': '#include "errors.h"\n#include "sordino/data/d.h"'}
SAMPLE_LEAF_ROW = ('| base random theory |\n',
                   '| base random theory |\n| torch | `python` | bindings | data |\n')


def sample(files, table=SAMPLE_MAP):
    """The violations of a small project; a file whose text is None is left out."""
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        root = project / 'src'
        (project / 'README.md').write_text('Read `a.h`, `r.h` and `d.h`.', encoding='utf-8')
        for name, text in {**SAMPLE_FILES, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                (root / name).write_text(text, encoding='utf-8')
        rows = read_map(table)
        return (map_violations(rows, root / 'sordino') + include_violations(rows, root) +
                placement_violations(project) + program_violations(project))


def check_the_checker():
    """Every kind of violation is found in a sample that has just that one, and no other."""
    rows = read_map(SAMPLE_MAP)
    assert rows == {'base': Row(False, True, ()), 'random': Row(False, True, ('base',)),
                    'theory': Row(False, False, ('base', 'random')),
                    'data': Row(True, True, ('base', 'random', 'theory'))}, rows
    allowed = sample({'sordino/random/x.cc':
                      '#include <vector>\n#include "sordino/base/a.h"\n#include "sordino/random/r.h"',
                      'sordino/random/x_benchmark.cc': '#include <torch/torch.h>',
                      'sordino/random/internal/i.h': '', 'sordino/random/testing/t.h': '',
                      'sordino/random/internal/i.cc': '#include "sordino/random/internal/i.h"',
                      'sordino/random/y.cc': '#include "sordino/random/internal/i.h"',
                      'sordino/data/x_test.cc': '#include "sordino/random/testing/t.h"',
                      'sordino/data/x.cc': '#include "sordino/random/used.h"',
                      'sordino/random/used.h': '#include "sordino/random/below.h"',
                      'sordino/random/below.h': '',
                      'sordino/run.h': '#include "sordino/data/d.h"',
                      '../examples/x.cc': '#include "sordino/run.h"', **SAMPLE_LEAF},
                     SAMPLE_MAP.replace(*SAMPLE_LEAF_ROW))
    assert allowed == [], allowed
    for name, line, word in [
            ('sordino/base/x.cc', '#include "sordino/random/r.h"', 'base may not include random'),
            ('sordino/base/a.h', '  #  include "sordino/random/r.h"', 'may not include'),
            ('sordino/base/x_test.cc', '#include "sordino/random/r.h"', 'may not include'),
            ('sordino/random/x.cc', '#include <sordino/base/a.h>', 'in quotes'),
            ('sordino/random/x.cc', '#include "../base/a.h"', 'start with sordino/'),
            ('sordino/random/x.cc', '#include "sordino/base/gone.h"', 'no such header'),
            ('sordino/random/x.cc', '#include "sordino/extra/x.h"', 'not on the map'),
            ('sordino/random/x.cc', '#include <torch/torch.h>', 'without libtorch'),
            ('sordino/extra/x.cc', '', 'the module extra is not on the map'),
            ('sordino/theory/x.cc', '', 'theory has code but stands in italics'),
            ('sordino/data/CMakeLists.txt', None, 'a row for data, but there is no such module'),
            ('sordino/random/x.cc', '#include "sordino/base/internal/i.h"', 'internal to base'),
            ('sordino/random/x_test.cc', '#include "sordino/base/internal/i.h"', 'internal to base'),
            ('sordino/base/a.h', '#include "sordino/base/internal/i.h"', 'a public header may not'),
            ('sordino/base/x.cc', '#include "sordino/base/testing/t.h"', 'only tests'),
            ('sordino/base/a.h', '#include <gtest/gtest.h>', 'a.h is for tests'),
            ('sordino/base/x_test_support.h', '', 'x_test_support.h is for tests'),
            ('sordino/base/x.h', '', 'belongs in internal/'),
            ('sordino/run.h', '#include "sordino/base/internal/i.h"', 'includes public headers'),
            ('sordino/run.h', '#include "sordino/base/gone.h"', 'includes public headers'),
            ('sordino/run.h', '#include <vector>', 'includes public headers'),
            ('sordino/run.cc', '#include "sordino/base/a.h"', 'includes public headers'),
            ('sordino/base/x.cc', '#include "sordino/run.h"', 'it is for programs'),
            ('../examples/x.cc', '#include "sordino/base/a.h"', 'programs include sordino/<name>.h'),
            ('../tests/install/x.cc', '#include "sordino/base/a.h"', 'programs include')]:
        found = sample({name: line, 'sordino/base/internal/i.h': '', 'sordino/base/testing/t.h': ''})
        assert len(found) == 1 and word in found[0], (name, line, found)
    for name, line, word in [
            ('../python/src/y.cc', '#include "sordino/base/a.h"', 'python may not include base'),
            ('../python/src/y.cc', '#include "gone.h"', 'start with sordino/'),
            ('../python/src/y.cc', '#include "sordino/data/internal/i.h"', 'internal to data'),
            ('sordino/data/x.cc', '#include "sordino/python/x.h"', 'data may not include python'),
            ('../python/CMakeLists.txt', None, 'a row for python, but there is no such module')]:
        found = sample({**SAMPLE_LEAF, 'sordino/data/internal/i.h': '', name: line},
                       SAMPLE_MAP.replace(*SAMPLE_LEAF_ROW))
        assert len(found) == 1 and word in found[0], (name, line, found)
    uses = {'sordino/data/x.cc': '#include "sordino/random/r.h"'}
    for old, new, word in [
            ('| no torch | `random` | streams, [noise](docs/noise.md) | base |\n', '',
             'random is not on the map'),
            ('| base random theory |', '| base theory |', 'data may not include random'),
            ('| base random |', '| base data |', 'theory may include data, which has no row above'),
            ('| torch | `data` |', '| no torch | `data` |', 'data builds without libtorch'),
            ('| – |', '| extra |', 'base may include extra, which has no row above')]:
        assert SAMPLE_MAP.count(old) == 1, old
        found = sample(uses, SAMPLE_MAP.replace(old, new))
        assert any(word in sentence for sentence in found), (old, new, found)


def main():
    project, cmake = pathlib.Path(sys.argv[1]), sys.argv[2]
    check_the_checker()
    rows = read_map((project / 'ARCHITECTURE.md').read_text(encoding='utf-8'))
    found = (map_violations(rows, project / 'src/sordino') +
             include_violations(rows, project / 'src') + placement_violations(project) +
             program_violations(project) +
             cmake_violations(rows, project, cmake))
    print('\n'.join(found) or f'{len(rows)} rows, and every include line is on the map')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
