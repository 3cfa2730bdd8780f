"""A component is a file and a line in a list: the program that was built with one more of every kind
(CMakeLists.txt here) shows each of them in its help, takes it from a flag and from a TOML file, runs
with it, writes it into the folder of the run, and resumes it from its checkpoint.

  components_test.py PROGRAM
"""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve()

CONFIG = '''
[data]
source = "{data}"
columns = ["x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes"]
records = 60

[model]
name = "logistic"

[privacy]
noise = 3
delta = 1e-6
sampling = "backward"
backward-turns = 2
noise-kind = "doubled"
clipping = "shrinking"
shrinking-factor = 0.999

[training]
steps = {steps}
optimizer = "leap"
leap-gain = 0.5
schedule = "warmup:2,halving"
'''


def run(*words, code=0):
    result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True,
                            timeout=120)
    assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
    return result.stdout + result.stderr


def flag_help(text, flag):
    """The help of one flag, on one line."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == [flag])
    end = start + 1
    while end < len(lines) and lines[end].startswith(' ' * 20):
        end += 1
    return ' '.join(' '.join(lines[start:end]).split())


def check_help():
    text = run('train', '--help-all')
    for flag, wanted in [('--optimizer', 'adamw or leap'), ('--sampling', 'ordered or backward'),
                         ('--noise-kind', 'doubled or lagged'), ('--lr-schedule', 'halving'),
                         ('--clipping', 'adaclip or shrinking'),
                         ('--shrinking-factor', 'Of the bound, in each step (shrinking; 0.9)'),
                         ('--lr', '0.125 for leap'),
                         ('--leap-gain', 'Factor of the gradient (leap; 1)'),
                         ('--backward-turns', 'How often the order is turned (backward; 1)')]:
        shown = flag_help(text, flag)
        assert wanted in shown, (flag, shown)


def check_mistakes(config):
    for words, wanted in [
            (['--optimizer', 'leep'], "did you mean 'leap'?"),
            (['--leap-gain', '11'], 'the gain of the leap is 11; it must be greater than 0'),
            (['--optimizer', 'adam'], "the gain of the leap was given for the optimizer 'adam', "
                                      "which does not have it; use 'leap'"),
            (['--sampling', 'full'], "the number of turns was given for the sampling 'full'"),
            (['--clipping', 'flat'], "the factor of the bound was given for the clipping 'flat'"),
            (['--shrinking-factor', '2'], 'the factor of the bound is 2'),
            (['--lr-schedule', 'halving:2'], "'halving'"),
            (['--backward-turns', '0'], 'the number of turns is 0'),
            (['--noise-kind', 'lagged', '--noise-schedule', 'linear:0.5'],
             'lagged noise needs full batches and constant noise')]:
        text = run('train', config, '--dry-run', *words, code=2)
        assert wanted in text, (words, text)


def check_run(config, folder):
    result = json.loads(run('train', config, '--out', folder, '--json').splitlines()[0])
    assert result['steps'] == 4 and result['private'], result
    written = (folder / 'config.toml').read_text(encoding='utf-8')
    for line in ['optimizer = "leap"', 'leap-gain = 0.5', 'learning-rate = 0.125',
                 'clipping = "shrinking"', 'shrinking-factor = 0.999', 'sampling = "backward"', 'backward-turns = 2', 'noise-kind = "doubled"',
                 'schedule = "warmup:2,halving"', '# momentum is left out']:
        assert f'\n{line}' in written, (line, written)
    event = (folder / 'event.txt').read_text(encoding='utf-8').strip()
    assert event == 'add-remove: 4*gaussian(3.75)', event
    statement = ' '.join((folder / 'statement.txt').read_text(encoding='utf-8').split())
    assert 'backward batches of 60 records' in statement, statement
    assert 'shrinking clipping at 0.1' in statement, statement
    # A run is the same from its own config.toml.
    again = run('train', folder / 'config.toml', '--dry-run', '--json')
    assert json.loads(again.splitlines()[0])['event'] == event, again


def tensors(file):
    """Name to bytes."""
    with open(file, 'rb') as stream:
        size = struct.unpack('<Q', stream.read(8))[0]
        header = json.loads(stream.read(size))
        values = stream.read()
    header.pop('__metadata__', None)
    return {name: values[slice(*entry['data_offsets'])] for name, entry in header.items()}


def newest_step(folder):
    """Of the checkpoints that are there; 0 for none. Older ones are removed."""
    steps = [int(path.name.removeprefix('step-')) for path in folder.glob('checkpoints/step-*')
             if path.name.removeprefix('step-').isdigit()]
    return max(steps, default=0)


def stop_early(folder, *words):
    """Begins a run that makes checkpoints, and stops it behind the first of them; the newest."""
    with subprocess.Popen([PROGRAM, 'train', *words, '--out', folder, '--checkpoint-every', '1'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while newest_step(folder) < 2 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    return max(folder.glob('checkpoints/step-*'))


def check_checkpoint(config, folder):
    """A run that is stopped in its middle keeps what the optimizer keeps, and is resumed."""
    text = config.read_text(encoding='utf-8').replace('steps = 4', 'steps = 100000')
    long = config.with_name('long.toml')
    long.write_text(text.replace('warmup:2,halving', 'constant'), encoding='utf-8')
    newest = stop_early(folder, long)
    step = newest_step(folder)
    names = set(tensors(newest / 'state.safetensors'))
    kept = {name for name in names if re.fullmatch(r'optimizer\..+\.last_leap', name)}
    parameters = {name for name in names if name.startswith('parameter.')}
    assert parameters and len(kept) == len(parameters), names
    assert 'clip.share' in names, names
    with subprocess.Popen([PROGRAM, 'train', '--resume', folder], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        deadline = time.monotonic() + 60
        while newest_step(folder) <= step and time.monotonic() < deadline and \
                process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, output
    assert newest_step(folder) > step, output


def check_process(config, folder):
    """Noise that remembers: with one process and several, behind a checkpoint, in the statement."""
    text = config.read_text(encoding='utf-8').replace('noise-kind = "doubled"',
                                                      'noise-kind = "lagged"')
    short = config.with_name('lagged.toml')
    short.write_text(text, encoding='utf-8')
    models = {}
    for processes in [1, 2, 3]:
        out = folder / f'short-{processes}'
        run('train', short, '--insecure-seed', 3, '--out', out,
            *(['--processes', processes] if processes > 1 else []))
        models[processes] = tensors(out / 'model.safetensors')
        event = (out / 'event.txt').read_text(encoding='utf-8').strip()
        assert event.splitlines()[-1] == 'add-remove: 4*gaussian(1.5)', event
        statement = ' '.join((out / 'statement.txt').read_text(encoding='utf-8').split())
        assert 'lagged noise of multiplier 3' in statement, statement
    assert models[2] == models[3]
    for name, value in models[1].items():
        one = struct.unpack(f'<{len(value) // 4}f', value)
        several = struct.unpack(f'<{len(value) // 4}f', models[2][name])
        assert all(abs(a - b) < 1e-4 * (abs(a) + 1e-2) for a, b in zip(one, several)), name

    long = config.with_name('long-lagged.toml')
    long.write_text(text.replace('steps = 4', 'steps = 1000').replace('warmup:2,halving', 'constant'),
                    encoding='utf-8')
    whole = folder / 'whole'
    run('train', long, '--insecure-seed', 3, '--out', whole)
    for seed in [['--insecure-seed', '3'], []]:
        out = folder / f'resumed-{len(seed)}'
        newest = stop_early(out, long, *seed)
        state = tensors(newest / 'state.safetensors')
        # The scales of all draws, where they can be drawn again; a private process begins anew.
        assert (len(state['noise.scales']) == 8 * newest_step(out) if seed
                else 'noise.scales' not in state), state.keys()
        run('train', '--resume', out)
        same = tensors(out / 'model.safetensors') == tensors(whole / 'model.safetensors')
        assert same == bool(seed), seed


def check_fit(data, folder):
    """A loss: its model is in the help, is fitted, and is named in the statement."""
    assert 'svm or half' in flag_help(run('fit', '--help'), '--model')
    run('fit', data, '--columns', 'x:numeric:0:1', 'y:numeric:0:1', 'above:label:no|yes',
        '--records', 60, '--model', 'half', '--epsilon', 5, '--delta', 1e-6, '--out', folder)
    statement = ' '.join((folder / 'statement.txt').read_text(encoding='utf-8').split())
    assert 'half a logistic regression of 2 features' in statement, statement


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ['SORDINO_STATE'] = str(folder / 'state')
        rows = [f'{i / 60},{(i * 7 % 60) / 60},{"yes" if i * 7 % 60 > i else "no"}'
                for i in range(60)]
        data = folder / 'points.csv'
        data.write_text('x,y,above\n' + '\n'.join(rows) + '\n', encoding='utf-8')
        config = folder / 'config.toml'
        config.write_text(CONFIG.format(data=data, steps=4), encoding='utf-8')
        check_help()
        check_mistakes(config)
        check_run(config, folder / 'run')
        check_checkpoint(config, folder / 'long')
        check_process(config, folder / 'lagged')
        check_fit(data, folder / 'fit')
    print('one more component of every kind: in the help, in a file, in a run and in a checkpoint')


if __name__ == '__main__':
    main()
