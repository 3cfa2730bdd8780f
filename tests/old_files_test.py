"""Files that an earlier version of the program wrote are read: old_files_test.py SORDINO

testdata/ledger-2026-11-16.db was written by the program of commit 758a632 (2026-11-16), before
ledgers held running sums and a share of delta for losses: three releases, a training of which 100
steps were charged and 25 returned, and a note. The JSON file is what its `ledger show --json` said.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SORDINO = os.path.abspath(sys.argv.pop(1))
DATA = pathlib.Path(__file__).resolve().parent / 'testdata'
HEAD = '049dec3c4f6c260ce0924cf674503f9310a42dad2f6aa5c24e65988545e0721b'


class OldLedgerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ledger = self.folder / 'ledger.db'
        shutil.copy(DATA / 'ledger-2026-11-16.db', self.ledger)

    def run_sordino(self, *words, code=0):
        result = subprocess.run([SORDINO, *map(str, words)], cwd=self.folder, capture_output=True,
                                text=True, timeout=120, check=False,
                                env={**os.environ, 'SORDINO_STATE': str(self.folder / 'state')})
        self.assertEqual(result.returncode, code, (words, result.stdout, result.stderr))
        return result.stdout + result.stderr

    def show(self):
        return json.loads(self.run_sordino('ledger', 'show', self.ledger, '--json'))

    def test_is_whole_and_has_its_hash(self):
        self.run_sordino('ledger', 'verify', self.ledger, '--expect', HEAD)

    def test_shows_what_it_showed(self):
        then = json.loads((DATA / 'ledger-2026-11-16.json').read_text(encoding='utf-8'))
        now = self.show()
        for key in ['ledger', 'head', 'private']:
            self.assertEqual(now[key], then[key], key)
        for key in ['runs', 'charges', 'returns', 'notes']:
            self.assertEqual(len(now[key]), len(then[key]), key)
            for entry, old in zip(now[key], then[key]):
                # What was written, not what is computed from it.
                same = {name for name, value in old.items() if isinstance(value, (str, int))}
                self.assertTrue(same)
                self.assertEqual({name: entry[name] for name in same},
                                 {name: old[name] for name in same}, key)
        for key in ['epsilon', 'delta', 'adjacency', 'unit']:
            self.assertEqual(now['budget'][key], then['budget'][key], key)
        # Both intervals hold the same number.
        self.assertLessEqual(now['epsilon']['lower'], then['epsilon']['upper'])
        self.assertGreaterEqual(now['epsilon']['upper'], then['epsilon']['lower'])
        self.assertLess(abs(now['verdict']['used'] - then['verdict']['used']), 1e-6)

    def test_is_charged_until_its_budget_is_used(self):
        before = self.show()
        self.run_sordino('ledger', 'charge', self.ledger, '--event', 'add-remove: gaussian(12)',
                         '--note', 'a test')
        after = self.show()
        self.assertEqual(len(after['charges']), len(before['charges']) + 1)
        self.assertGreater(after['verdict']['used'], before['verdict']['used'])
        self.assertEqual(after['charges'][:-1], before['charges'])
        said = self.run_sordino('ledger', 'charge', self.ledger, '--event',
                                'add-remove: gaussian(0.1)', '--note', 'too much', code=2)
        self.assertIn('refuses it', said)
        self.run_sordino('ledger', 'verify', self.ledger, '--expect', HEAD)
        self.assertEqual(self.show(), after)


if __name__ == '__main__':
    unittest.main()
