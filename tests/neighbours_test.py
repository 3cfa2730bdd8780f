"""Refusals depend on declarations and on the form of a file, never on how many or which records it has:
neighbours_test.py SORDINO [NAME...]

Each place of the table in docs/sharp-edges.md ("Refusals that depend on the records") is run on data
that differ by a record, around every declared limit. Exit code, standard error and the names of the
files that are left must be the same.
"""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

SORDINO = os.path.abspath(sys.argv.pop(1))
TABLE = ['--columns', 'x:numeric:0:1', 'y:label:a|b']
TRAIN = ['train', '--model', 'logistic', '--noise', '1', '--delta', '1e-5', '--steps', '2']
DECLARED = 300
AROUND = (DECLARED - 1, DECLARED, DECLARED + 1)
FAR = (0, 1, 4000)  # of 4,000 the batches are larger than a plan for 300 expects


def rows(count, header='x,y\n'):
    numbers = random.Random(count)
    return header + ''.join(f'{numbers.random():.3f},{"ab"[i % 2]}\n' for i in range(count))


def png(width, height):
    def chunk(kind, data):
        return (struct.pack('>I', len(data)) + kind + data +
                struct.pack('>I', zlib.crc32(kind + data)))
    lines = b''.join(b'\0' + bytes(range(width)) for _ in range(height))
    return (b'\x89PNG\r\n\x1a\n' +
            chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(lines)) + chunk(b'IEND', b''))


def npy(kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b' ' * (-(len(header) + 11) % 64) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + values


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + b''.join(struct.pack('>I', n) for n in shape) + values


class NeighboursTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def run_sordino(self, words):
        environment = {**os.environ, 'SORDINO_STATE': str(self.folder / 'state'),
                       'OMP_NUM_THREADS': '1'}
        return subprocess.run([SORDINO, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, cwd=self.folder, env=environment, check=False)

    def seen(self, words, number):
        """What somebody sees who is told nothing but the result: without numbers, which are noised,
        public, or times."""
        out = self.folder / f'out-{number}'
        if words[0] in ('train', 'fit'):
            words = [*words, '--out', str(out)]
        result = self.run_sordino(words)
        said = re.sub(r'[-+]?[0-9][0-9.e+-]*', '#', result.stderr.replace(str(out), 'OUT'))
        said = re.sub(r'# (ms|s|min|h)\b', '#', said)
        said = said.replace(', # examples/s', '')  # told after the first second
        said = re.sub(r'[a-z]+: #%, # left[^\n]*\n', '', said)  # told now and then, by the clock
        files = sorted(str(p.relative_to(out)) for p in out.rglob('*')) if out.exists() else []
        files = [f for f in files if not f.endswith('.new')]
        return result.returncode, said, files

    def expect_same(self, commands, place):
        """Of neighbours, given as command lines."""
        first = None
        for number, words in enumerate(commands):
            with self.subTest(place=place, command=number):
                seen = self.seen(words, f'{place}-{number}'.replace(' ', '-'))
                first = first or seen
                self.assertEqual(seen[0], 0, (words, seen))
                self.assertEqual(seen, first, words)

    def tables(self, flags, sizes, command=None):
        return [[*(command or TRAIN), '--data', self.write(f'n{n}.csv', rows(n)), *TABLE, *flags]
                for n in sizes]

    def test_train_with_a_rate_and_no_number(self):
        # The plan expects up to 300.
        sizes = (149, 150, 151, *AROUND, *FAR)
        self.expect_same(self.tables(['--rate', '0.1', '--batch', '15'], sizes), 'rate')

    def test_train_with_a_declared_number(self):
        for sampling in ('poisson', 'full', 'allocation'):
            flags = ['--sampling', sampling, '--records', str(DECLARED)]
            if sampling != 'full':
                flags += ['--batch', '30']
            self.expect_same(self.tables(flags, (*AROUND, *FAR)), sampling)

    def test_train_where_the_number_is_public(self):
        for adjacency in ('replace-one', 'zero-out'):
            flags = ['--records', str(DECLARED), '--batch', '30', '--adjacency', adjacency]
            self.expect_same(self.tables(flags, (*AROUND, *FAR)), adjacency)
        flags = ['--sampling', 'fixed', '--records', str(DECLARED), '--batch', '30']
        self.expect_same(self.tables(flags, (29, 30, 31, *AROUND, *FAR)), 'fixed')

    def test_train_with_estimated_norms_and_canaries(self):
        flags = ['--records', str(DECLARED), '--batch', '30']
        self.expect_same(self.tables([*flags, '--norms', 'jl'], (*AROUND, *FAR)), 'jl')
        command = ['train', '--model', 'mlp', *TRAIN[3:]]  # a logistic one has room for four
        self.expect_same(self.tables([*flags, '--canaries', '20'], (*AROUND, *FAR), command),
                         'canaries')

    def test_train_on_ranks(self):
        flags = ['--records', str(DECLARED), '--batch', '30', '--processes', '2']
        self.expect_same(self.tables(flags, (*AROUND, *FAR)), 'ranks')

    def test_train_with_users(self):
        commands = []
        for count in (1, 2, 3, 9):  # rows of one of them
            users = ''.join('0.5,a,u\n' for _ in range(count))
            table = self.write(f'u{count}.csv', 'x,y,who\n0.1,b,v\n' + users)
            commands.append([*TRAIN, '--data', table, *TABLE, 'who:user', '--rows-per-user', '2',
                             '--rate', '0.1', '--batch', '15'])
        self.expect_same(commands, 'users')

    def test_train_on_text(self):
        words = self.write('words.txt', 'good\nbad\n')
        commands = []
        for number, line in enumerate(('', 'a\tgood\n', 'a\tgood bad good\n', 'b\t' + 'bad ' * 50 + '\n',
                                       'b\tnever seen\n')):
            text = self.write(f't{number}.txt', 'b\tbad\n' + line)
            commands.append(['train', '--model', 'lstm', '--noise', '1', '--delta', '1e-5',
                             '--steps', '2', '--data', text, '--vocabulary', words, '--length', '3',
                             '--classes', '2', '--class-names', 'a,b', '--rate', '0.1', '--batch',
                             '15'])
        self.expect_same(commands, 'text')

    def test_train_on_images(self):
        declared = ['--shape', '1,8,8', '--classes', '2', '--class-names', 'a,b', '--rate', '0.1',
                    '--batch', '15']
        commands = []
        for number, images in enumerate(([], [png(8, 8)], [png(8, 8), png(9, 7)], [png(3, 40)])):
            (self.folder / f'i{number}/a').mkdir(parents=True)
            for i, image in enumerate(images):
                self.write(f'i{number}/a/{i}.png', image)
            commands.append([*TRAIN, '--data', str(self.folder / f'i{number}'), *declared])
        self.expect_same(commands, 'images')

    def test_train_on_arrays(self):
        for ending, array, labels in (
                ('npy', lambda n: npy('|u1', (n, 1, 4, 4), bytes(16 * n)),
                 lambda n: npy('|u1', (n,) if n != 1 else '(1,)', bytes(n))),
                ('idx', lambda n: idx((n, 4, 4), bytes(16 * n)), lambda n: idx((n,), bytes(n)))):
            commands = []
            for n in (0, 1, 2):
                inputs = self.write(f'a{n}.{ending}', array(n))
                commands.append([*TRAIN, '--data', inputs, '--labels',
                                 self.write(f'l{n}.{ending}', labels(n)), '--shape', '1,4,4',
                                 '--classes', '2', '--rate', '0.1', '--batch', '15'])
            self.expect_same(commands, ending)
        commands = [[*TRAIN, '--data', self.write(f'c{n}.bin', bytes(3073 * n)), '--classes', '10',
                     '--rate', '0.1', '--batch', '15'] for n in (0, 1, 2)]
        self.expect_same(commands, 'cifar')

    def test_train_without_a_header(self):
        commands = [[*TRAIN, '--data', self.write(f'h{n}.csv', rows(n, '')), '--no-header',
                     '--columns', '1:numeric:0:1', '2:label:a|b', '--rate', '0.1', '--batch', '15']
                    for n in (0, 1, 2)]
        self.expect_same(commands, 'headerless')

    def test_fit(self):
        fit = ['fit', '--epsilon', '1', '--delta', '1e-6']
        for flags in (['--records', str(DECLARED)],
                      ['--records', str(DECLARED), '--adjacency', 'replace-one'],
                      ['--records', str(DECLARED), '--adjacency', 'zero-out'],
                      ['--adjacency', 'replace-one']):
            place = 'fit ' + ' '.join(flags)
            self.expect_same(self.tables(flags, (*AROUND, *FAR), fit), place)
            # Rows with a value that is not declared, left out.
            commands = []
            for count in (0, 1, 2, DECLARED):
                table = self.write(f'm{count}.csv', rows(DECLARED) + '0.5,none\n' * count +
                                   'none,a\n' * count)
                commands.append([*fit, '--data', table, *TABLE, '--on-error', 'skip', *flags])
            self.expect_same(commands, place + ' left out')

    def test_release(self):
        release = ['--mean', 'x', '--bounds', '0,1', '--epsilon', '1']
        # A row of a group that is not named counts in the rest, or is left out.
        for flags in ([], ['--group-by', 'y=a,b,*'], ['--user', 'y', '--rows-per-user', '2'],
                      ['--group-by', 'y=a,b', '--on-error', 'skip']):
            commands = [['release', self.write(f'r{n}.csv', rows(n)), *release, *flags]
                        for n in (0, 1, 2, 3, 300)]
            commands.append(['release', self.write('r.csv', rows(3) + '0.5,c\n'), *release, *flags])
            self.expect_same(commands, ' '.join(['release', *flags]))
        commands = [['release', self.write(f'q{n}.csv', rows(n, '')), '--no-header', '--mean', '1',
                     '--bounds', '0,1', '--epsilon', '1'] for n in (0, 1, 2)]
        self.expect_same(commands, 'release without a header')

    def test_values_that_are_not_declared(self):
        """They are the form of a file: refused in the same words, whatever there is of them."""
        commands = {
            'fit': ['fit', '--epsilon', '1', '--delta', '1e-6', '--records', str(DECLARED), *TABLE,
                    '--data'],
            'train': [*TRAIN, '--rate', '0.1', '--batch', '15', *TABLE, '--data'],
            'data': ['data', *TABLE, '--records', str(DECLARED)],
            'release by group': ['release', '--count', '--epsilon', '1', '--group-by', 'y=a,b'],
            'release by category': ['release', '--histogram', 'y', '--categories', 'a,b',
                                    '--epsilon', '1']}
        for place, words in commands.items():
            said = set()
            for number, more in enumerate(('0.5,none\n', '0.5,c\n' * 3, '0.5,c\n' * DECLARED)):
                table = self.write('undeclared.csv', rows(3 * number) + more)
                at = [words[0], table, *words[1:]] if words[0] in ('data', 'release') else [*words, table]
                result = self.run_sordino(at)
                self.assertEqual((result.returncode, result.stdout), (2, ''), (place, result))
                said.add(result.stderr)
            self.assertEqual(len(said), 1, (place, said))
            self.assertIn("'y'", said.pop())

    def test_all_kinds_of_bad_cells(self):
        """Each kind is told once, in one order, whatever there is of it and wherever it stands."""
        table = ['--columns', 'x:numeric:0:1', 'k:categorical:u|v', 'y:label:a|b']
        commands = {
            'fit': ['fit', '--epsilon', '1', '--delta', '1e-6', '--records', str(DECLARED), *table,
                    '--data'],
            'train': [*TRAIN, '--rate', '0.1', '--batch', '15', *table, '--data'],
            'data': ['data', *table, '--records', str(DECLARED)],
            'release': ['release', '--mean', 'x', '--bounds', '0,1', '--group-by', 'k=u,v',
                        '--epsilon', '1']}
        kinds = ['none,u,a\n', ',u,a\n', '0.5,w,a\n', '0.5,u\n', '0.5,u,c\n']
        for place, words in commands.items():
            said = set()
            for number, more in enumerate((kinds, kinds[::-1], [kinds[i % 5] for i in range(DECLARED)],
                                           ['none,w,c\n', ',u,a\n', '0.5,u,a,b\n'])):
                good = '0.5,u,a\n' * (3 * number)
                path = self.write('bad.csv', 'x,k,y\n' + good + ''.join(more) + good)
                at = [words[0], path, *words[1:]] if words[0] in ('data', 'release') else [*words, path]
                result = self.run_sordino(at)
                self.assertEqual((result.returncode, result.stdout), (2, ''), (place, result))
                said.add(result.stderr)
            self.assertEqual(len(said), 1, (place, said))
            for word in ("'x'", "'k'", 'another number of fields'):
                self.assertIn(word, next(iter(said)), place)

    def test_predict(self):
        run = str(self.folder / 'run')
        table = self.write('t.csv', rows(DECLARED))
        made = self.run_sordino([*TRAIN, '--data', table, *TABLE, '--records', str(DECLARED),
                                 '--batch', '30', '--out', run])
        self.assertEqual(made.returncode, 0, made)
        commands = [['predict', '--run', run, '--data', self.write(f'p{n}.csv', rows(n)), '--out',
                     str(self.folder / f'p{n}.out.csv')] for n in (*AROUND, *FAR)]
        self.expect_same(commands, 'predict')

    def test_every_place_of_the_table_is_run(self):
        page = pathlib.Path(__file__).parent.parent / 'docs/sharp-edges.md'
        named = set(re.findall(r'`(test_\w+)`', page.read_text(encoding='utf-8')))
        tests = {name for name in dir(self) if name.startswith('test_')}
        self.assertEqual(named, tests - {'test_every_place_of_the_table_is_run'})


if __name__ == '__main__':
    unittest.main(verbosity=2)
