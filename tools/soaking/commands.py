"""Commands that charge a ledger once, killed at random instants, and old copies that are put back."""

import json
import math
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from looking import (Finding, charges, check_chain, complaint, complete, read_ledger, write_data)
from world import LIMIT, TRAIN, end

DELTA = '1e-5'
LEDGER = ['--ledger', 'L.db']
COUNT = ['release', 't.csv', '--count', '--epsilon', '0.02', *LEDGER]
FIT = ['fit', 'fit.csv', '--columns', 'x:numeric:0:1', 'y:label:a|b', '--model', 'logistic', '--delta', '1e-7',
       '--records', '64', *LEDGER]


def wrote_json(log):
    """The command said what it released."""
    return '"releases"' in Path(f'{log}.out').read_text()


def said_head(log):
    return '"head"' in Path(f'{log}.out').read_text()


def fitted(folder, out, _log):
    return (folder / out / 'model.safetensors').exists()


# By name: how often, the words, the releases that it charges, and what shows that it released them.
# OUT is a new name in the folder of the ledger.
KINDS = {
    'release': (120, [[*COUNT, '--json'],
                     ['release', 't.csv', '--mean', 'x', '--bounds', '0,9', '--epsilon', '0.02', '--delta', '1e-7',
                      *LEDGER, '--json']], 1, lambda folder, out, log: wrote_json(log)),
    'quantile': (0.3, [['release', 't.csv', '--quantile', 'x:0.5', '--bounds', '0,9', '--epsilon', '0.02',
                      *LEDGER, '--json']], 1, lambda folder, out, log: wrote_json(log)),
    'charge': (24, [['ledger', 'charge', 'L.db', '--event', 'add-remove: gaussian(40)', '--note', 'outside',
                '--json']], 1,
               lambda folder, out, log: said_head(log)),
    'note': (8, [['ledger', 'note', 'L.db', 'a word']], 0, lambda folder, out, log: False),
    'show': (8, [['ledger', 'show', 'L.db'], ['ledger', 'verify', 'L.db']], 0, lambda folder, out, log: False),
    'fit': (3, [[*FIT, '--epsilon', '0.02', '--out', 'OUT'],
                [*FIT, '--epsilon', '0.02', '--method', 'output', '--out', 'OUT']], 1,
            fitted),
    'tune': (2, [[*FIT, '--epsilon', '0.04', '--tune', '3', '--test', 'test.csv', '--out', 'OUT']], 1, fitted),
    'audit': (2, [[*TRAIN, '--model', 'mlp', '--steps', '4', '--noise', '30', '--canaries', '16', *LEDGER,
                   '--out', 'OUT']], 4, lambda folder, out, log: complete(folder / out, 4)),
}


class CommandWorld:
    """One ledger after the other; a few commands at once, some of them killed."""

    def __init__(self, soak, name, seed):
        self.soak, self.name = soak, name
        self.rng = random.Random(seed)
        self.lives = {kind: 0.05 if kind in ('release', 'quantile', 'charge', 'note', 'show') else 1.0 for kind in KINDS}
        self.ledgers = self.sessions = 0

    def live(self):
        while not self.soak.done():
            self.ledgers += 1
            self.folder = self.soak.folder / f'{self.name}-{self.ledgers}'
            self.folder.mkdir()
            self.rows = []
            found = None
            try:
                self.make_ledger()
                for _ in range(200):
                    if self.soak.done() or not self.round():
                        break
            except Finding as finding:
                found = str(finding)
            except subprocess.TimeoutExpired as hung:
                found = f'a command takes more than {LIMIT} s: {hung.cmd}'
            self.soak.count(ledgers=1, entries=len(self.rows))
            if found:
                self.soak.found(found, self.folder)
            else:
                shutil.rmtree(self.folder)

    def make_ledger(self):
        write_data(self.folder)
        rng = random.Random(2)
        for name, rows in (('fit.csv', 64), ('test.csv', 32)):
            self.folder.joinpath(name).write_text('x,y\n' + ''.join(
                f"{rng.random():.3f},{rng.choice('ab')}\n" for _ in range(rows)))
        self.ledger = self.folder / 'L.db'
        words = ['ledger', 'init', 'L.db', '--epsilon', str(self.rng.choice([0.5, 1, 2])), '--delta', DELTA]
        while not self.ledger.exists() or self.soak.run(['ledger', 'verify', 'L.db'],
                                                        self.folder).returncode != 0:
            process = self.soak.spawn(words, self.folder, self.folder / 'init')
            time.sleep(self.rng.uniform(0, 0.03))
            if end(process):
                self.soak.count_kill(init=1)
            elif process.returncode != 0 and not self.ledger.exists():
                raise Finding(f"init: {(self.folder / 'init.err').read_text().strip()}")
        self.rows = self.read()

    def round(self):
        """False when the budget is used up."""
        rng = self.rng
        old = self.ledger.read_bytes() if rng.random() < 0.2 else None
        kinds = rng.choices(list(KINDS), [kind[0] for kind in KINDS.values()], k=rng.randint(1, 3))
        started = [self.start(kind) for kind in kinds]
        try:
            self.wait(started)
        finally:
            for process, *_ in started:
                end(process)
        known, self.rows = self.rows, self.read()
        if self.rows[:len(known)] != known:
            raise Finding('an entry is gone or was changed')
        check_chain(self.rows, len(known))
        charged = sum(entry.net for entry in charges(self.rows[len(known):]).values())
        answered = sum(KINDS[kind][2] for _, kind, out, log, _, _ in started
                       if KINDS[kind][3](self.folder, out, log))
        self.soak.count(sessions=len(started), released=answered, charged=charged)
        if answered > charged:
            raise Finding(f'{answered} releases were answered and {charged} charged by {kinds}')
        goes_on = all([self.check_end(*command) for command in started])
        if rng.random() < 0.1:
            self.check_ledger()
        if old is not None and answered > 0:
            self.put_back(old)
        return goes_on

    def start(self, kind):
        self.sessions += 1
        out, log = f'out-{self.sessions}', self.folder / f'session-{self.sessions}'
        words = [out if word == 'OUT' else word for word in self.rng.choice(KINDS[kind][1])]
        aim = self.rng.choices(['time', 'commit', 'none'], [12, 4, 3])[0]
        return self.soak.spawn(words, self.folder, log), kind, out, log, aim, time.monotonic()

    def wait(self, started):
        """Kills each at its time: any of its life, or shortly after a journal was seen."""
        due = {process: begun + self.rng.uniform(0, 1.1 * self.lives[kind])
               for process, kind, _, _, aim, begun in started if aim == 'time'}
        journal, running = f'{self.ledger}-journal', list(started)
        while running:
            now = time.monotonic()
            for command in list(running):
                process, kind, _, _, aim, begun = command
                if process.poll() is not None:
                    if process.returncode == 0:
                        self.lives[kind] += 0.1 * (now - begun - self.lives[kind])
                    running.remove(command)
                elif now - begun > LIMIT:
                    raise Finding(f'a {kind} takes more than {LIMIT} s')
                elif aim == 'commit' and process not in due and os.path.exists(journal):
                    due[process] = now + self.rng.expovariate(1 / 0.002)
                elif now >= due.get(process, math.inf):
                    if end(process):
                        self.soak.count_kill(**{aim: 1, f'in_{kind}': 1})
                    running.remove(command)
            time.sleep(0.0005)

    def check_end(self, process, kind, _out, log, _aim, _begun):
        """One that was not killed ended well, or was refused in one sentence because nothing is left."""
        code, errors = process.returncode, Path(f'{log}.err').read_text()
        if code in (0, -9):
            return True
        if code == 2 and complaint(errors) and any(words in errors for words in (
                'refuses it', 'refuses the fit', 'does not admit a single step')):
            self.soak.count(refusals=1)
            return False
        raise Finding(f'a {kind} in {log.name} ends with {code}: {errors.strip()}')

    def check_ledger(self):
        verified = self.soak.run(['ledger', 'verify', 'L.db'], self.folder)
        shown = self.soak.run(['ledger', 'show', 'L.db', '--json'], self.folder)
        if verified.returncode != 0 or shown.returncode != 0:
            raise Finding(f'verify or show: {verified.stderr.strip()} {shown.stderr.strip()}')
        if json.loads(shown.stdout)['verdict']['used'] > 1:
            raise Finding('more than the budget is used')

    def put_back(self, old):
        """A copy that was made before the last answer admits nothing on this machine."""
        newest = self.ledger.read_bytes()
        self.ledger.write_bytes(old)
        told = self.soak.run(COUNT, self.folder)
        self.ledger.write_bytes(newest)
        self.soak.count(old_copies=1)
        if told.returncode != 2 or not complaint(told.stderr):
            raise Finding(f'an old copy answers with {told.returncode}: {told.stdout} {told.stderr.strip()}')

    def read(self):
        # A reader that cannot write does not play a journal back; the program does.
        if Path(f'{self.ledger}-journal').exists():
            self.soak.count(hot=1)
            self.soak.run(['ledger', 'verify', 'L.db'], self.folder)
        return read_ledger(self.ledger)
