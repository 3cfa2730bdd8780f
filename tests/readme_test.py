"""Runs what README.md, CONTRIBUTING.md and docs/*.md show: readme_test.py SOURCE_DIR SORDINO

The blocks of a page run in their order, in a folder of the page that holds visits.csv and examples/; without
libtorch, up to the first that needs it. SORDINO_PAGE=tutorial-table.md runs those of one page.

- In a ```console block every line that starts with '$ sordino' is run and must print what stands
  below it. Where '# numbers vary' follows the command, the digits may differ (noise), the words may
  not. A line '...' stands for lines left out.
- A ```sh block is run by bash and must succeed. One that cannot be run here says why behind the name
  of its language: ```sh long (minutes; SORDINO_LONG=1 runs it), ```sh needs-data (files or datasets
  that are not here), ```sh needs-tools (the source tree, other programs), ```sh outline (names stand
  for others). Its sordino commands must have the flags that it shows all the same.
- A ```cpp block that starts with '// examples/NAME.cc' is that file without its opening comment.
- The rows of the status of README.md, and the commands that docs/cli.md lists, are what there is.
- Every relative link leads to a file and a heading, also in the folders of docs/; docs/README.md links every page.
- Every file that a recipe of CONTRIBUTING.md names exists.
- The map is one page, and every decision is short, has a question and an answer, and is in the index.
"""
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SORDINO = pathlib.Path(sys.argv.pop(2)).resolve()
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
PAGES = [*sorted(SOURCE.glob('*.md')), *sorted(SOURCE.glob('docs/*.md'))]
NOISY = '# numbers vary'
# An experiment looks up the flags of the commands that it calls.
NEEDS_TORCH = re.compile('sordino (train|tune|fit|predict|data|bench|kernel|audit membership|audit reconstruct|audit self|'
                         'plan learn|experiment mine)')
HAS_TORCH = (SORDINO.parent / 'sordino-torch').exists()
MARKS = ('long', 'needs-data', 'needs-tools', 'outline')


def blocks(page, language):
    return re.findall(rf'^```{language}\n(.*?)^```$', page.read_text(encoding='utf-8'),
                      re.MULTILINE | re.DOTALL)


def commands(block):
    """Pairs of a command line and the text shown below it."""
    for part in re.split(r'^\$ ', block, flags=re.MULTILINE)[1:]:
        line, _, shown = re.sub(r'\\\n\s*', '', part).partition('\n')
        yield line, shown


def prose(page):
    """A page without its blocks."""
    return re.sub(r'^```.*?^```$', '', page.read_text(encoding='utf-8'), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """What links within the page are called: its headings in lower case, with dashes for blanks."""
    headings = re.findall(r'^#+ (.*)$', prose(page), re.MULTILINE)
    return [re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings]


def matches(shown, printed, noisy):
    """Whether the text of the page is what was printed, blanks at line ends aside."""
    def normal(text):
        lines = [line.rstrip() for line in text.strip('\n').splitlines()]
        if noisy:
            # A number of another length moves the blanks beside it.
            lines = [line if line == '...' else re.sub(r'[-+]?[\d.,]+(e[-+]?\d+)?', '#', line)
                     for line in lines]
            lines = [re.sub(r'\s+', ' ', line).strip() for line in lines]
        return '\n'.join(lines)
    pattern = re.escape('\n' + normal(shown)).replace(re.escape('\n...'), r'(\n[^\n]*)*')
    return re.fullmatch(pattern, '\n' + normal(printed)) is not None


def runnable_blocks(page):
    """The blocks of a page in their order: language, mark ('' where it is to be run) and text."""
    return re.findall(r'^```(sh|console)(?: (\S+))?\n(.*?)^```$', page.read_text(encoding='utf-8'),
                      re.MULTILINE | re.DOTALL)


def shell_blocks(page):
    return [(mark, text) for language, mark, text in runnable_blocks(page) if language == 'sh']


def sordino_lines(block):
    """The words of every sordino command of a block, redirections and what a pipe leads to aside."""
    for line in re.sub(r'\\\n\s*', '', block).splitlines():
        tokens = shlex.shlex(line, posix=True, punctuation_chars='|<>()')
        tokens.whitespace_split = True
        words = None
        for token in [*tokens, '|']:
            if words is None:
                words = [] if token == 'sordino' else None
            elif set(token) <= set('|<>()'):
                yield words
                words = None
            else:
                words.append(token)


@functools.cache
def described():
    """The commands of the program, as `sordino help --json` says."""
    printed = subprocess.run([SORDINO, 'help', '--json'], capture_output=True, text=True, check=True)
    return json.loads(printed.stdout)['program']


def environment(state):
    # What is remembered of ledgers stays out of the state of whoever runs this.
    return {**os.environ, 'SORDINO_STATE': state, 'PATH': f"{SORDINO.parent}:{os.environ['PATH']}"}


class BlocksTest(unittest.TestCase):
    def run_console(self, page, block, folder, env):
        """Runs the commands of a block, and returns how many there are."""
        count = 0
        for line, shown in commands(block):
            if not line.startswith('sordino '):
                continue
            count += 1
            words, noisy = line.replace(NOISY, ''), NOISY in line
            result = subprocess.run([SORDINO, *shlex.split(words)[1:]], cwd=folder, env=env, text=True,
                                    capture_output=True, check=False)
            printed = result.stdout + result.stderr
            with self.subTest(page=page.name, command=line):
                self.assertTrue(matches(shown, printed, noisy),
                                f'\nshown:\n{shown}\nprinted:\n{printed}')
        return count

    def run_shell(self, page, block, folder, env):
        result = subprocess.run(['bash', '-euo', 'pipefail', '-c', block], cwd=folder, env=env, text=True,
                                capture_output=True, check=False)
        with self.subTest(page=page.name, block=block):
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_blocks_run_as_they_are_written(self):
        shells = consoles = 0
        only = os.environ.get('SORDINO_PAGE')
        for page in PAGES:
            if only and page.name != only:
                continue
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
                subprocess.run([sys.executable, SOURCE / 'examples/make_visits.py', 'visits.csv'],
                               cwd=folder, check=True)
                os.symlink(SOURCE / 'examples', os.path.join(folder, 'examples'))
                env = {**environment(state), 'HOME': folder}
                for language, mark, block in runnable_blocks(page):
                    self.assertIn(mark, ('', *MARKS), f'{page.name}: {block}')
                    if mark and not (mark == 'long' and os.environ.get('SORDINO_LONG')):
                        continue
                    if NEEDS_TORCH.search(block) and not HAS_TORCH:
                        break  # what follows may need its results
                    if language == 'console':
                        consoles += self.run_console(page, block, folder, env)
                    else:
                        shells += 1
                        self.run_shell(page, block, folder, env)
        if not only:
            self.assertGreaterEqual(shells, 3)
            self.assertGreaterEqual(consoles, 10)

    def check_flags(self, where, words):
        """Whether the command of these words is built; each of its flags must exist."""
        node = described()
        while words and words[0] in [child['name'] for child in node['commands']]:
            node = next(c for c in node['commands'] if c['name'] == words[0])
            words = words[1:]
        known = [name for option in node['options'] for name in option['names']]
        if set(known) <= {'-h', '--help', '--help-all'}:
            return False  # of sordino-torch, which was not built
        for word in words:
            if word.startswith('--'):
                self.assertIn(word.split('=')[0], known, f'{where}: {words}')
        return True

    def test_commands_of_all_blocks_exist(self):
        count = 0
        for page in PAGES:
            for _, block in shell_blocks(page):
                count += sum(self.check_flags(page.name, words) for words in sordino_lines(block))
        self.assertGreaterEqual(count, 5)

    def test_quickstart_names_three_next_things_that_there_are(self):
        text = (SOURCE / 'quickstart').read_text(encoding='utf-8')
        things = re.findall(r'^  \d\. (.*)\n +(.*)$', text, re.MULTILINE)
        self.assertEqual(len(things), 3)
        names = [name for thing in things for name in re.findall(r'(?:docs|tools)/[\w.-]+', ' '.join(thing))]
        self.assertEqual(len(names), 3)
        for name in names:
            self.assertTrue((SOURCE / name).exists(), name)
        for command, _ in things:
            for words in sordino_lines(command):
                self.check_flags('quickstart', words)

    def test_words_of_a_block_are_found(self):
        block = "source <(sordino completion bash)  # x\nsordino train a \\\n  --lr 1 > out | less\nls\n"
        self.assertEqual(list(sordino_lines(block)), [['completion', 'bash'],
                                                      ['train', 'a', '--lr', '1']])


class CommandsTest(unittest.TestCase):
    names = property(lambda self: sorted(node['name'] for node in described()['commands']))

    def test_page_of_the_command_line_lists_those_of_the_program(self):
        text = (SOURCE / 'docs/cli.md').read_text(encoding='utf-8')
        self.assertEqual(sorted(set(re.findall(r'^\| `sordino ([a-z]+)', text, re.MULTILINE))), self.names)

    def test_picture_of_the_index_names_those_of_the_program(self):
        text = (SOURCE / 'docs/README.md').read_text(encoding='utf-8')
        named = set(re.findall(r'sordino ([a-z]+)', re.search(r'^```text\n(.*?)^```', text,
                                                               re.MULTILINE | re.DOTALL)[1]))
        self.assertEqual(sorted(named | {'help', 'completion', 'manual'}), self.names)


class StatusTest(unittest.TestCase):
    """Every row of the table under '## Status' is compared with what there is."""
    readme = (SOURCE / 'README.md').read_text(encoding='utf-8')

    def rows(self):
        status = re.search(r'^## Status$(.*?)^## ', self.readme, re.MULTILINE | re.DOTALL)[1]
        cells = [[cell.strip() for cell in line.strip('|').split('|')]
                 for line in status.splitlines() if line.startswith('|')]
        return {name: there for name, there, _ in cells[2:]}

    def test_every_row_has_a_test(self):
        for name in self.rows():
            self.assertTrue(hasattr(self, f'test_{name}'), name)
        self.assertEqual(len(self.rows()), 4)

    def test_version(self):
        project = re.search(r'project\(Sordino VERSION ([\d.]+)', (SOURCE / 'CMakeLists.txt').read_text())[1]
        self.assertIn(f'\nVersion {project} is in the making', self.readme)
        printed = subprocess.run([SORDINO, '--version'], capture_output=True, text=True, check=True).stdout
        self.assertIn(project, printed)

    def test_commands(self):
        self.assertEqual(re.findall(r'`([\w ]+)`', self.rows()['commands']),
                         sorted(node['name'] for node in described()['commands']))

    @unittest.skipUnless(HAS_TORCH, 'built without libtorch')
    def test_noise(self):
        kinds, _, rest = self.rows()['noise'].partition('; ')
        train = next(node for node in described()['commands'] if node['name'] == 'train')
        flags = {name: option for option in train['options'] for name in option['names']}
        self.assertEqual(kinds.lower().split(', '), flags['--noise-kind']['choices'])
        self.assertEqual(rest, 'with schedules, or correlated between steps')
        self.assertTrue({'--noise-schedule', '--noise-correlation'} <= set(flags))

    def test_Python(self):
        packages = {'Hugging Face': 'transformers', 'Lightning': 'lightning', 'scikit-learn': 'sklearn',
                    'scripts for Opacus': 'opacus'}
        torch, *names = self.rows()['Python'].split(', ')
        self.assertEqual([packages[name] for name in names],
                         [name for name in packages.values() if (SOURCE / 'python/sordino' / name).is_dir()])
        folders = {path.name for path in (SOURCE / 'python/sordino').iterdir() if (path / '__init__.py').exists()}
        self.assertEqual(folders, {'torch', *packages.values()})
        pinned = re.search(r'^torch==(\d+\.\d+)', (SOURCE / 'tools/python.txt').read_text(), re.MULTILINE)[1]
        self.assertEqual(torch, f'torch {pinned}')

    def test_machines(self):
        system, _, rest = self.rows()['machines'].partition('; ')
        known = re.search(r"^  ('Linux .*)\) ;;$", (SOURCE / 'tools/setup').read_text(), re.MULTILINE)[1]
        self.assertEqual([f'Linux {arch}' for arch in re.findall(r'\w+64\w*', system)],
                         re.findall(r"'([^']+)'", known))
        self.assertEqual(rest, 'one process or many, processors and GPUs (CUDA)')


class ReadmeTest(unittest.TestCase):
    def test_code_is_that_of_the_examples(self):
        count = 0
        for page in PAGES:
            for block in blocks(page, 'cpp'):
                name = re.match(r'// (examples/\w+\.cc)\n', block)
                if name:
                    count += 1
                    example = (SOURCE / name[1]).read_text(encoding='utf-8')
                    code = re.sub(r'\A(//[^\n]*\n)+', '', example)
                    self.assertEqual(block[name.end():].strip(), code.strip(), page.name)
        self.assertGreaterEqual(count, 1)

    def test_citation_names_the_version_of_the_project(self):
        project = re.search(r'project\(Sordino VERSION ([\d.]+)', (SOURCE / 'CMakeLists.txt').read_text())[1]
        self.assertIn(f'\nversion: {project}\n', (SOURCE / 'CITATION.cff').read_text())

    def test_every_page_is_in_the_index(self):
        index = (SOURCE / 'docs/README.md').read_text(encoding='utf-8')
        users = index[:index.index('\n## For builders\n')]
        for page in sorted(SOURCE.glob('docs/*.md')):
            with self.subTest(page=page.name):
                if page.name != 'README.md':
                    half = users if page.name.startswith('tutorial') else index
                    self.assertIn(f']({page.name})', half)

    def test_links_lead_somewhere(self):
        for page in [*PAGES, *sorted(SOURCE.glob('docs/*/*.md'))]:
            for target, anchor in re.findall(r'\]\(([^)#\s]*)(?:#([^)\s]+))?\)', prose(page)):
                if re.match(r'https?:', target):
                    continue
                file = page.parent / target if target else page
                self.assertTrue(file.exists(), f'{page.name}: {target}')
                if anchor:
                    self.assertIn(anchor, anchors(file), f'{page.name}: {target}')


class ArchitectureTest(unittest.TestCase):
    def test_map_is_one_page(self):
        self.assertLessEqual(len((SOURCE / 'ARCHITECTURE.md').read_text().splitlines()), 150)

    def test_decisions_are_short_and_in_the_index(self):
        folder = SOURCE / 'docs/decisions'
        index = (folder / 'README.md').read_text(encoding='utf-8')
        pages = sorted(set(folder.glob('*.md')) - {folder / 'README.md'})
        self.assertGreaterEqual(len(pages), 50)
        for page in pages:
            with self.subTest(page=page.name):
                text = page.read_text(encoding='utf-8')
                title = text.partition('\n')[0].removeprefix('# ')
                self.assertIn(f'[{title}]({page.name})', index)
                parts = re.findall(r'^\*\*(.*?)\.\*\*', text, re.MULTILINE)
                self.assertEqual(parts[:3], ['Question', 'Answer', 'Why'])
                self.assertIn(parts[3:], ([], ['Tried and left']))
                self.assertLessEqual(len(text.splitlines()), 40)


class RecipesTest(unittest.TestCase):
    def test_files_of_the_recipes_exist(self):
        text = (SOURCE / 'CONTRIBUTING.md').read_text(encoding='utf-8')
        recipes = re.search(r'^## Recipes$.*?(?=^## )', text, re.MULTILINE | re.DOTALL)[0]
        self.assertGreaterEqual(recipes.count('\n### '), 11)
        ours = [f'/{path}' for path in subprocess.run(
            ['find', 'src', 'tools', 'tests', 'docs', 'fuzz', '-type', 'f'], cwd=SOURCE, text=True,
            capture_output=True, check=True).stdout.split()]
        count = 0
        for name in re.findall(r'`([\w/{},]+\.(?:h|cc|inc|py|\{h,cc\}))`', recipes):
            if re.search(r'\b(no_)?x(_\w+)?\.', name):
                continue  # of the reader
            front, parts, back = re.fullmatch(r'([^{]*)(?:\{(.*)\})?(.*)', name).groups()
            for part in (parts or '').split(','):
                count += 1
                file = f'/{front}{part}{back}'
                self.assertTrue(any(path.endswith(file) for path in ours), file)
        self.assertGreaterEqual(count, 40)


class MatchesTest(unittest.TestCase):
    def test_tells_the_same_from_another(self):
        self.assertTrue(matches('a 1.25\n', 'a 1.25 \n', False))
        self.assertFalse(matches('a 1.25\n', 'a 1.26\n', False))
        self.assertTrue(matches('a  1.25 b\n', 'a 12.6 b\n', True))
        self.assertFalse(matches('a 1.25 b\n', 'a 1.25 c\n', True))
        self.assertTrue(matches('a\n...\nd\n', 'a\nb\nc\nd\n', False))
        self.assertFalse(matches('a\n...\nd\n', 'a\nb\nc\n', False))
        self.assertTrue(matches('a 1\n...\n', 'a 2\nb\n', True))
        self.assertTrue(matches('...\nb\n', 'a\nb\n', False))
        self.assertFalse(matches('...\nb\n', 'a\nc\n', False))
        self.assertFalse(matches('a 1\n...\nd\n', 'a 2\nb\n', True))


if __name__ == '__main__':
    unittest.main()
