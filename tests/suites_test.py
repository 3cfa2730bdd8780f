"""Checks that a suite with a test that fails is never counted as skipped.

    suites_test.py PROJECT_DIR CMAKE CTEST

cmake/WriteSuites.cmake tells CTest by the output of a program which suites were skipped, and CTest takes that before
the exit status.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = ['[  PASSED  ] 0 tests.', '[  SKIPPED ] 1 test, listed below:', '[  SKIPPED ] {}.B']
FAILED = ['[  FAILED  ] 1 test, listed below:', '[  FAILED  ] {}.A', '', ' 1 FAILED TEST']
OUTPUTS = {
    'Passes': (0, ['[  PASSED  ] 1 test.']),
    'Skips': (0, SKIPPED),
    'PassesAndSkips': (0, ['[  PASSED  ] 1 test.', *SKIPPED[1:]]),
    'Fails': (1, ['[  PASSED  ] 0 tests.', *FAILED]),
    'FailsAndSkips': (1, [*SKIPPED, *FAILED]),
    'SaysThatItSkips': (1, [*SKIPPED, 'a crash']),
}
WANTED = {'Passes': 'Passed', 'Skips': 'Skipped', 'PassesAndSkips': 'Passed', 'Fails': 'Failed',
          'FailsAndSkips': 'Failed', 'SaysThatItSkips': 'Failed'}


def program(folder):
    """A program that answers as one of GoogleTest does."""
    lines = ['#!/bin/sh', 'case $1 in', '--gtest_list_tests)']
    lines += [f"printf '{name}.\\n  A\\n'" for name in OUTPUTS] + [';;']
    for name, (status, output) in OUTPUTS.items():
        shown = '\\n'.join(line.format(name) for line in output)
        lines += [f'--gtest_filter={name}.*)', f"printf '{shown}\\n'", f'exit {status} ;;']
    path = folder / 'program'
    path.write_text('\n'.join([*lines, 'esac', '']), encoding='utf-8')
    path.chmod(0o755)
    return path


def main(project, cmake, ctest):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([cmake, '-D', f'PROGRAM={program(folder)}', '-D', 'LABEL=x',
                        '-D', f'OUTPUT={folder}/CTestTestfile.cmake',
                        '-P', f'{project}/cmake/WriteSuites.cmake'], check=True)
        run = subprocess.run([ctest], cwd=folder, capture_output=True, text=True, check=False,
                             env={key: value for key, value in os.environ.items()
                                  if not key.startswith('CTEST_')})
    found = {suite: verdict for suite, verdict in
             re.findall(r'Test +#\d+: (\w+) \.+[ *]*(Passed|Skipped|Failed)', run.stdout)}
    if found != WANTED:
        print(run.stdout)
        print(f'suites_test: {found} instead of {WANTED}')
        return 1
    print(f'{len(found)} suites have the verdict that their output means')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
