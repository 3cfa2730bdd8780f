"""The promises that every command keeps: command_line_test.py SORDINO START_LIMIT_MS SOURCE_DIR"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(3)).resolve()
START_LIMIT_MS = float(sys.argv.pop(2))
SORDINO = os.path.abspath(sys.argv.pop(1))
ACCOUNT = ['account', '--rate', '0.01', '--noise', '4', '--steps', '1000', '--delta', '1e-5']
CALIBRATE = ['calibrate', '--rate', '0.01', '--steps', '1000', '--epsilon', '1', '--delta', '1e-5']
RELEASE = ['release', 'visits.csv', '--mean', 'age', '--bounds', '0,120', '--epsilon', '0.5']
LEDGER = ['ledger', 'show', 'ledger.db']
PLAN = ['plan', '--kappa', '10', '--alpha', '1e-4']
AUDIT = ['audit', 'bound', '--canaries', '100', '--guesses', '90', '--correct', '80']
EVERY = {'account': ACCOUNT, 'audit': AUDIT, 'calibrate': CALIBRATE, 'ledger': LEDGER, 'plan': PLAN,
         'release': RELEASE}


class CommandLineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        subprocess.run([sys.executable, SOURCE / 'examples/make_visits.py', 'visits.csv', '1000'],
                       cwd=cls.folder, check=True)
        made = cls.run_sordino('ledger', 'init', 'ledger.db', '--epsilon', '2', '--delta', '1e-5')
        assert made.returncode == 0, made

    @classmethod
    def run_sordino(cls, *words, **options):
        options = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        # What is remembered of ledgers stays out of the state of whoever runs the test.
        environment = {**os.environ, 'SORDINO_STATE': os.path.join(cls.folder, 'state')}
        return subprocess.run([SORDINO, *words], text=True, stdin=subprocess.DEVNULL,
                              cwd=cls.folder, env=environment, check=False, **options)

    def assert_mistake(self, words, *parts):
        """Exit code 2, nothing on standard output, one line of explanation."""
        result = self.run_sordino(*words)
        self.assertEqual(result.returncode, 2, result)
        self.assertEqual(result.stdout, '')
        self.assertRegex(result.stderr, r'^sordino: [^\n]+\n$')
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_prints_its_version(self):
        result = self.run_sordino('--version')
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r'^sordino \d+\.\d+\.\d+\n$')

    def test_help_names_every_command(self):
        result = self.run_sordino('--help')
        self.assertEqual(result.returncode, 0)
        for command in EVERY:
            self.assertIn(command, result.stdout)

    def test_help_of_a_command_shows_an_example(self):
        for command in EVERY:
            result = self.run_sordino(command, '--help')
            self.assertEqual(result.returncode, 0, result)
            self.assertRegex(result.stdout, f'(?s)[Ee]xample.*sordino {command} ')
            self.assertEqual(result.stderr, '')

    def test_shows_help_and_fails_where_no_command_is_given(self):
        result = self.run_sordino()
        self.assertEqual((result.returncode, result.stdout), (2, ''))
        self.assertIn('Usage', result.stderr)

    def test_says_that_a_command_needs_libtorch_where_there_is_none(self):
        with tempfile.TemporaryDirectory() as alone:
            lonely = shutil.copy(SORDINO, alone)
            result = subprocess.run([lonely, 'bench', 'step'], capture_output=True, text=True,
                                    check=False)
        self.assertEqual((result.returncode, result.stdout), (2, ''))
        self.assertRegex(result.stderr, r"^sordino: 'bench' needs libtorch, [^\n]+\n$")
        self.assertIn('bench', self.run_sordino('--help').stdout)

    def test_suggests_the_nearest_command(self):
        self.assert_mistake(['acount', *ACCOUNT[1:]], "'acount'", "'account'")
        self.assert_mistake(['relaese'], "'release'")

    def test_suggests_the_nearest_flag(self):
        self.assert_mistake(['account', '--rat', '0.01', *ACCOUNT[3:]], "'--rat'", "'--rate'")
        self.assert_mistake([*RELEASE[:-2], '--epsilom', '0.5'], "'--epsilom'", "'--epsilon'")
        self.assert_mistake(['calibrate', '--step=5', *CALIBRATE[5:]], "'--step'", "'--steps'")

    def test_explains_a_missing_or_malformed_value(self):
        self.assert_mistake(['account', '--rate', 'many', *ACCOUNT[3:]], '--rate')
        self.assert_mistake(['account', '--rate'], '--rate')
        self.assert_mistake(['account', '--rate', '1.5', *ACCOUNT[3:]], '1.5')
        self.assert_mistake([*RELEASE[:-1], '-1'], '-1')
        self.assert_mistake(['release', 'gone.csv', *RELEASE[2:]], 'gone.csv')
        self.assert_mistake([*RELEASE[:3], 'agee', *RELEASE[4:]], "agee")

    def test_commands_answer_in_text(self):
        for words in EVERY.values():
            result = self.run_sordino(*words)
            self.assertEqual(result.returncode, 0, result)
            self.assertGreater(len(result.stdout), 20)

    def test_json_is_the_only_thing_on_standard_output(self):
        keys = {'account': {'delta', 'epsilon', 'methods'},
                'audit': {'epsilon_lower', 'method', 'p_value'},
                'calibrate': {'noise_multiplier', 'epsilon'},
                'ledger': {'budget', 'epsilon', 'charges', 'verdict', 'left', 'runs', 'head'},
                'plan': {'gamma', 'uniform', 'dynamic', 'schedule', 'table'},
                'release': {'releases', 'epsilon', 'delta'}}
        for command, words in EVERY.items():
            result = self.run_sordino(*words, '--json')
            self.assertEqual(result.returncode, 0, result)
            self.assertLessEqual(keys[command], set(json.loads(result.stdout)), command)

    def test_a_release_is_charged_until_the_ledger_refuses(self):
        self.run_sordino('ledger', 'init', 'small.db', '--epsilon', '1', '--delta', '0')
        words = [*RELEASE, '--ledger', 'small.db']
        for _ in range(2):
            result = self.run_sordino(*words, '--json')
            self.assertEqual(result.returncode, 0, result)
        head = json.loads(result.stdout)['ledger']['head']
        self.assert_mistake(words, 'nothing was released', 'small.db')
        shown = json.loads(self.run_sordino('ledger', 'show', 'small.db', '--json').stdout)
        self.assertEqual(shown['head']['hash'], head)
        self.assertEqual(len(shown['charges']), 2)
        # Rounded outward.
        self.assertGreaterEqual(shown['epsilon']['upper'], 1)
        self.assertLess(shown['epsilon']['upper'], 1 + 1e-12)
        verified = self.run_sordino('ledger', 'verify', 'small.db', '--expect', head)
        self.assertEqual(verified.returncode, 0, verified)
        self.assertRegex(verified.stdout, f'^whole: 5 entries, head {head}\n$')
        self.assert_mistake(['ledger', 'verify', 'small.db', '--expect', '0' * 64], 'older copy')

    def test_a_reader_that_goes_away_is_no_failure(self):
        for words in EVERY.values():
            read_end, write_end = os.pipe()
            os.close(read_end)
            result = self.run_sordino(*words, stdout=write_end)
            os.close(write_end)
            self.assertEqual((result.returncode, result.stderr), (0, ''))

    def test_output_that_cannot_be_written_is_a_failure(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full')
        with open('/dev/full', 'w', encoding='utf-8') as full:
            result = self.run_sordino(*ACCOUNT, stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn('could not be written', result.stderr)

    def test_does_not_load_libtorch(self):
        libraries = subprocess.run(['ldd', SORDINO], capture_output=True, text=True, check=True)
        self.assertNotRegex(libraries.stdout, 'libtorch|libc10')

    def test_starts_fast(self):
        def spent():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return 1000 * (usage.ru_utime + usage.ru_stime)
        times = []
        for _ in range(20):
            start = spent()
            self.run_sordino('--version')
            times.append(spent() - start)
        print(f'start: {statistics.median(times):.1f} ms of the processor, '
              f'the best {min(times):.1f} ms')
        # Processor time, which other programs do not add to; the best of 20, because they do
        # empty the caches.
        self.assertLess(min(times), START_LIMIT_MS)


if __name__ == '__main__':
    unittest.main()
