"""One file and one line make a data format: data_format_test.py PROGRAM LIST EXTENDED_LIST

PROGRAM was built with dummy_format.cc (CMakeLists.txt here) and a list that has one line more. The format must then be in
the help, in the list of formats, in errors, in a TOML file, and in a run and what the run writes.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

EXTENDED, LIST = (pathlib.Path(sys.argv.pop()) for _ in range(2))
PROGRAM = pathlib.Path(sys.argv.pop()).resolve()


def run(*words, folder='.'):
    result = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True,
                            check=False)
    return result.returncode, result.stdout, result.stderr


class DataFormatTest(unittest.TestCase):
    def test_it_is_one_file_and_one_line(self):
        before, after = (file.read_text().splitlines() for file in (LIST, EXTENDED))
        self.assertEqual(after[:-1], before)

    def test_help_lists_and_errors_know_it(self):
        for command in ('data', 'train', 'predict'):
            self.assertIn('text or dummy', ' '.join(run(command, '--help-all')[1].split()))
        self.assertIn('two numbers and a label on each line', run('data', '--formats')[1])
        formats = json.loads(run('data', '--formats', '--json')[1])['formats']
        self.assertEqual(formats[-1]['name'], 'dummy')
        code, _, error = run('data', __file__, '--format', 'dumy')
        self.assertEqual(code, 2)
        self.assertIn("did you mean 'dummy'?", error)

    def test_a_run_reads_it_by_a_toml_file_and_by_its_name(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            points = [(random.random(), random.random()) for _ in range(60)]
            rows = ''.join(f'{x} {y} {int(y > x)}\n' for x, y in points)
            (folder / 'points.dummy').write_text(rows)
            (folder / 'points').write_text(rows)
            (folder / 'train.toml').write_text(
                '[data]\nsource = "points"\nformat = "dummy"\nclasses = 2\nrecords = 60\n'
                '[model]\nname = "logistic"\n[training]\nbatch = 10\nsteps = 3\n'
                '[run]\nnon-private = true\nout = "run"\n')
            code, _, error = run('train', 'train.toml', folder=folder)
            self.assertEqual(code, 0, error)
            self.assertIn('format = "dummy"', (folder / 'run/config.toml').read_text())
            code, out, error = run('predict', '--run', 'run', '--data', 'points.dummy',
                                   folder=folder)
            self.assertEqual(code, 0, error)
            self.assertEqual(len(out.splitlines()), 61)
            code, out, error = run('data', 'points.dummy', '--shape', '2', folder=folder)
            self.assertEqual(code, 2)
            self.assertIn('the format dummy has no use for it', error)
            code, out, error = run('data', 'points.dummy', '--classes', '2', '--json',
                                   folder=folder)
            self.assertEqual(code, 0, error)
            self.assertEqual(json.loads(out)['format'], 'dummy')


if __name__ == '__main__':
    unittest.main()
