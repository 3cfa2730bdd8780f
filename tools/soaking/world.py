"""A ledger, the trainings that share it, and how they are killed."""

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from looking import (Finding, charges, check_chain, check_statement, complaint, complete, drafts,
                     look_at_folder, read_ledger, write_data)

LIMIT = 120  # seconds after which a process counts as hung
# Every step leaves a checkpoint, so that every step that was made is seen.
TRAIN = ['train', '--data', 'x.npy', '--labels', 'y.npy', '--shape', '4', '--classes', '2',
         '--records', '256', '--batch', '16', '--delta', '1e-5', '--threads', '1',
         '--checkpoint-every', '1', '--evaluate-every', '100000']
# What the second of two that go on with the same folder may say.
BESIDE = ('is in use by another run', 'was resumed by another process', 'has ended',
          'does not admit a single step')


class Soak:
    """What all share: the program, the counts and what was found."""

    def __init__(self, program, folder, kills, minutes=float('inf')):
        self.program, self.folder, self.kills = program, folder, kills
        self.counts = Counter()
        self.start = time.monotonic()
        self.end = self.start + 60 * minutes
        self.longest = 0  # seconds from the loss of a rank to the end of the others
        self.environment = {**os.environ, 'SORDINO_STATE': str(folder / 'state'),
                            'OMP_NUM_THREADS': '1'}

    def count(self, **counts):
        self.counts.update(counts)

    def count_kill(self, **where):
        self.counts.update(kills=1, **where)
        kills, runs, findings = (self.counts[name] for name in ('kills', 'runs', 'findings'))
        if kills % max(100, self.kills // 100) == 0:
            self.say(f'{kills} kills, {runs} runs ended, {findings} findings')

    def found(self, what, folder):
        self.count(findings=1)
        self.say(f'FINDING: {what}; kept in {folder}')

    def say(self, text):
        print(f'soak: {time.monotonic() - self.start:6.0f} s  {text}', flush=True)

    def done(self):
        return self.counts['kills'] >= self.kills or time.monotonic() >= self.end

    def spawn(self, words, folder, log):
        with open(f'{log}.out', 'wb') as out, open(f'{log}.err', 'wb') as err:
            return subprocess.Popen([self.program, *words], cwd=folder, stdin=subprocess.DEVNULL,
                                    stdout=out, stderr=err, env=self.environment,
                                    start_new_session=True)

    def run(self, words, folder):
        return subprocess.run([self.program, *words], cwd=folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=self.environment, check=False,
                              timeout=LIMIT)


def end(process):
    """Kills it where it still runs, and says whether that is what ended it."""
    if process.poll() is not None:
        return False
    process.kill()
    return process.wait() == -9


class Training:
    """A run folder, and the sessions in which it is resumed."""

    def __init__(self, folder, words, steps, plan):
        self.folder, self.words, self.steps, self.plan = folder, words, steps, plan
        self.released = 0  # steps; one that was made twice counts twice
        self.ended = False

    def begin(self, soak, log, entries, has_rival):
        """A rival is a second process that goes on with the same folder at the same time."""
        before = look_at_folder(self.folder)
        self.first, self.known, self.entries = before.newest or 0, before.items, entries
        resume = ['train', '--resume', self.folder.name]
        self.log, self.rival = log, None
        self.started = time.monotonic()
        self.process = soak.spawn(self.words if before.newest is None else resume,
                                  self.folder.parent, log)
        if has_rival and before.newest is not None:
            self.rival = soak.spawn(resume, self.folder.parent, f'{log}-rival')

    def said(self, where):
        return Path(f"{self.log}{'-' if 'rival' in where else '.'}{where}").read_text()


class Aim:
    """When a training is killed, and how: at any time, or when something is seen to be written."""

    def __init__(self, rng, training, scale, together):
        left = training.steps - training.first
        self.life = 0.22 + 0.006 * left  # about, in seconds
        self.how = rng.choices(['kill', 'term', 'none'], [18, 4, 2])[0]
        self.kind = rng.choices(['time', 'commit', 'checkpoint', 'end'], [12, 3, 3, 3])[0]
        self.skip = {'commit': rng.randrange(4),
                     'checkpoint': rng.randrange(left)}.get(self.kind, 0)
        mean = {'commit': 0.001, 'checkpoint': 0.001, 'end': 0.015}.get(self.kind, 1)
        self.delay = scale * rng.expovariate(1 / mean)
        if together is not None:
            self.kind, self.delay = 'time', together
        elif self.kind == 'time':
            self.delay = rng.uniform(0, 1.05 * scale * self.life)
        self.due = training.started + self.delay if self.kind == 'time' else None
        self.was_seen = False
        self.was_sent = False

    def sees(self, training, ledger):
        if self.kind == 'commit':
            return Path(f'{ledger}-journal').exists()
        if self.kind == 'checkpoint':
            return bool(drafts(training.folder / 'checkpoints'))
        metrics = training.folder / 'metrics.jsonl'  # its first line is written at the last step
        return metrics.exists() and metrics.stat().st_size > 0

    def is_time(self, training, ledger, now):
        if self.how == 'none' or self.was_sent:
            return False
        if self.due is None:
            sees = self.sees(training, ledger)
            if sees and not self.was_seen:
                self.skip -= 1
                if self.skip < 0:
                    self.due = now + self.delay
            self.was_seen = sees
        return self.due is not None and now >= self.due


class World:
    """One ledger after the other, each until its budget is used up."""

    def __init__(self, soak, name, seed):
        self.soak, self.name = soak, name
        self.rng = random.Random(seed)
        self.scale = 1.0  # how long a life is beside what Aim expects of it
        self.ledgers = self.sessions = 0

    def live(self):
        while not self.soak.done():
            found = None
            self.trainings, self.rows = [], []
            # No two trainings have the same plan, so that a run of the ledger shows whose it is.
            self.plans = [(steps, noise) for steps in range(8, 49) for noise in (3, 4, 5)]
            self.rng.shuffle(self.plans)
            self.ledgers += 1
            self.folder = self.soak.folder / f'{self.name}-{self.ledgers}'
            self.folder.mkdir()
            try:
                self.make_ledger()
                while not self.soak.done() and self.plans and self.round():
                    pass
            except Finding as finding:
                found = str(finding)
            except subprocess.TimeoutExpired as hung:
                found = f'a command takes more than {LIMIT} s: {hung.cmd}'
            charged = sum(entry.net for entry in charges(self.rows).values())
            released = sum(training.released for training in self.trainings)
            self.soak.count(ledgers=1, entries=len(self.rows), charged=charged, released=released)
            if found:
                self.soak.found(found, self.folder)
            else:
                shutil.rmtree(self.folder)

    def make_ledger(self):
        write_data(self.folder)
        self.ledger = self.folder / 'L.db'
        # At times the first run's plan takes all of it.
        self.whole = self.rng.random() < 0.15
        self.epsilon = self.rng.choice([0.4, 0.8] if self.whole else [1, 1.5, 2])
        words = ['ledger', 'init', 'L.db', '--epsilon', str(self.epsilon), '--delta', '1e-5']
        for _ in range(self.rng.randrange(3)):
            process = self.soak.spawn(words, self.folder, self.folder / 'init')
            time.sleep(self.rng.uniform(0, 0.015 * self.scale))
            if end(process):
                self.soak.count_kill(init=1)
        # What the killed ones left is a ledger, or is no hindrance.
        if not self.ledger.exists() or self.soak.run(['ledger', 'verify', 'L.db'],
                                                     self.folder).returncode != 0:
            made = self.soak.run(words, self.folder)
            if made.returncode != 0:
                raise Finding(f'a killed init is in the way of the next: {made.stderr.strip()}')
        self.check_ledger()

    def group(self):
        """Those that run at once next."""
        waiting = [training for training in self.trainings if not training.ended]
        if self.whole:
            return [waiting[0] if waiting else self.new_training()]
        count = self.rng.choices([1, 2, 3], [5, 3, 2])[0]
        chosen = self.rng.sample(waiting, min(count, len(waiting)))
        while len(chosen) > 1 and self.rng.random() < 0.3:
            chosen.pop()
        return chosen + [self.new_training() for _ in range(count - len(chosen)) if self.plans]

    def new_training(self):
        steps, noise = self.plans.pop()
        name = f'run-{len(self.trainings)}'
        words = [*TRAIN, '--model', 'logistic', '--steps', str(steps), '--out', name,
                 '--ledger', 'L.db', '--noise', str(noise)]
        plan = f'add-remove: {steps}*poisson(0.0625, gaussian({noise}))'
        if self.whole and not self.trainings:
            words[-2:], plan = ['--epsilon', str(self.epsilon)], None
        training = Training(self.folder / name, words, steps, plan)
        self.trainings.append(training)
        return training

    def run_of(self, training):
        """Its name in the ledger; None where it has not begun there."""
        runs = [row[3] for row in self.rows
                if row[1] == 'run' and training.plan in (None, row[4])]
        return runs[0] if runs else None

    def round(self):
        """Some trainings at once, each ended in its way; False when the budget is used up."""
        rng = self.rng
        group = self.group()
        together = rng.uniform(0, self.scale * 0.4) if rng.random() < 0.3 else None
        aims = {}
        try:
            for training in group:
                self.sessions += 1
                training.begin(self.soak, self.folder / f'session-{self.sessions}', len(self.rows),
                               rng.random() < 0.1)
                aims[training] = Aim(rng, training, self.scale, together)
            self.wait(aims)
            for training in group:
                if training.rival is not None:
                    self.end_rival(training)
        finally:
            for training in aims:
                for process in filter(None, (training.process, training.rival)):
                    end(process)
        self.soak.count(sessions=len(group), hot=Path(f'{self.ledger}-journal').exists())
        self.check_ledger()
        admitted = [self.check_session(training, aims[training]) for training in group]
        return all(admitted)

    def wait(self, aims):
        alive = dict(aims)
        while alive:
            for training, aim in list(alive.items()):
                now = time.monotonic()
                if training.process.poll() is not None:
                    training.seconds = now - training.started
                    del alive[training]
                elif now - training.started > LIMIT:
                    raise Finding(f'{training.log.name} takes more than {LIMIT} s')
                elif aim.is_time(training, self.ledger, now):
                    aim.was_sent = True
                    if aim.how == 'term':
                        training.process.terminate()
                        self.soak.count(terms=1)
                    elif end(training.process):
                        self.soak.count_kill(**{aim.kind: 1}, drafts=len(
                            drafts(training.folder / 'checkpoints') + drafts(training.folder)))
            time.sleep(0.0003)

    def end_rival(self, training):
        self.soak.count(rivals=1)
        if self.rng.random() < 0.7:
            time.sleep(self.rng.uniform(0, self.scale * 0.4))
            if end(training.rival):
                self.soak.count_kill(time=1)
        code = training.rival.wait(LIMIT)
        errors = training.said('rival.err')
        # It ended, was killed, or was stopped by the ledger; or it saw that it is not alone, or that
        # nothing is left.
        ended = code in (0, -9) or (code == 3 and 'by the ledger' in errors)
        refused = code == 2 and complaint(errors) and any(
            words in errors for words in (*BESIDE, 'does not admit a single step'))
        if not (ended or refused):
            raise Finding(f'the rival of {training.log.name} (exit {code}): {errors.strip()}')

    def check_ledger(self):
        for words in (['verify', 'L.db'], ['show', 'L.db', '--json', '--all']):
            told = self.soak.run(['ledger', *words], self.folder)
            if told.returncode != 0:
                raise Finding(f'{words[0]} says {told.returncode}: {told.stderr.strip()}')
        rows = read_ledger(self.ledger)
        if rows[:len(self.rows)] != self.rows:
            raise Finding(f'one of the first {len(self.rows)} entries is gone or was changed')
        check_chain(rows, len(self.rows))
        self.rows = rows
        show = json.loads(told.stdout)
        if show['epsilon']['upper'] > self.epsilon or show['verdict']['used'] > 1:
            raise Finding(f"epsilon {show['epsilon']['upper']} of {self.epsilon}, used "
                          f"{show['verdict']['used']}")
        said = {run['id']: run['releases'] for run in show['runs']}
        counted = {run: entry.net for run, entry in charges(rows).items()}
        if said != counted or show['head'] != {'number': len(rows) - 1, 'hash': rows[-1][8]}:
            raise Finding(f'show and the file disagree: {said} and {counted}')

    def check_session(self, training, aim):
        """What one session left; False when the ledger has nothing left."""
        code, errors = training.process.returncode, training.said('err')
        where = f'{training.folder.name} in {training.log.name} (exit {code})'
        after = look_at_folder(training.folder)
        run = self.run_of(training)
        if after.run not in ('', run):
            raise Finding(f'{where}: its checkpoint names another run of the ledger')
        made = [step for item, step in after.items.items() if item not in training.known]
        released = max([training.first, *made]) - training.first
        training.released += released
        mine = charges(self.rows[training.entries:]).get(run)
        charged = mine.net if mine else 0
        total = charges(self.rows)[run].net if run else 0
        if released > charged or training.released > total:
            raise Finding(f'{where}: {released} steps were released and {charged} charged; in all '
                          f'{training.released} and {total}')
        if mine and mine.first != training.first:
            raise Finding(f'{where} began at step {mine.first}, not at {training.first}')
        over = complete(training.folder, training.steps)
        # It ended well: all steps were made, the ledger refused one, or SIGTERM asked for the end.
        stopped = code == 143 and aim.was_sent and aim.how == 'term'
        clean = code == 0 or (code == 3 and not over) or (
            stopped and not over and 'stopped after ' in errors)
        if clean:
            self.check_clean_end(training, after, where, charged - released)
            if over and not aim.was_sent and not training.rival:
                self.scale += 0.1 * (training.seconds / aim.life - self.scale)
        elif code == 2 or stopped:
            refused = code == 2 and 'does not admit a single step' in errors
            stopped = stopped and 'stopped before the first step' in errors
            beside = code == 2 and training.rival and any(words in errors for words in BESIDE)
            if not (refused or stopped or beside) or not complaint(errors):
                raise Finding(f'{where}: {errors.strip()}')
            if (not training.rival and (released or charged)) or training.said('out'):
                raise Finding(f'{where}: {released} released and {charged} charged nevertheless')
            if refused:
                self.soak.count(refusals=1)
                return False
        elif not aim.was_sent or code != {'kill': -9, 'term': -15}[aim.how]:
            raise Finding(f'{where}: {errors.strip()}')
        if clean and run is None:
            raise Finding(f'{where}: it ended well and never began in the ledger')
        if over or after.newest is None:
            training.ended = True
            self.check_has_ended(training, over, where)
        return True

    def check_clean_end(self, training, after, where, unused):
        if unused != 0 and not training.rival:
            raise Finding(f'{where}: {unused} steps were charged, not made and not handed back')
        if after.litter:
            self.soak.count(litter=len(after.litter))
        if complete(training.folder, training.steps):
            self.soak.count(runs=1)
            if (training.folder / 'checkpoints').exists():
                raise Finding(f'{where}: checkpoints of a run that has ended')
        elif after.newest is None:
            raise Finding(f'{where}: no checkpoint of a run that was stopped')

    def check_has_ended(self, training, over, where):
        """A folder that cannot be resumed says so."""
        if over:
            check_statement(training.folder)
        if not training.folder.exists() or self.rng.random() > 0.3:
            return
        resumed = self.soak.run(['train', '--resume', training.folder.name], self.folder)
        words = 'has ended' if over else 'left no checkpoint' if (
            training.folder / 'config.toml').exists() else 'is not the folder of a run'
        if resumed.returncode != 2 or words not in (complaint(resumed.stderr) or ''):
            raise Finding(f'{where}: --resume says {resumed.returncode}: {resumed.stderr.strip()}')
