"""Runs what README.md, CONTRIBUTING.md and docs/*.md show: readme_test.py SOURCE_DIR SORDINO

- In a ```console block every line that starts with '$ sordino' is run in a folder that holds
  visits.csv, and must print what stands below it. Where '# numbers vary' follows the command, the
  digits may differ (noise), the words may not. A line '...' stands for lines left out.
- A ```sh block is run by bash in a folder of its page that holds visits.csv and examples/, and must
  succeed. One that cannot be run here says why behind the name of its language: ```sh long (minutes;
  SORDINO_LONG=1 runs it), ```sh needs-data (files or datasets that are not here), ```sh needs-tools
  (the source tree, other programs), ```sh outline (names stand for others). Its sordino commands must
  have the flags that it shows all the same.
- A ```cpp block that starts with '// examples/NAME.cc' is that file without its opening comment.
- Every relative link leads to a file, also in the folders of docs/.
- Every file that a recipe of CONTRIBUTING.md names exists.
- The map is one page, and every decision is short, has a question and an answer, and is in the index.
"""
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
NEEDS_TORCH = ('sordino (train|fit|predict|data|bench|kernel|audit membership|audit self|plan learn|'
               'experiment mine)')
MARKS = ('long', 'needs-data', 'needs-tools', 'outline')


def blocks(page, language):
    return re.findall(rf'^```{language}\n(.*?)^```$', page.read_text(encoding='utf-8'),
                      re.MULTILINE | re.DOTALL)


def commands(page):
    """Pairs of a command line and the text shown below it."""
    for block in blocks(page, 'console'):
        for part in re.split(r'^\$ ', block, flags=re.MULTILINE)[1:]:
            line, _, shown = re.sub(r'\\\n\s*', '', part).partition('\n')
            yield line, shown


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


def shell_blocks(page):
    """Pairs of the mark of a block ('' where it is to be run) and its text."""
    return re.findall(r'^```sh(?: (\S+))?\n(.*?)^```$', page.read_text(encoding='utf-8'),
                      re.MULTILINE | re.DOTALL)


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


def environment(state):
    # What is remembered of ledgers stays out of the state of whoever runs this.
    return {**os.environ, 'SORDINO_STATE': state, 'PATH': f"{SORDINO.parent}:{os.environ['PATH']}"}


class ShellBlocksTest(unittest.TestCase):
    def test_blocks_run_as_they_are_written(self):
        count = 0
        has_torch = (SORDINO.parent / 'sordino-torch').exists()
        for page in PAGES:
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
                subprocess.run([sys.executable, SOURCE / 'examples/make_visits.py', 'visits.csv'],
                               cwd=folder, check=True)
                os.symlink(SOURCE / 'examples', os.path.join(folder, 'examples'))
                for mark, block in shell_blocks(page):
                    self.assertIn(mark, ('', *MARKS), f'{page.name}: {block}')
                    wanted = mark == '' or (mark == 'long' and os.environ.get('SORDINO_LONG'))
                    torch = re.search(NEEDS_TORCH, block)
                    if not wanted or (torch and not has_torch):
                        continue
                    count += 1
                    result = subprocess.run(['bash', '-euo', 'pipefail', '-c', block], cwd=folder,
                                            env={**environment(state), 'HOME': folder}, text=True,
                                            capture_output=True, check=False)
                    with self.subTest(page=page.name, block=block):
                        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreaterEqual(count, 3)

    def test_commands_of_all_blocks_exist(self):
        described = subprocess.run([SORDINO, 'help', '--json'], capture_output=True, text=True,
                                   check=True)
        root = json.loads(described.stdout)['program']
        count = 0
        for page in PAGES:
            for _, block in shell_blocks(page):
                for words in sordino_lines(block):
                    node = root
                    while words and words[0] in [child['name'] for child in node['commands']]:
                        node = next(c for c in node['commands'] if c['name'] == words[0])
                        words = words[1:]
                    known = [name for option in node['options'] for name in option['names']]
                    if set(known) <= {'-h', '--help'}:
                        continue  # of sordino-torch, which was not built
                    count += 1
                    for word in words:
                        if word.startswith('--'):
                            self.assertIn(word.split('=')[0], known, f'{page.name}: {words}')
        self.assertGreaterEqual(count, 5)

    def test_words_of_a_block_are_found(self):
        block = "source <(sordino completion bash)  # x\nsordino train a \\\n  --lr 1 > out | less\nls\n"
        self.assertEqual(list(sordino_lines(block)), [['completion', 'bash'],
                                                      ['train', 'a', '--lr', '1']])


class ReadmeTest(unittest.TestCase):
    def test_commands_print_what_the_pages_show(self):
        count = 0
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
            subprocess.run([sys.executable, SOURCE / 'examples/make_visits.py', 'visits.csv'],
                           cwd=folder, check=True)
            for page in PAGES:
                for line, shown in commands(page):
                    if not line.startswith('sordino '):
                        continue
                    count += 1
                    words, noisy = line.replace(NOISY, ''), NOISY in line
                    result = subprocess.run([SORDINO, *shlex.split(words)[1:]], cwd=folder,
                                            env=environment(state),
                                            capture_output=True, text=True, check=False)
                    printed = result.stdout + result.stderr
                    with self.subTest(page=page.name, command=line):
                        self.assertTrue(matches(shown, printed, noisy),
                                        f'\nshown:\n{shown}\nprinted:\n{printed}')
        self.assertGreaterEqual(count, 3)

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

    def test_links_lead_somewhere(self):
        for page in [*PAGES, *sorted(SOURCE.glob('docs/*/*.md'))]:
            text = re.sub(r'^```.*?^```$', '', page.read_text(encoding='utf-8'),
                          flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r'\]\(([^)#\s]+)', text):
                if not re.match(r'https?:', target):
                    self.assertTrue((page.parent / target).exists(), f'{page.name}: {target}')


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
