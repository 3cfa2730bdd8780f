"""Checks that tests and benchmarks make their files in folders of their own.

    test_folder_test.py PROJECT_DIR

Tests run side by side, so a fixed path in the temporary folder makes them fail now and then. The one
way to a folder is sordino::TestFolder; in Python it is the module tempfile.
"""
import pathlib
import re
import sys

HELPER = 'src/sordino/base/testing/test_folder.h'
FIXED = re.compile(r'\bTempDir\(|\btemp_directory_path\(|\bmkd?s?temp\(|\btmpnam\(|\bgettempdir\(|'
                   r'["\']/tmp\b|["\']/var/tmp\b|["\']/dev/shm\b')


def violations(project):
    """One sentence for each line that names the temporary folder itself."""
    found = []
    for top in ['src', 'tests', 'tools', 'bench', 'examples']:
        for path in sorted((project / top).rglob('*')):
            place = str(path.relative_to(project))
            if path.suffix not in {'.h', '.cc', '.py'} or place == HELPER:
                continue
            if path.resolve() == pathlib.Path(__file__).resolve():
                continue
            for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
                if FIXED.search(line):
                    found.append(f'{place}:{number} names the temporary folder; use TestFolder '
                                 f'(or tempfile, in Python): {line.strip()}')
    return found


def check_the_checker():
    for line in ['fs::path(::testing::TempDir()) / "x"', 'std::filesystem::temp_directory_path()',
                 'std::ofstream("/tmp/x.csv")', "open('/tmp/x')", 'mkstemp(name)', 'mkdtemp(name)']:
        assert FIXED.search(line), line
    for line in ['tempfile.mkdtemp', 'const TestFolder folder;', 'attempt(x)', '"x/tmp"',
                 'tempfile.TemporaryDirectory()']:
        assert not FIXED.search(line), line


def main():
    check_the_checker()
    found = violations(pathlib.Path(sys.argv[1]))
    print('\n'.join(found) or 'no file names the temporary folder')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
