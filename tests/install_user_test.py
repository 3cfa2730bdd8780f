"""What tools/install-user does is what it says: install_user_test.py SOURCE_DIR BUILD_DIR"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(2)).resolve()
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()


class InstallUserTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name) / 'tree'
        self.home = pathlib.Path(folder.name) / 'home'
        (self.tree / 'tools').mkdir(parents=True)
        self.home.mkdir()
        shutil.copy(SOURCE / 'tools/install-user', self.tree / 'tools')

    def build(self):
        (self.tree / 'build').mkdir()
        os.symlink(BUILD, self.tree / 'build/release')

    def install(self, *words, first_on_path=()):
        path = os.pathsep.join([*map(str, first_on_path), os.environ['PATH']])
        return subprocess.run([self.tree / 'tools/install-user', *words], text=True, check=False,
                              capture_output=True, env={**os.environ, 'HOME': str(self.home), 'PATH': path})

    def test_names_every_file_that_it_installs(self):
        self.build()
        result = self.install()
        self.assertEqual(result.returncode, 0, result.stderr)
        prefix = self.home / '.local'
        self.assertIn('Installed from build/release:\n', result.stdout)
        programs = re.findall(r'^  (/\S*/bin/\S+)$', result.stdout, re.MULTILINE)
        self.assertEqual(sorted(programs), sorted(map(str, (prefix / 'bin').iterdir())))
        self.assertIn(str(prefix / 'bin/sordino'), programs)
        self.assertIn(f"  {len(list((prefix / 'share/man/man1').iterdir()))} manual pages", result.stdout)
        completions = [path for path in (prefix / 'share').rglob('*')
                       if path.is_file() and path.parent.name != 'man1']
        self.assertEqual(len(completions), 3)
        libtorch = re.search(r'loads libtorch from (.*): leave it there', result.stdout)
        self.assertEqual(libtorch is not None, (prefix / 'bin/sordino-torch').exists())
        if libtorch:
            self.assertTrue((pathlib.Path(libtorch[1]) / 'libtorch_cpu.so').exists())
        if shutil.which('sordino') is None:
            self.assertIn(f'export PATH="{prefix}/bin:$PATH"\n', result.stdout)

    def test_says_which_program_a_shell_starts(self):
        self.build()
        other = self.home / 'other'
        other.mkdir()
        (other / 'sordino').write_text('#!/bin/sh\n')
        (other / 'sordino').chmod(0o755)
        mine = self.home / 'mine'
        self.assertIn(f'Another sordino comes first on your path: {other}/sordino\n',
                      self.install(mine, first_on_path=[other]).stdout)
        self.assertIn("'sordino' starts it.", self.install(mine, first_on_path=[mine / 'bin']).stdout)

    def test_refuses_where_nothing_was_built(self):
        result = self.install()
        self.assertEqual((result.returncode, result.stdout), (2, ''))
        self.assertIn('build it with ./quickstart', result.stderr)
        self.assertEqual(list(self.home.iterdir()), [])


if __name__ == '__main__':
    unittest.main()
