"""The promises that every command keeps: command_line_test.py SORDINO START_LIMIT_MS SOURCE_DIR"""
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
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

    def test_other_names_of_described_data_are_charged_to_their_ledger(self):
        with tempfile.TemporaryDirectory() as place:
            def sordino(command, source=None):
                environment = {**os.environ, 'SORDINO_STATE': os.path.join(place, 'state')}
                with open(os.path.join(place, source) if source else os.devnull,
                          encoding='utf-8') as stdin:
                    return subprocess.run([SORDINO, *shlex.split(command)], stdin=stdin, cwd=place,
                                          env=environment, capture_output=True, text=True,
                                          check=False)
            for folder in ('data', 'elsewhere'):
                os.mkdir(os.path.join(place, folder))
            shutil.copy(os.path.join(self.folder, 'visits.csv'), os.path.join(place, 'data/v.csv'))
            os.link(os.path.join(place, 'data/v.csv'), os.path.join(place, 'elsewhere/link.csv'))
            with open(os.path.join(place, 'data/sordino.toml'), 'w', encoding='utf-8') as described:
                described.write('ledger = "../v.db"\n')
            self.assertEqual(
                sordino('ledger init v.db --epsilon 1 --delta 1e-5').returncode, 0)
            mean = '--mean age --bounds 0,120 --epsilon 0.3'
            unknown = sordino(f'release elsewhere/link.csv {mean}')
            self.assertEqual((unknown.returncode, unknown.stdout), (2, ''), unknown)
            self.assertIn('hard link', unknown.stderr)
            for command, source in ((f'release - {mean}', 'data/v.csv'),
                                    (f'release elsewhere/link.csv {mean}', None),
                                    (f'release - {mean}', 'elsewhere/link.csv')):
                result = sordino(command, source)
                self.assertEqual(result.returncode, 0, result)
                self.assertIn('charged to', result.stdout)
            spent = sordino(f'release - {mean}', 'data/v.csv')
            self.assertEqual((spent.returncode, spent.stdout), (2, ''), spent)
            self.assertIn('nothing was released', spent.stderr)

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

    def test_names_cannot_move_what_a_terminal_shows(self):
        name = 'no\x1b[31m\u202efile\u0085.csv'
        words = ['release', name, '--count', '--epsilon', '1']
        self.assert_mistake(words, r'no\u001b[31m\u202efile\u0085.csv')
        told = self.run_sordino(*words, '--json').stdout
        self.assertIn(r'no\u001b[31m\u202efile\u0085.csv', told)
        self.assertIn(name, json.loads(told)['error']['message'])

    def test_leaves_no_core_dump(self):
        with subprocess.Popen([SORDINO, 'release', '-', '--count', '--epsilon', '1'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                limits = ''
                for _ in range(100):  # until the program has begun
                    limits = pathlib.Path(f'/proc/{process.pid}/limits').read_text(encoding='utf-8')
                    if re.search(r'Max core file size +0 +0 ', limits):
                        break
                    time.sleep(0.1)
                self.assertRegex(limits, r'Max core file size +0 +0 ')
                if os.geteuid() != 0:
                    # What cannot be dumped belongs to nobody but root.
                    self.assertEqual(os.stat(f'/proc/{process.pid}/mem').st_uid, 0)
            finally:
                process.kill()

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
            answer = json.loads(result.stdout)
            self.assertLessEqual(keys[command], set(answer), command)
            self.assertEqual((list(answer)[0], answer['schema']), ('schema', 1), command)

    def test_every_command_with_json_says_its_schema(self):
        for file in sorted(SOURCE.glob('src/sordino/*cli/*_command.cc')):
            text = file.read_text(encoding='utf-8')
            if '"--json"' in text:
                for report in re.findall(r'"(sordino/\w*cli/\w+_report)\.h"', text):
                    text += (SOURCE / f'src/{report}.cc').read_text(encoding='utf-8')
                self.assertRegex(text, r'NewReport\(\)|kJsonSchema', file.name)

    def test_errors_are_json_too_where_it_is_asked_for(self):
        for words in (['acount'], ['account', '--rat', '1'], [*ACCOUNT[:-1], 'x'], ['ledger', 'show',
                      'gone.db'], ['release', 'gone.csv', *RELEASE[2:]], ['account', '--event=']):
            result = self.run_sordino(*words, '--json')
            self.assertEqual(result.returncode, 2, result)
            answer = json.loads(result.stdout)
            self.assertEqual(answer['schema'], 1)
            self.assertEqual(answer['error']['exit_code'], 2)
            self.assertEqual(f"sordino: {answer['error']['message']}\n", result.stderr)

    def test_help_is_a_command_too(self):
        for words in ([], ['account'], ['ledger'], ['ledger', 'init']):
            helped = self.run_sordino('help', *words)
            asked = self.run_sordino(*words, '--help')
            self.assertEqual((helped.returncode, helped.stdout), (0, asked.stdout))
        self.assert_mistake(['help', 'acount'], "'acount' is not a command", "'account'")

    def test_help_runs_nothing_and_charges_nothing(self):
        before = self.run_sordino('ledger', 'show', 'ledger.db', '--json').stdout
        for words in ([*RELEASE, '--ledger', 'ledger.db'], ['ledger', 'note', 'ledger.db', 'x'],
                      ['train', '--data', 'digits', '--epsilon', '1', '--out', 'helped']):
            helped = self.run_sordino('help', *words)
            if 'needs libtorch' in helped.stderr:
                continue
            self.assertEqual(helped.returncode, 0, helped)
            self.assertIn('Usage:', helped.stdout)
        self.assertEqual(self.run_sordino('ledger', 'show', 'ledger.db', '--json').stdout, before)
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'helped')))

    def all_commands(self):
        """Pairs of the words of a command and what it takes, from the program's own description."""
        def below(node, words):
            yield words, node
            for child in node['commands']:
                yield from below(child, [*words, child['name']])
        described = json.loads(self.run_sordino('help', '--json').stdout)
        self.assertEqual(described['schema'], 1)
        return list(below(described['program'], []))

    def test_the_description_has_what_help_has(self):
        commands = self.all_commands()
        self.assertGreater(len(commands), 8)
        for words, node in commands:
            if not words or words[0] in ('help',) or not node['options']:
                continue
            shown = self.run_sordino(*words, '--help-all')
            if 'needs libtorch' in shown.stderr:
                continue
            self.assertEqual(shown.returncode, 0, shown)
            for option in node['options']:
                for name in option['names']:
                    self.assertIn(name, shown.stdout, words)

    def complete(self, script, *words):
        """What bash offers for the last word."""
        quoted = ' '.join(shlex.quote(word) for word in ('sordino', *words))
        program = (f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; compopt() {{ :; }}\n'
                   '_sordino; printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(['bash', '-c', program], capture_output=True, text=True, check=True)
        self.assertEqual(result.stderr, '')
        return result.stdout.split()

    def test_bash_completes_every_command_flag_and_choice(self):
        script = self.run_sordino('completion', 'bash').stdout
        for words, node in self.all_commands():
            places = [choice for option in node['options'] if option['place']
                      for choice in option['choices']]
            self.assertEqual(sorted(self.complete(script, *words, '')),
                             sorted([child['name'] for child in node['commands']] + places), words)
            flags = [name for option in node['options'] if not option['place']
                     for name in option['names']]
            self.assertEqual(sorted(self.complete(script, *words, '-')), sorted(flags), words)
            for option in node['options']:
                if option['choices'] and not option['place'] and 'FILE' not in option['value']:
                    self.assertEqual(self.complete(script, *words, option['names'][0], ''),
                                     option['choices'], words)
        self.assertEqual(self.complete(script, 'account', '--sampling', 'po'), ['poisson'])
        self.assertEqual(self.complete(script, 'account', '--rate', ''), [])
        self.assertEqual(self.complete(script, 'led'), ['ledger'])
        self.assert_mistake(['completion', 'csh'], 'csh', 'bash, zsh or fish')

    def test_zsh_and_fish_know_every_command_and_flag(self):
        for shell in ('zsh', 'fish'):
            script = self.run_sordino('completion', shell).stdout
            for words, node in self.all_commands():
                for child in node['commands']:
                    self.assertIn(child['name'], script)
                for option in node['options']:
                    name = option['names'][-1].lstrip('-')
                    if not option['place']:
                        self.assertRegex(script, rf'(--|-l |-){re.escape(name)}\b', (shell, words))
            if shutil.which(shell):
                with tempfile.NamedTemporaryFile('w', suffix=f'.{shell}') as file:
                    file.write(script)
                    file.flush()
                    subprocess.run([shell, '-n', file.name], check=True)

    def test_every_command_has_a_manual_page(self):
        names = self.run_sordino('manual').stdout.split()
        self.assertEqual(names, ['-'.join(['sordino', *words])
                                 for words, _ in self.all_commands()])
        for name, (words, node) in zip(names, self.all_commands()):
            page = self.run_sordino('manual', name).stdout
            self.assertRegex(page, rf'^\.TH "{name.upper()}" 1 ')
            for section in ('NAME', 'SYNOPSIS', 'EXIT STATUS'):
                self.assertIn(f'\n.SH {section}\n', page)
            for option in node['options']:
                self.assertIn(option['names'][-1].replace('-', '\\-'), page, words)
            if shutil.which('man'):
                checked = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z',
                                          '-'], input=page, capture_output=True, text=True,
                                         check=False)
                self.assertEqual(checked.stderr, '', name)
        self.assert_mistake(['manual', 'sordino-acount'], 'sordino-account')

    def test_exit_codes_are_those_of_the_documentation(self):
        page = (SOURCE / 'docs/cli.md').read_text(encoding='utf-8')
        manual = self.run_sordino('manual', 'sordino').stdout
        codes = re.findall(r'^\.TP\n(\S+)\n(.*)$', manual[manual.index('.SH EXIT STATUS'):],
                           re.MULTILINE)
        self.assertEqual([code for code, _ in codes], ['0', '1', '2', '3', '4', '128+N'])
        for code, meaning in codes:
            self.assertIn(f"| {code} | {meaning.replace(chr(92) + '-', '-')} |", page)

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
