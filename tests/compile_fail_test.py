"""Shows that a mistake does not compile: compile_fail_test.py SAMPLE INCLUDE_DIR COMPILER...

A sample compiles as it stands and must be refused with -DMISTAKE, with a message that matches
the pattern behind '// expect:'. The first half keeps the test honest: a sample that is broken
for another reason fails.
"""
import os
import re
import subprocess
import sys


def main():
    sample, include, *compiler = sys.argv[1:]
    with open(sample, encoding='utf-8') as file:
        expected = re.search(r'^// expect: (.+)$', file.read(), re.MULTILINE)
    if not expected:
        sys.exit(f"{sample}: no '// expect: pattern' line")

    def compile_sample(*defines):
        return subprocess.run(
            [*compiler, '-std=c++20', '-fsyntax-only', '-I', include, *defines, sample],
            capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'}, check=False)

    control = compile_sample()
    if control.returncode != 0:
        sys.exit(f'the control does not compile:\n{control.stderr}')
    mistake = compile_sample('-DMISTAKE')
    if mistake.returncode == 0:
        sys.exit('the mistake compiles')
    if not re.search(expected[1], mistake.stderr):
        sys.exit(f'refused, but not with "{expected[1]}":\n{mistake.stderr}')


if __name__ == '__main__':
    main()
