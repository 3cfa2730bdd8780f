"""Pages of `sordino report` in a real browser: report_page_test.py SORDINO ARTEFACTS [torch]

Makes pages of real runs (of folders made by hand where the program has no libtorch), opens them in
headless Chromium, and works with them by mouse. Exits with 77 where no browser is installed.
ARTEFACTS keeps the pages and a screenshot of each.
"""
import base64
import functools
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

import browser

SORDINO, ARTEFACTS = sys.argv[1], pathlib.Path(sys.argv[2])
HAS_TORCH = len(sys.argv) > 3 and sys.argv[3] == 'torch'
PROGRAM = browser.find_browser()


def sordino(*words, code=0):
    result = subprocess.run([SORDINO, *map(str, words)], capture_output=True, text=True,
                            check=False)
    assert result.returncode == code, result.stderr
    return result.stdout


def expected(value, form):
    """Bounds within which the text of a number must lie."""
    if form == 'percent':
        return 100 * value - 0.0051, 100 * value + 0.0051
    if form == 'percentUp':
        return 100 * value * (1 - 1e-11), 100 * value + 0.0101
    if form == 'whole' or value == 0:
        return value, value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    if form == 'up':
        return value * (1 - 1e-11), value + 1.001 * step
    if form == 'down':
        return value - 1.001 * step, value * (1 + 1e-11)
    return value - 0.501 * step, value + 0.501 * step


def processes_with(text):
    """Command lines of running processes that hold the text."""
    found = []
    for line in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = line.read_bytes().decode(errors='replace')
        except OSError:
            continue  # it ended meanwhile
        if text in words:
            found.append(words)
    return found


def png_colours(data):
    """Number of different pixels in the first rows of a PNG without interlacing."""
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    place, parts = 8, b''
    while place < len(data):
        size, kind = struct.unpack('>I4s', data[place:place + 8])
        if kind == b'IDAT':
            parts += data[place + 8:place + 8 + size]
        place += size + 12
    return len(set(zlib.decompress(parts)[:2_000_000]))


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.work = pathlib.Path(cls.folder.name)
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        cls.sources = cls.make_sources()
        cls.browser = browser.Browser(PROGRAM)
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def make_sources(cls):
        ledger = cls.work / 'visits.db'
        sordino('ledger', 'init', ledger, '--epsilon', '8', '--delta', '1e-5')
        for note in ['a mean', '<img src=x onerror=alert(1)>']:
            sordino('ledger', 'charge', ledger, '--event', 'add-remove: gaussian(4)', '--note', note)
        if not HAS_TORCH:
            return {'runs': [cls.made_run('one', 0.7), cls.made_run('two', 1.1)], 'ledger': ledger}
        runs = []
        for name, noise in [('one', '0.8'), ('two', '1.2')]:
            runs.append(cls.work / name)
            sordino('train', '--data', 'digits', '--model', 'logistic', '--noise', noise,
                    '--steps', '60', '--evaluate-every', '10', '--canaries', '50', '--out',
                    runs[-1], '--curator', 'Clinic <b>', '--use', 'planning of beds')
        return {'runs': runs, 'ledger': ledger}

    @classmethod
    @functools.cache
    def make_attack(cls):
        """An attack on a model of a table; made by hand where there is no libtorch."""
        attack = cls.work / 'attack.json'
        if not HAS_TORCH:
            estimate = {'value': 0.625, 'lower': 0.5, 'upper': 0.75}
            attack.write_text(json.dumps({
                'run': 'runs/points', 'members': 200, 'others': 150, 'shadows': 0,
                'confidence': 0.95, 'best': 'loss', 'classes': {'no': 0.6, 'yes': 0.65},
                'attacks': {'loss': {'auc': estimate, 'tpr': {'0.1': estimate, '0.01': estimate},
                                     'roc': [[0, 0], [0.25, 0.5], [1, 1]]}},
                'limit': {'0.1': 0.8, '0.01': 0.7}, 'limit_roc': [[0, 0.1], [1, 1]]}),
                encoding='utf-8')
            return attack
        columns = ['--columns', 'x:numeric:0:1', 'above:label:no|yes']
        for name, shift in [('members', 0), ('others', 0.5)]:
            rows = [f'{(i * 0.37 + shift) % 1:.4f},{"yes" if i % 3 else "no"}' for i in range(200)]
            (cls.work / f'{name}.csv').write_text('x,above\n' + '\n'.join(rows) + '\n',
                                                  encoding='utf-8')
        run = cls.work / 'points'
        sordino('train', '--data', cls.work / 'members.csv', *columns, '--records', '200', '--model',
                'logistic', '--epsilon', '3', '--delta', '1e-4', '--steps', '20', '--batch', '50',
                '--out', run)
        attack.write_text(sordino('audit', 'membership', run, '--members', cls.work / 'members.csv',
                                  '--others', cls.work / 'others.csv', '--json'), encoding='utf-8')
        return attack

    @classmethod
    def made_run(cls, name, noise):
        run = cls.work / name
        run.mkdir()
        (run / 'config.toml').write_text(
            f'[data]\nsource = "digits"\n[model]\nname = "logistic"\n[privacy]\nepsilon = 3\n'
            f'delta = 1e-05\nnoise = {noise}\n', encoding='utf-8')
        (run / 'event.txt').write_text(f'add-remove: 60*poisson(0.01, gaussian({noise}))\n',
                                       encoding='utf-8')
        (run / 'statement.txt').write_text('Privacy statement\n', encoding='utf-8')
        lines = [json.dumps({'private': True, 'step': step, 'epsilon': math.sqrt(step) / 10,
                             'test_accuracy': 1 - 1 / math.sqrt(step), 'test_loss': 3 / step,
                             'seconds': step / 10}) for step in range(10, 70, 10)]
        (run / 'metrics.jsonl').write_text('\n'.join(lines) + '\n', encoding='utf-8')
        (run / 'predictions.json').write_text(json.dumps({
            'schema': 1, 'classes': ['cat', '<b>dog'], 'confusion': [[30, 10], [0, 20]],
            'examples': [{'record': 1, 'truth': 0, 'predictions': [[1, 0.75], [0, 0.25]],
                          'image': {'width': 2, 'height': 1, 'channels': 3,
                                    'pixels': base64.b64encode(bytes(range(6))).decode()}}]}),
            encoding='utf-8')
        (run / 'record.json').write_text(json.dumps({
            'curator': 'Clinic <b>', 'use': 'planning of beds', 'release': {'kind': 'training'},
            'privacy': {'private': True, 'unit': 'record'}}), encoding='utf-8')
        return run

    def open(self, name, *sources):
        page = ARTEFACTS / f'{name}.html'
        page.unlink(missing_ok=True)
        data = json.loads(sordino('report', *sources, '--out', page, '--json'))
        self.browser.open(page.resolve().as_uri())
        return data

    def tearDown(self):
        self.assertEqual(self.browser.console, [])
        # The page itself, and pictures that are part of it.
        asked = [url for url in self.browser.requests if not url.startswith('data:image/svg+xml')]
        self.assertEqual(set(asked), {self.browser.evaluate('location.href')})

    def box(self, selector):
        """The middle of an element, in the middle of the window."""
        return self.browser.evaluate(
            f'''(() => {{ const e = document.querySelector({json.dumps(selector)});
                e.scrollIntoView({{block: "center"}}); const b = e.getBoundingClientRect();
                return [b.left + b.width / 2, b.top + b.height / 2]; }})()''')

    def chart(self, name, script):
        """A value of the chart, called `chart` in the script."""
        return self.browser.evaluate(
            f'''(() => {{ const canvas = document.querySelector('canvas[data-chart="{name}"]');
                const chart = Chart.getChart(canvas); return {script}; }})()''')

    def pixel(self, name, dataset, index):
        """Where a point of a chart lies in the window."""
        self.box(f'canvas[data-chart="{name}"]')
        return self.chart(name, f'''(() => {{ const b = canvas.getBoundingClientRect();
            const p = chart.getDatasetMeta({dataset}).data[{index}];
            return [b.left + p.x, b.top + p.y]; }})()''')

    def check_numbers(self, data):
        """Every number on the page is the one of the data, rounded to the side that it names."""
        shown = self.browser.evaluate(
            '[...document.querySelectorAll("[data-path]")].map(e => '
            '[e.dataset.path, e.dataset.form, e.textContent])')
        self.assertGreater(len(shown), 5)
        for path, form, text in shown:
            value = data
            for part in path.split('.'):
                value = value[int(part)] if isinstance(value, list) else value[part]
            number = float(text.removesuffix(' %'))
            low, high = expected(value, form)
            self.assertTrue(low <= number <= high, (path, form, text, value))

    def test_no_browser_stays_behind(self):
        other = browser.Browser(PROGRAM)
        name = other.profile.name
        self.assertTrue(processes_with(name))
        other.close()
        end = time.monotonic() + 60
        while processes_with(name) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(processes_with(name), [])
        self.open('ledger', self.sources['ledger'])  # the first one goes on

    def test_a_run_is_shown_with_its_numbers(self):
        data = self.open('run', self.sources['runs'][0])
        self.check_numbers(data)
        self.assertEqual(self.browser.evaluate('document.querySelector("h1").textContent'), 'one')
        points = self.chart('accuracy', 'chart.data.datasets[0].data')
        self.assertEqual([point['y'] for point in points],
                         [row['test_accuracy'] for row in data['runs'][0]['points']])
        metrics = [json.loads(line) for line in
                   (self.sources['runs'][0] / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual([row['test_accuracy'] for row in metrics],
                         [row['test_accuracy'] for row in data['runs'][0]['points']])
        statement = self.browser.evaluate('document.querySelector(".statement").textContent')
        self.assertEqual(statement, (self.sources['runs'][0] / 'statement.txt').read_text())
        self.assertGreater(png_colours(self.browser.screenshot(ARTEFACTS / 'run.png')), 20)

    def test_runs_side_by_side_show_what_differs(self):
        data = self.open('runs', *self.sources['runs'])
        self.check_numbers(data)
        rows = self.browser.evaluate(
            '[...document.querySelectorAll("[data-table=differences] tbody tr td:first-child")]'
            '.map(e => e.textContent)')
        self.assertIn('privacy.noise', rows)
        self.assertNotIn('model.name', rows)
        self.assertEqual(self.chart('tradeoff', 'chart.data.datasets.length'), 3)
        self.assertGreater(png_colours(self.browser.screenshot(ARTEFACTS / 'runs.png')), 20)

    def test_a_tooltip_appears_under_the_mouse(self):
        data = self.open('tooltip', self.sources['runs'][0])
        self.assertEqual(self.chart('accuracy', 'chart.tooltip.opacity'), 0)
        self.browser.mouse('mouseMoved', *self.pixel('accuracy', 0, 2))
        # The library answers a mouse in the next frame.
        self.browser.evaluate('new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))')
        self.assertEqual(self.chart('accuracy', 'chart.tooltip.opacity'), 1)
        row = data['runs'][0]['points'][2]
        self.assertEqual(self.chart('accuracy', 'chart.tooltip.title'), [f'step {row["step"]}'])
        self.assertEqual(self.chart('accuracy', 'chart.tooltip.body[0].lines'),
                         [f'one: {100 * row["test_accuracy"]:.2f} %'])

    def test_a_click_on_a_name_hides_its_series(self):
        self.open('toggle', *self.sources['runs'])
        button = '.series button[data-series="two"]'
        self.assertTrue(self.chart('accuracy', 'chart.isDatasetVisible(1)'))
        self.browser.click(*self.box(button))
        self.assertFalse(self.chart('accuracy', 'chart.isDatasetVisible(1)'))
        self.assertTrue(self.chart('accuracy', 'chart.isDatasetVisible(0)'))
        self.assertEqual(self.browser.evaluate(
            f"document.querySelector('{button}').getAttribute('aria-pressed')"), 'false')
        self.browser.click(*self.box(button))
        self.assertTrue(self.chart('accuracy', 'chart.isDatasetVisible(1)'))

    def test_dragging_zooms_and_a_double_click_undoes_it(self):
        self.open('zoom', self.sources['runs'][0])
        whole = self.chart('accuracy', '[chart.scales.x.min, chart.scales.x.max]')
        left, y = self.pixel('accuracy', 0, 1)
        right, _ = self.pixel('accuracy', 0, 3)
        self.browser.drag(left, y, right, y)
        zoomed = self.chart('accuracy', '[chart.scales.x.min, chart.scales.x.max]')
        steps = self.chart('accuracy', '[1, 3].map(i => chart.data.datasets[0].data[i].x)')
        for end, step in zip(zoomed, steps):
            self.assertAlmostEqual(end, step, delta=0.5)
        self.browser.click(*self.pixel('accuracy', 0, 2), count=2)
        self.assertEqual(self.chart('accuracy', '[chart.scales.x.min, chart.scales.x.max]'), whole)

    def test_a_click_on_a_heading_sorts(self):
        self.open('sort', *self.sources['runs'])
        cells = ('[...document.querySelectorAll("[data-table=overview] tbody td:nth-child(7)")]'
                 '.map(e => Number(e.textContent))')
        for number, reverse in [(1, False), (2, True)]:
            self.browser.click(*self.box('[data-table=overview] th:nth-child(7)'))
            epsilons = self.browser.evaluate(cells)
            self.assertEqual(len(epsilons), 2)
            self.assertEqual(epsilons, sorted(epsilons, reverse=reverse), number)

    def test_light_and_dark_follow_the_reader_and_the_button(self):
        back = 'getComputedStyle(document.body).backgroundColor'
        for theme, colour in [('light', 'rgb(255, 255, 255)'), ('dark', 'rgb(20, 25, 30)')]:
            self.browser.call('Emulation.setEmulatedMedia',
                              features=[{'name': 'prefers-color-scheme', 'value': theme}])
            self.open('theme', self.sources['runs'][0])
            self.assertEqual(self.browser.evaluate(back), colour)
        self.browser.screenshot(ARTEFACTS / 'dark.png')
        self.browser.click(*self.box('#theme'))
        self.assertEqual(self.browser.evaluate(back), 'rgb(255, 255, 255)')
        self.browser.call('Emulation.setEmulatedMedia', features=[])

    def test_a_ledger_is_shown_and_its_words_stay_words(self):
        data = self.open('ledger', self.sources['ledger'])
        self.check_numbers(data)
        self.assertIn('<img src=x onerror=alert(1)>',
                      self.browser.evaluate('document.querySelector("main").textContent'))
        self.assertEqual(self.browser.evaluate('document.querySelectorAll("img").length'), 0)
        self.assertGreater(png_colours(self.browser.screenshot(ARTEFACTS / 'ledger.png')), 20)

    def test_an_experiment_has_error_bars_and_its_pictures(self):
        folder = self.work / 'experiment'
        folder.mkdir()
        cells = [{'settings': {'noise': noise, 'optimizer': name}, 'repeat': repeat,
                  'values': {'test_accuracy': 0.9 - noise / 10 + repeat / 100}}
                 for noise in [0.5, 1, 2] for name in ['sgd', 'adam'] for repeat in range(3)]
        results = {'experiment': 'noise', 'title': 'Noise & accuracy <b>', 'public': True,
                   'axes': [{'name': 'noise', 'values': [0.5, 1, 2]},
                            {'name': 'optimizer', 'values': ['sgd', 'adam']}],
                   'cells': cells, 'pictures': ['accuracy.svg']}
        (folder / 'results.json').write_text(json.dumps(results), encoding='utf-8')
        (folder / 'accuracy.svg').write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
            '<script>alert(1)</script><rect width="40" height="20" fill="red"/></svg>')
        data = self.open('experiment', folder)
        self.check_numbers(data)
        self.assertEqual(self.chart('experiment-0-0', 'chart.data.datasets.map(d => d.label)'),
                         ['optimizer sgd', 'optimizer adam'])
        means = self.chart('experiment-0-0', 'chart.data.datasets[0].data')
        self.assertEqual([point['x'] for point in means], [0.5, 1, 2])
        for point in means:
            self.assertAlmostEqual(point['y'], 0.9 - point['x'] / 10 + 0.01)
        low, high = self.chart('experiment-0-0', 'chart.data.datasets[0].errors[0]')
        self.assertAlmostEqual(high - low, 2 * 0.01 / math.sqrt(3))  # two standard errors
        self.assertEqual(self.browser.evaluate('document.querySelector("img").naturalWidth'), 40)

    def test_the_matrix_and_the_examples_are_those_of_the_run(self):
        data = self.open('predictions', self.sources['runs'][0])
        self.check_numbers(data)
        kept = json.loads((self.sources['runs'][0] / 'predictions.json').read_text())
        shown = self.browser.evaluate(
            '[...document.querySelectorAll(".confusion tbody tr")].map(row => '
            '[...row.querySelectorAll("td[data-path]")].map(e => Number(e.textContent)))')
        self.assertEqual(shown, kept['confusion'])
        names = self.browser.evaluate(
            '[...document.querySelectorAll(".confusion tbody th")].map(e => e.textContent)')
        self.assertEqual(names, kept['classes'])
        self.assertEqual(self.browser.evaluate('document.querySelectorAll("figure").length'),
                         len(kept['examples']))
        # The pixels of the first picture, as the browser drew them.
        image = kept['examples'][0]['image']
        drawn = self.browser.evaluate(
            '(() => { const c = document.querySelector("canvas.example"); return '
            '[...c.getContext("2d").getImageData(0, 0, c.width, c.height).data]; })()')
        pixels = base64.b64decode(image['pixels'])
        step = image['channels']
        for i in range(image['width'] * image['height']):
            wanted = [pixels[step * i + (c if step == 3 else 0)] for c in range(3)] + [255]
            self.assertEqual(drawn[4 * i:4 * i + 4], wanted)
        self.assertGreater(png_colours(self.browser.screenshot(ARTEFACTS / 'predictions.png')), 20)

    def test_a_record_names_who_answers_for_it(self):
        visits = self.work / 'visits.csv'
        visits.write_text('age\n' + '\n'.join(str(i % 80) for i in range(100)) + '\n')
        record = self.work / 'release.json'
        sordino('release', visits, '--mean', 'age', '--bounds', '0,120', '--epsilon', '0.5',
                '--record', record, '--curator', 'Clinic <b>', '--use', 'planning of beds')
        for source in [self.sources['runs'][0], record]:
            self.open('record', source)
            fields = dict(self.browser.evaluate(
                '[...document.querySelectorAll("[data-table=record] tbody tr")].map(row => '
                '[...row.children].map(e => e.textContent))'))
            self.assertEqual(fields['curator'], 'Clinic <b>')
            self.assertEqual(fields['intended use'], 'planning of beds')
            self.assertEqual(fields['unit of privacy'], 'record')

    def test_an_attack_is_shown_below_the_limit_of_the_claim(self):
        attack = self.make_attack()
        data = self.open('membership', attack)
        self.check_numbers(data)
        self.assertEqual(self.chart('membership-0', 'chart.data.datasets.map(d => d.label)'),
                         ['loss', 'limit of the claim', 'pure chance'])
        curve = self.chart('membership-0', 'chart.data.datasets[0].data.map(p => [p.x, p.y])')
        self.assertEqual(curve, json.loads(attack.read_text())['attacks']['loss']['roc'])
        text = self.browser.evaluate('document.querySelector("main").textContent')
        self.assertIn('as private as they are', text)
        self.assertNotIn('public values only', self.browser.evaluate(
            'document.querySelector("footer").textContent'))
        self.assertGreater(png_colours(self.browser.screenshot(ARTEFACTS / 'membership.png')), 20)

    def test_a_narrow_window_cuts_nothing_off(self):
        self.browser.call('Emulation.setDeviceMetricsOverride', width=360, height=800,
                          deviceScaleFactor=1, mobile=False)
        try:
            self.open('narrow', *self.sources['runs'], self.sources['ledger'], self.make_attack())
            wide = self.browser.evaluate(
                '[...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll") && '
                'e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))')
            self.assertEqual(wide, [])
            self.assertLessEqual(self.browser.evaluate('document.documentElement.scrollWidth'), 360)
            self.browser.screenshot(ARTEFACTS / 'narrow.png')
        finally:
            self.browser.call('Emulation.setDeviceMetricsOverride', width=1280, height=1000,
                              deviceScaleFactor=1, mobile=False)

    @unittest.skipUnless(HAS_TORCH, 'an audit needs a trained run')
    def test_an_audit_shows_its_curves_below_the_limit(self):
        data = self.open('audit', self.sources['runs'][0])
        audit = data['runs'][0]['audit']
        self.assertEqual(audit['canaries'], 50)
        labels = self.chart('roc-0', 'chart.data.datasets.map(d => d.label)')
        self.assertEqual(labels, ['who sees every update', 'who sees the last model',
                                  'limit of the claim', 'pure chance'])

    def test_a_watched_run_is_refreshed(self):
        run = self.made_run('watched', 0.9)
        server = subprocess.Popen([SORDINO, 'report', run, '--watch'], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        # Ended last, when no page asks it any more.
        self.addCleanup(lambda: (server.terminate(), server.communicate()))
        self.addCleanup(self.browser.open, 'about:blank')
        self.browser.open(server.stdout.readline().strip())
        steps = 'document.querySelector("[data-table=overview] tbody td:nth-child(6)").textContent'
        self.assertEqual(self.browser.evaluate(steps), '60')
        self.browser.click(*self.box('.series button'))  # a choice that stays
        with open(run / 'metrics.jsonl', 'a', encoding='utf-8') as metrics:
            metrics.write(json.dumps({'private': True, 'step': 70, 'epsilon': 1.0,
                                      'test_accuracy': 0.9, 'seconds': 7}) + '\n')
        self.browser.evaluate(f'''new Promise((done, fail) => {{
            setTimeout(() => fail(new Error("not refreshed")), 60000);
            const look = () => {steps} === "70" ? done() : setTimeout(look, 100);
            look(); }})''')
        self.assertFalse(self.chart('accuracy', 'chart.isDatasetVisible(0)'))

    def test_printing_is_light_and_unfolded(self):
        self.browser.call('Emulation.setEmulatedMedia',
                          features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])
        self.open('print', self.sources['runs'][0])
        self.browser.evaluate('window.addEventListener("beforeprint", () => { '
                              'window.printed = document.documentElement.dataset.theme; '
                              'window.unfolded = document.querySelectorAll('
                              '"main details:not([open])").length === 0; })')
        pdf = self.browser.call('Page.printToPDF', printBackground=True)
        self.assertGreater(len(pdf['data']), 10_000)
        self.assertEqual(self.browser.evaluate('window.printed'), 'light')
        self.assertTrue(self.browser.evaluate('window.unfolded'))
        self.assertEqual(self.browser.evaluate('document.querySelectorAll("details[open]").length'), 0)
        self.assertEqual(self.browser.evaluate('document.documentElement.dataset.theme'), 'dark')
        self.browser.call('Emulation.setEmulatedMedia', features=[])


if __name__ == '__main__':
    if PROGRAM is None:
        print('skipped: no browser is installed (tools/setup --browser installs Chromium)')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
