"""x.cc has x_test.cc beside it, or a row of docs/tests.md says which test it has. Kernels have one folder.

  test_places_test.py PROJECT
"""
import fnmatch
import pathlib
import re
import sys

# Programs of their own, and what is for tests.
PROGRAMS = ('main', 'command_test_support', 'calibration_sweep', 'width_sweep', 'contradiction_hunt',
            'false_alarms', 'lira_figure', 'tangent_kernel_figure', 'scale_figures')


def rows_of(page):
    """(folder, patterns, tests) of each row."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if line.startswith('| `') and len(cells) == 3:
            yield cells[0].strip('`'), *(re.findall(r'`([^`]+)`', cell) for cell in cells[1:])


def test_exists(project, folder, name):
    """Of `x_test` of the folder, `module/x_test`, or a folder of the project."""
    if name.endswith('/'):
        return (project / name).is_dir()
    place = name if '/' in name else f'{folder}/{name}'
    return (project / 'src/sordino' / f'{place}.cc').is_file()


def violations(project):
    """One sentence for each source without a test, and for each row that is stale."""
    root = project / 'src/sordino'
    without = set()
    for path in [*root.rglob('*.cc'), *root.rglob('*.cu')]:
        if path.stem.endswith(('_test', '_benchmark')) or path.stem in PROGRAMS:
            continue
        if 'testing' not in path.parts and not path.with_name(f'{path.stem}_test.cc').exists():
            without.add(path.relative_to(root))
    rows = list(rows_of((project / 'docs/tests.md').read_text(encoding='utf-8')))
    covered = set()
    found = [] if rows else ['docs/tests.md has no rows']
    for folder, patterns, tests in rows:
        found += [f'docs/tests.md names {test} for {folder}, which is not there'
                  for test in tests if not test_exists(project, folder, test)]
        for pattern in patterns:
            hits = {place for place in without
                    if str(place.parent) == folder and fnmatch.fnmatch(place.stem, pattern)}
            if not hits:
                found.append(f'docs/tests.md: every source {folder}/{pattern} has a test beside it')
            covered |= hits
    found += [f'{place} has neither {place.stem}_test.cc beside it nor a row of docs/tests.md'
              for place in without - covered]
    listed = re.findall(r'[\w/]+\.cu', (root / 'kernels/CMakeLists.txt').read_text(encoding='utf-8'))
    for path in root.rglob('*.cu'):
        place = str(path.relative_to(root))
        if not place.startswith('kernels/') or place.removeprefix('kernels/') not in listed:
            found.append(f'{place} is a kernel: it belongs in kernels/, with a line in CMakeLists.txt')
    return sorted(found)


if __name__ == '__main__':
    WRONG = violations(pathlib.Path(sys.argv[1]))
    sys.exit('\n'.join(WRONG) if WRONG else 0)
