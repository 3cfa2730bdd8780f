"""Runs quick forms of the experiments that come with the program: experiment_test.py SORDINO NAME...

Each must end well within its two minutes of two idle cores (ten times as much is allowed here, for
machines that are slow or busy), have a value for every measure, and pictures that are XML with points
in them. `all` in the place of names runs every experiment whose data is there.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LIMIT_SECONDS = 1200
# Measures of quick forms that must lie above this: twice the accuracy of guessing.
FLOORS = {'transfer': ('accuracy', 0.2)}


def run(sordino, name):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, 'out')
        command = [sordino, 'experiment', name, '--quick', '--out', out, '--json']
        result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                                check=False)
        assert result.returncode == 0, f'{name}: {result.stderr}'
        report = json.loads(result.stdout)
        assert report['failed'] == 0, report
        assert 'nothing was spent' in report['spending'], report
        results = json.loads((out / 'results.json').read_text(encoding='utf-8'))
        assert len(results['cells']) == report['cells'] > 0
        seconds = 0
        for cell in results['cells']:
            assert cell['values'], cell
            seconds += cell['seconds']
            if name in FLOORS:
                measure, floor = FLOORS[name]
                assert cell['values'][measure] > floor, cell
            for value in cell['values'].values():
                assert not isinstance(value, dict) or len(value['x']) == len(value['y']) > 0, cell
        with open(out / 'results.csv', encoding='utf-8', newline='') as file:
            assert len(list(csv.DictReader(file))) == report['cells']
        for picture in report['pictures']:
            root = xml.etree.ElementTree.parse(out / picture).getroot()
            points = [e for e in root.iter() if e.tag.endswith('circle') and e.get('r') == '3']
            points += [e for e in root.iter() if e.tag.endswith('image')]  # that a command drew
            assert points, f'{name}: {picture} shows nothing'
        # Again from what is kept: nothing runs.
        again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert again.returncode == 0, again.stderr
        print(f'{name}: {report["cells"]} cells, {seconds:.0f} s')


def main():
    sordino, names = sys.argv[1], sys.argv[2:]
    if names == ['all']:
        listed = subprocess.run([sordino, 'experiment', 'list', '--json'], capture_output=True,
                                text=True, check=True)
        names = [entry['name'] for entry in json.loads(listed.stdout)['experiments']]
    for name in names:
        run(sordino, name)


if __name__ == '__main__':
    main()
