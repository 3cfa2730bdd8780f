"""Trainings with several processes, of which one is killed or stopped at a random instant."""

import os
import random
import signal
import shutil
import subprocess
import time
from pathlib import Path

from looking import (Finding, charges, check_chain, complaint, complete, look_at_folder, read_ledger,
                     write_data)
from world import TRAIN

PROMISE = 60  # seconds from the loss of a rank to the end of all others
LIMIT = 300  # seconds for a training that nobody touches
LOST = 4  # its exit code
STEPS = 60
EPSILON = 8


def ranks_of(parent):
    """Processes by rank, as far as they have started."""
    found = {}
    try:
        children = Path(f'/proc/{parent}/task/{parent}/children').read_text().split()
    except OSError:
        return found
    for child in children:
        try:
            variables = Path(f'/proc/{child}/environ').read_bytes().split(b'\0')
        except OSError:
            continue
        found.update({int(variable[5:]): int(child) for variable in variables
                      if variable.startswith(b'RANK=')})
    return found


def is_alive(process):
    try:
        return Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


class RankWorld:
    """One ledger, and trainings that are resumed until they are at their end."""

    def __init__(self, soak, ranks, seed):
        self.soak, self.ranks, self.rng = soak, ranks, random.Random(seed)
        self.life = 2.0  # of a session, in seconds; learned

    def live(self):
        number = 0
        while not self.soak.done():
            number += 1
            folder = self.soak.folder / f'ranks-{number}'
            folder.mkdir()
            write_data(folder)
            try:
                self.one_training(folder)
            except Finding as finding:
                self.soak.found(str(finding), folder)
                continue
            except subprocess.TimeoutExpired as hung:
                self.soak.found(f'a command takes more than {LIMIT} s: {hung.cmd}', folder)
                continue
            shutil.rmtree(folder)

    def one_training(self, folder):
        made = self.soak.run(['ledger', 'init', 'L.db', '--epsilon', str(EPSILON), '--delta', '1e-5'],
                             folder)
        if made.returncode != 0:
            raise Finding(f'init: {made.stderr.strip()}')
        run, rows, released, session = folder / 'run', [], 0, 0
        words = [*TRAIN, '--model', 'mlp', '--steps', str(STEPS), '--noise', '4', '--ledger', 'L.db',
                 '--out', 'run']
        is_refused = False
        while not is_refused and not complete(run, STEPS):
            session += 1
            before = look_at_folder(run)
            if before.newest is None:
                shutil.rmtree(run, ignore_errors=True)
            again = words if before.newest is None else ['train', '--resume', 'run']
            count = self.rng.choice([self.ranks, self.ranks, 2, 3])
            # A rank that is hurt before it has joined is missed after the timeout, not earlier.
            is_refused = self.one_session([*again, '--processes', str(count), '--join-timeout', '30'],
                                          folder, session, count)
            self.soak.count(sessions=1, refusals=is_refused)
            rows = self.check_ledger(folder, rows)
            after = look_at_folder(run)
            new = [step for item, step in after.items.items() if item not in before.items]
            first = before.newest or 0
            released += max([first, *new]) - first
            charged = sum(entry.net for entry in charges(rows).values())
            if released > charged:
                raise Finding(f'session {session}: {released} steps were released and {charged} '
                              'charged')
        self.soak.count(runs=not is_refused, ledgers=1, charged=charged, released=released, entries=len(rows))

    def check_ledger(self, folder, known):
        verified = self.soak.run(['ledger', 'verify', 'L.db'], folder)
        if verified.returncode != 0:
            raise Finding(f'verify says {verified.returncode}: {verified.stderr.strip()}')
        rows = read_ledger(folder / 'L.db')
        if rows[:len(known)] != known:
            raise Finding('an entry is gone or was changed')
        check_chain(rows, len(known))
        return rows

    def one_session(self, words, folder, session, count):
        """True: the ledger admits no further step, because too many were lost."""
        log = folder / f'session-{session}'
        started = time.monotonic()
        parent = self.soak.spawn(words, folder, log)
        victim, how, hit = self.hurt(parent, started, count)
        children = set(ranks_of(parent.pid).values())
        try:
            code = parent.wait(PROMISE if hit else LIMIT)
        except subprocess.TimeoutExpired:
            raise Finding(f'{log.name}: {PROMISE} s after {how} of {victim} of {count} ranks it '
                          'still runs') from None
        finally:
            if parent.poll() is None:
                parent.kill()
                parent.wait()
        if hit:
            self.soak.longest = max(self.soak.longest, time.monotonic() - hit)
        self.check_orphans(children, log)
        return self.check_end(log, code, victim, hit is not None, started)

    def hurt(self, parent, started, count):
        """Who was hurt, how, and when; None where it ended before."""
        victim = self.rng.choice([*range(count), 'parent'])
        how = self.rng.choices([signal.SIGKILL, signal.SIGSTOP], [19, 1])[0]
        if victim == 'parent':
            how = signal.SIGKILL
        due = started + self.rng.uniform(0.1, 1.1) * self.life
        while time.monotonic() < due:
            if parent.poll() is not None:
                return victim, how.name, None
            time.sleep(0.001)
        process = parent.pid if victim == 'parent' else ranks_of(parent.pid).get(victim)
        if process is None or parent.poll() is not None:
            return victim, how.name, None
        try:
            os.kill(process, how)
        except ProcessLookupError:
            return victim, how.name, None
        self.soak.count_kill(**{'stops' if how == signal.SIGSTOP else 'parents'
                                if victim == 'parent' else f'rank{min(victim, 1)}': 1})
        return victim, how.name, time.monotonic()

    def check_end(self, log, code, victim, was_hit, started):
        errors = Path(f'{log}.err').read_text()
        if code == 0:
            # It was at its end when it was hit, or was not hit.
            self.life += 0.2 * (min(time.monotonic() - started, 20) - self.life)
            return False
        if code == 2 and 'does not admit a single step' in (complaint(errors) or ''):
            return True
        if not was_hit:
            raise Finding(f'{log.name} ends with {code}: {errors.strip()}')
        if victim == 'parent' and code == -signal.SIGKILL:
            return False
        told = [line for line in errors.splitlines()
                if line.startswith('sordino: rank ') or 'another rank' in line]
        if code != LOST or len(told) != 1:
            raise Finding(f'{log.name} ends with {code} after the loss of {victim}: {errors.strip()}')
        return False

    def check_orphans(self, children, log):
        end = time.monotonic() + PROMISE
        while any(is_alive(child) for child in children):
            if time.monotonic() > end:
                raise Finding(f'{log.name}: ranks {children} live {PROMISE} s after their parent')
            time.sleep(0.01)
