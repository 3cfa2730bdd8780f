"""Event files of `sordino report --tensorboard`, read by TensorBoard itself.

    tensorboard_events.py SORDINO RUN...

Writes the event files of the runs, reads them with TensorBoard's own reader, and compares every value
with metrics.jsonl. Needs the PyPI package tensorboard.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

MEASURES = ['epsilon', 'test_accuracy', 'test_loss', 'test_mean_squared_error',
            'test_mean_absolute_error', 'seconds']


def as_float32(value):
    return struct.unpack('f', struct.pack('f', value))[0]


def scalars(folder):
    """{(tag, step): value}"""
    events = EventAccumulator(str(folder), size_guidance={'scalars': 0, 'tensors': 0})
    events.Reload()
    tags = events.Tags()
    found = {(tag, event.step): event.value
             for tag in tags['scalars'] for event in events.Scalars(tag)}
    for tag in tags['tensors']:  # newer readers turn scalars into tensors
        for event in events.Tensors(tag):
            found[tag, event.step] = event.tensor_proto.float_val[0]
    return found


def main():
    program, *runs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as board:
        subprocess.run([program, 'report', *runs, '--tensorboard', board], check=True)
        folders = sorted(pathlib.Path(board).iterdir(), key=lambda path: path.name)
        assert len(folders) == len(runs), folders
        for number, run in enumerate(runs, 1):
            name = pathlib.Path(run).resolve().name
            folder = pathlib.Path(board) / (name if len(runs) == 1 else f'{number}-{name}')
            rows = [json.loads(line) for line in
                    (pathlib.Path(run) / 'metrics.jsonl').read_text().splitlines()]
            expected = {(measure, row['step']): as_float32(row[measure]) for row in rows
                        for measure in MEASURES if row.get(measure) is not None}
            assert scalars(folder) == expected, (scalars(folder), expected)
            print(f'{run}: TensorBoard reads {len(expected)} values as they are in metrics.jsonl')


if __name__ == '__main__':
    main()
