"""What tools/tidy reads, and when again: tidy_test.py SOURCE_DIR

A project of a few files, with a cmake that has made its build tree and a clang-tidy that finds BAD.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()

# Writes down what it reads. Two files that define the same name cannot be joined.
CLANG_TIDY = '''#!/usr/bin/env python3
import os, pathlib, re, sys
words = sys.argv[1:sys.argv.index('--')]
file = pathlib.Path(words[-1])
text = file.read_text()
if 'Unity' in file.parts:
    text = ''.join(pathlib.Path(name).read_text() for name in re.findall('"(.*)"', text))
with open(os.environ['READ'], 'a') as out:
    print(file.name, file=out)
if text.count('kNames') > 1:
    sys.exit('redefinition of kNames [clang-diagnostic-error]')
if 'BAD' in text:
    sys.exit('it is bad [bugprone-bad]')
if 'CRASH' in text:
    os.kill(os.getpid(), 9)
'''


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / 'tools').mkdir()
        for name in ('tidy', 'includes.py'):
            shutil.copy(SOURCE / 'tools' / name, self.root / 'tools')
        self.write('.clang-tidy', 'Checks: *')
        self.write('src/common.h', '')
        self.write('src/one.cc', '#include "common.h"\nint a;')
        self.write('src/two.cc', 'int b;')
        self.write('src/alone.cc', 'int c;')
        unit = self.root / 'build/tidy/Unity/unit.cxx'
        made = self.root / 'build/tidy/made.cc'
        self.write(unit, f'#include "{self.root}/src/one.cc"\n#include "{self.root}/src/two.cc"\n')
        self.write(made, 'int d;')
        self.write('build/tidy/compile_commands.json', json.dumps(
            [{'file': str(file), 'command': f'g++ -O2 -o x.o -c {file}'}
             for file in (unit, self.root / 'src/alone.cc', made)]))
        self.write('bin/clang-tidy', CLANG_TIDY).chmod(0o755)
        self.write('bin/cmake', '#!/bin/sh\nexit 0\n').chmod(0o755)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tidy(self, *words, path=None):
        """The exit status, and the files that clang-tidy was given, in alphabetical order."""
        read = self.root / 'read'
        read.write_text('')
        done = subprocess.run(
            [sys.executable, self.root / 'tools/tidy', *words], capture_output=True, text=True, check=False,
            env={**os.environ, 'READ': str(read),
                 'PATH': path or f"{self.root}/bin:{os.environ['PATH']}"})
        self.output = done.stdout + done.stderr
        return done.returncode, sorted(read.read_text().split())

    def test_joined_files_are_read_together_and_what_the_build_made_is_not(self):
        self.assertEqual(self.tidy(), (0, ['alone.cc', 'unit.cxx']))
        self.assertIn('every file is clean', self.output)

    def test_what_was_clean_is_read_again_when_it_changes(self):
        self.tidy()
        self.assertEqual(self.tidy(), (0, []))
        self.write('src/two.cc', 'int changed;')
        self.assertEqual(self.tidy(), (0, ['unit.cxx']))
        self.write('src/common.h', 'int changed_too;')
        self.assertEqual(self.tidy(), (0, ['unit.cxx']))
        self.write('.clang-tidy', 'Checks: bugprone-*')
        self.assertEqual(self.tidy(), (0, ['alone.cc', 'unit.cxx']))

    def test_files_that_cannot_be_joined_are_read_one_by_one(self):
        self.write('src/one.cc', 'int kNames;')
        self.write('src/two.cc', 'int kNames;')
        self.assertEqual(self.tidy(), (0, ['alone.cc', 'one.cc', 'two.cc', 'unit.cxx']))

    def test_a_finding_is_told_and_found_again(self):
        self.write('src/two.cc', 'int BAD;')
        for _ in range(2):
            status, read = self.tidy()
            self.assertEqual(status, 1)
            self.assertIn('unit.cxx', read)
            self.assertIn('it is bad', self.output)

    def test_a_clang_tidy_that_says_nothing_has_not_found_files_clean(self):
        for _ in range(2):
            self.write('src/alone.cc', 'int CRASH;')
            self.assertEqual(self.tidy('alone'), (1, ['alone.cc']))
            self.assertIn('clang-tidy ended with -9', self.output)

    def test_a_missing_clang_tidy_is_told(self):
        (self.root / 'bin/clang-tidy').unlink()
        for tool in ('python3', 'env'):
            os.symlink(shutil.which(tool), self.root / 'bin' / tool)
        self.assertEqual(self.tidy(path=f'{self.root}/bin'), (2, []))
        self.assertEqual(self.output, "tidy: clang-tidy is not installed; run 'tools/setup --tidy'.\n")

    def test_a_pattern_chooses_files(self):
        self.assertEqual(self.tidy('alone'), (0, ['alone.cc']))
        self.assertEqual(self.tidy('nowhere'), (2, []))
        self.assertIn("no source file has 'nowhere' in its path", self.output)
        self.assertEqual(self.tidy('('), (2, []))
        self.assertIn('not a regular expression', self.output)


if __name__ == '__main__':
    unittest.main()
