"""Reads what the program leaves, with nothing of the program: ledgers, run folders, sentences."""

import hashlib
import json
import os
import random
import re
import sqlite3
import struct
import xml.etree.ElementTree
from contextlib import closing
from dataclasses import dataclass, field
from typing import Optional

try:
    import tomllib
except ImportError:  # Python 3.9 and 3.10
    tomllib = None

COLUMNS = 'number, kind, time, run, event, failure, detail, previous, hash'


class Finding(Exception):
    """Something that must not be; the text says what."""


def write_data(folder):
    """Two small arrays for trainings, which start faster from them than from anything else."""
    rng = random.Random(1)
    inputs = struct.pack('<1024f', *(rng.gauss(0, 1) for _ in range(1024)))
    labels = struct.pack('<256q', *(rng.randrange(2) for _ in range(256)))
    for name, kind, shape, numbers in (('x', '<f4', '(256, 4)', inputs),
                                       ('y', '<i8', '(256,)', labels)):
        header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
        header += ' ' * (-(len(header) + 11) % 64) + '\n'
        (folder / f'{name}.npy').write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) +
                                             header.encode() + numbers)
    (folder / 't.csv').write_text('x\n1\n2\n3\n')


def complaint(text):
    """The one sentence that a refused command says; None where it says something else."""
    lines = text.splitlines()
    notices = ('sordino: logistic: ', 'sordino: this run takes all', 'sordino: resuming after')
    part = re.compile(r"sordino: the ledger '.*' admits \d+ of the \d+ steps, ")
    told = [line for line in lines if not line.startswith(notices) and not part.match(line)]
    if len(told) != 1 or not re.fullmatch(r'sordino: \S.*\.', told[0]):
        return None
    return told[0]


# The ledger.

def read_ledger(file):
    with closing(sqlite3.connect(f'file:{file}?mode=ro', uri=True)) as database:
        return database.execute(f'SELECT {COLUMNS} FROM entries ORDER BY number').fetchall()


def entry_hash(row):
    """As src/sordino/ledger/entry.h says: every field but the last, each with its length."""
    failure = str(row[5]) if row[5] else '0'
    fields = [*(str(value) for value in row[:5]), failure, *row[6:8]]
    text = ''.join(f'{len(value.encode())}:{value};' for value in fields)
    return hashlib.sha256(text.encode()).hexdigest()


def check_chain(rows, known):
    """That the rows behind the first `known` follow each other."""
    previous = rows[known - 1][8] if known else '0' * 64
    for number, row in enumerate(rows[known:], known):
        if row[0] != number or row[7] != previous or row[8] != entry_hash(row):
            raise Finding(f'entry {number} is not what was chained')
        previous = row[8]


@dataclass
class Charged:
    net: int = 0  # releases that were charged and not returned
    first: Optional[int] = None  # the first step of the first charge


def charges(rows):
    """By run."""
    runs = {}
    for _, kind, _, run, event, _, detail, _, _ in rows:
        if kind not in ('charge', 'return'):
            continue
        repeated = re.match(r'[\w-]+: (?:(\d+)\*)?', event)
        entry = runs.setdefault(run, Charged())
        entry.net += int(repeated[1] or 1) * (1 if kind == 'charge' else -1)
        steps = re.search(r'steps (\d+) to', detail)
        if entry.first is None and kind == 'charge' and steps:
            entry.first = int(steps[1])
    return runs


# Run folders.

def read_safetensors(file):
    """Header and bytes of the weights."""
    data = file.read_bytes()
    try:
        length, = struct.unpack_from('<Q', data)
        header = json.loads(data[8:8 + length])
    except (struct.error, ValueError) as error:
        raise Finding(f'{file} is half written: {error}') from error
    end = max((tensor['data_offsets'][1] for name, tensor in header.items()
               if name != '__metadata__'), default=0)
    if len(data) != 8 + length + end:
        raise Finding(f'{file} has {len(data)} bytes instead of {8 + length + end}')
    return header, data[8 + length:]


def weights_hash(file):
    return hashlib.sha256(read_safetensors(file)[1]).hexdigest()


def complete(folder, steps):
    """All steps were made and the model was written."""
    file = folder / 'model.safetensors'
    return file.exists() and read_safetensors(file)[0]['__metadata__']['steps'] == str(steps)


def check_statement(folder):
    """The statement beside a model that was trained to its end is that of the model."""
    said = read_safetensors(folder / 'model.safetensors')[0]['__metadata__']['statement_sha256']
    if hashlib.sha256((folder / 'statement.txt').read_bytes()).hexdigest() != said:
        raise Finding(f'{folder}: the run has ended and statement.txt is not that of its model')


def drafts(folder):
    """What is written and has not been moved to its place; nothing where the folder is gone."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [name for name in names if name.startswith('.new-') or name.endswith('.tmp')]


@dataclass
class Look:
    newest: Optional[int] = None  # step of the newest checkpoint
    run: str = ''  # in the ledger
    # What shows that a step was made, with the step. The same step made again is another thing.
    items: dict = field(default_factory=dict)
    litter: list = field(default_factory=list)


def look_at_folder(folder):
    """Everything in it is whole, or a Finding says what is not."""
    look = Look()
    if not folder.exists():
        return look
    look.litter = drafts(folder)
    for file in folder.glob('checkpoints/step-*/state.json'):
        text = parsed(file, json.loads)
        facts, step = text['facts'], int(file.parent.name[5:])
        state = (file.parent / 'state.safetensors').read_bytes()
        if facts['step'] != step or text['state_sha256'] != hashlib.sha256(state).hexdigest():
            raise Finding(f'{file.parent} is not whole')
        read_safetensors(file.parent / 'state.safetensors')
        look.items['checkpoint', file.stat().st_ino, facts['seconds']] = step
        if look.newest is None or step > look.newest:
            look.newest, look.run = step, facts['run']
    for place in folder.glob('checkpoints/step-*'):
        if not (place / 'state.json').exists() or not (place / 'state.safetensors').exists():
            raise Finding(f'{place} is not whole')
    metrics = folder / 'metrics.jsonl'
    if metrics.exists():
        text = metrics.read_text()
        if text and not text.endswith('\n'):
            raise Finding(f'{metrics} ends in half a line')
        for line in text.splitlines():
            look.items['row', line] = json.loads(line)['step']
    model = folder / 'model.safetensors'
    if model.exists():
        steps = int(read_safetensors(model)[0]['__metadata__']['steps'])
        look.items['model', model.stat().st_ino, model.stat().st_mtime_ns] = steps
    for name, parse in (('config.toml', tomllib.loads if tomllib else str),
                        ('accuracy-and-epsilon.svg', xml.etree.ElementTree.fromstring),
                        ('event.txt', whole_lines), ('statement.txt', whole_lines)):
        if (folder / name).exists():
            parsed(folder / name, parse)
    return look


def whole_lines(text):
    if not text.endswith('\n'):
        raise ValueError('it does not end with a line')


def parsed(file, parse):
    try:
        return parse(file.read_text())
    except (ValueError, xml.etree.ElementTree.ParseError) as error:
        raise Finding(f'{file} is half written: {error}') from error
