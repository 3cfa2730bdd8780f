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
    if form == 'share':
        return tuple(100 * end for end in expected(value, 'plain'))
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
    def made_run(cls, name, noise, accuracy=1, without_privacy=False):
        run = cls.work / name
        run.mkdir()
        (run / 'config.toml').write_text(
            '[data]\nsource = "digits"\n[model]\nname = "logistic"\n' + (
                '[run]\nnon-private = true\n' if without_privacy else
                f'[privacy]\nepsilon = 3\ndelta = 1e-05\nnoise = {noise}\n'), encoding='utf-8')
        (run / 'event.txt').write_text(
            'NOT PRIVATE\n' if without_privacy else
            f'add-remove: 60*poisson(0.01, gaussian({noise}))\n', encoding='utf-8')
        (run / 'statement.txt').write_text('Privacy statement\n', encoding='utf-8')
        lines = [json.dumps({'private': not without_privacy, 'step': step,
                             'epsilon': math.sqrt(step) / 10,
                             'test_accuracy': accuracy - 1 / math.sqrt(step), 'test_loss': 3 / step,
                             'seconds': step / 10}) for step in range(10, 70, 10)]
        (run / 'metrics.jsonl').write_text('\n'.join(lines) + '\n', encoding='utf-8')
        (run / 'predictions.json').write_text(json.dumps({
            'schema': 1, 'classes': ['cat', '<b>dog'], 'confusion': [[30, 10], [0, 20]],
            'quality': {'accuracy': 50 / 60, 'log_loss': 0.41237, 'auroc': 0.87654,
                        'calibration_error': 0.0321,
                        'calibration': [{'records': 10 * (k in (9, 12)), 'probability': k / 15 + .02,
                                         'right': k / 15 + .05} for k in range(15)]},
            'examples': [{'record': 1, 'truth': 0, 'predictions': [[1, 0.75], [0, 0.25]],
                          'image': {'width': 2, 'height': 1, 'channels': 3,
                                    'pixels': base64.b64encode(bytes(range(6))).decode()}}]}),
            encoding='utf-8')
        (run / 'record.json').write_text(json.dumps({
            'curator': 'Clinic <b>', 'use': 'planning of beds', 'release': {'kind': 'training'},
            'privacy': {'private': True, 'unit': 'record'}}), encoding='utf-8')
        return run

    @classmethod
    def made_audit(cls, name, bound, contradiction=False):
        run = cls.made_run(name, 0.9)
        (run / 'audit.json').write_text(json.dumps({
            'canaries': 100, 'delta': 1e-5, 'confidence': 0.95, 'epsilon_claimed': 2.5,
            'contradiction': contradiction, 'every_update': {
                'guesses': 30, 'correct': 20, 'epsilon_lower': {'one-run': bound / 2, 'gdp': bound},
                'roc': [[0, 0], [0.2, 0.4], [1, 1]]}}), encoding='utf-8')
        return run

    def all_text(self, selector):
        return self.browser.evaluate(
            f'[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)')

    def fact(self, selector, label):
        """The text of a fact of the start or of a card."""
        return self.browser.evaluate(
            f'''[...document.querySelectorAll({json.dumps(selector + ' .facts > div')})]
                .find(e => e.querySelector("dt").textContent === {json.dumps(label)})
                ?.querySelector("dd").textContent''')

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
        self.assertEqual(set(asked), {self.browser.evaluate('location.href.split("#")[0]')})

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
            '[...document.querySelectorAll("[data-table=differences] tbody th")]'
            '.map(e => e.textContent)')
        self.assertIn('privacy.noise', rows)
        self.assertNotIn('model.name', rows)
        self.assertEqual(self.chart('tradeoff', 'chart.data.datasets.length'), 3)
        self.assertGreater(png_colours(self.browser.screenshot(ARTEFACTS / 'runs.png')), 20)

    def test_the_start_says_what_how_good_what_it_tells_and_what_is_left(self):
        data = self.open('start', self.sources['runs'][0], self.sources['ledger'])
        self.check_numbers(data)
        self.assertEqual(self.all_text('main > section')[0],
                         self.all_text('main > #start')[0])
        run = data['runs'][0]
        self.assertIn('logistic trained on digits', self.fact('#start', 'What'))
        self.assertIn('For: planning of beds. Answers for it: Clinic <b>.', self.fact('#start', 'What'))
        self.assertIn(f'{100 * run["points"][-1]["test_accuracy"]:.2f} %',
                      self.fact('#start', 'How good'))
        self.assertRegex(self.fact('#start', 'What it tells about a person'),
                         r'epsilon [\d.]+.*whether a record of yours was in it, and is right at most '
                         r'[\d.]+ % of the time; a coin is right 50 %')
        if run['target_epsilon']:
            used = run['guarantee']['epsilon'] / run['target_epsilon']
            low, high = expected(used, 'percentUp')
            shown = float(self.fact('#start', 'Budget of the run').split(' %')[0])
            self.assertTrue(low <= shown <= high, shown)
        ledger = self.fact('#start', 'Ledger visits.db')
        self.assertIn(f'Left: {data["ledgers"][0]["left"]}.', ledger)
        self.assertIn('% used', ledger)

    def test_the_sentences_about_an_attacker_stand_once(self):
        data = self.open('attacker', *self.sources['runs'])
        self.check_numbers(data)
        rows = self.all_text('[data-table=attacker] tbody th')
        self.assertEqual(len(rows), 8)
        self.assertEqual(self.all_text('[data-table=attacker] thead th'), ['at most', 'one', 'two'])
        main = self.browser.evaluate('document.querySelector("main").textContent')
        for row in rows:
            self.assertEqual(main.count(row), 1, row)
        accuracies = [run['guarantee']['attack_accuracy'] for run in data['runs']]
        shown = self.all_text('[data-table=attacker] tbody tr:first-child td')
        for value, text in zip(accuracies, shown):
            low, high = expected(value, 'percentUp')
            self.assertTrue(low <= float(text.removesuffix(' %')) <= high, (value, text))

    def test_a_run_is_measured_against_the_one_without_privacy(self):
        private = self.made_run('guarded', 0.9, accuracy=0.8)
        plain = self.made_run('open', 0.9, accuracy=0.9, without_privacy=True)
        data = self.open('baseline', private, plain)
        self.check_numbers(data)
        at = '[data-table=overview] tbody tr:first-child [data-path="runs.1.points.5.test_accuracy"]'
        accuracy = f'{100 * data["runs"][1]["points"][5]["test_accuracy"]:.2f} %'
        self.assertEqual(self.all_text(at), [accuracy])
        self.assertIn(f'without privacy {accuracy} (open)', self.fact('#run-0', 'How good'))
        self.assertNotIn('without privacy', self.fact('#run-1', 'How good'))
        self.assertIn('everything', self.fact('#run-1', 'What it tells about a person'))
        # Another model is another question.
        config = plain / 'config.toml'
        config.write_text(config.read_text().replace('logistic', 'mlp'))
        self.open('baseline', private, plain)
        self.assertNotIn('without privacy', self.fact('#run-0', 'How good'))

    def test_an_audit_says_whether_it_is_compatible_with_the_claim(self):
        for name, bound, contradiction, said in [
                ('sound', 0.42, False, 'compatibleEpsilon is at least 0.42 (confidence 95 %) by what '
                                       'the guesses prove, and at most 2.5 by what is claimed'),
                ('doubtful', 2.6, False, 'undecidedThe best bound on epsilon is 2.6 (confidence 95 %), '
                                         'above the claimed 2.5'),
                ('broken', 4.5, True, 'CONTRADICTEDDo not release this model. The guesses prove an '
                                      'epsilon of at least 4.5 (confidence 95 %), and 2.5 is claimed')]:
            data = self.open('verdict', self.made_audit(name, bound, contradiction))
            self.check_numbers(data)
            self.assertTrue(self.fact('#start', 'Audit').startswith(said), self.fact('#start', 'Audit'))
            self.assertEqual(any('CONTRADICTS' in text for text in self.all_text('#start .warning')),
                             contradiction)

    def test_a_rate_above_its_limit_is_no_violation_while_its_interval_reaches_below(self):
        attack = {'run': 'weak', 'members': 2000, 'others': 2000, 'confidence': 0.95, 'best': 'lira',
                  'limit': {'0.1': 0.6, '0.0001': 0.0002}}
        for lower, verdict in [(0.00001, 'Compatible with the claim: no interval lies above its limit.'),
                               (0.00025, 'Above the claim: 1 of 2 intervals lie above their limits.')]:
            attack['attacks'] = {'lira': {'auc': {'value': 0.5, 'lower': 0.4, 'upper': 0.6}, 'tpr': {
                '0.1': {'value': 0.12, 'lower': 0.1, 'upper': 0.14},
                '0.0001': {'value': 0.0003, 'lower': lower, 'upper': 0.0012}}}}
            file = self.work / 'rates.json'
            file.write_text(json.dumps(attack), encoding='utf-8')
            self.check_numbers(self.open('rates', file))
            [text] = self.all_text('.verdict')
            self.assertTrue(text.startswith(verdict), text)
            self.assertIn(f'"lira" finds 0.03 % of the members at 0.01 % false positives, the interval '
                          f'is {100 * lower:.2f} % to 0.12 % (confidence 95 %), and the claim allows '
                          '0.02 %.', text)
            self.assertEqual(self.all_text('.warning.verdict'), [text] if lower > 0.0002 else [])

    def test_coefficients_of_a_fit_are_shown_with_their_noise(self):
        run = self.made_run('fitted', 0.9)
        (run / 'coefficients.csv').write_text(
            'feature,class,coefficient,noise,lower,upper\nage,,0.61234567,0.1,0.4,0.8\n'
            '<b>sex,,-1.25,,,\n', encoding='utf-8')
        self.check_numbers(self.open('coefficients', run))
        self.assertEqual(self.all_text('[data-table=coefficients] thead th'),
                         ['feature', 'coefficient', 'noise', 'from', 'to'])
        self.assertEqual(self.all_text('[data-table=coefficients] tbody tr > *'),
                         ['age', '0.6123', '0.1', '0.4', '0.8', '<b>sex', '-1.25', '', '', ''])

    def test_hashes_of_what_decided_the_run(self):
        run = self.made_run('hashed', 0.9)
        digest = 'ab' * 32
        (run / 'SHA256SUMS').write_text(f'{digest}  config.toml\n', encoding='utf-8')
        self.open('hashes', run)
        self.assertEqual(self.all_text('[data-table=hashes] tbody tr > *'), ['config.toml', digest])

    def test_the_page_has_landmarks_and_headings_in_order(self):
        self.open('landmarks', *self.sources['runs'], self.sources['ledger'], self.make_attack())
        for tag in ['header', 'nav', 'main', 'footer', 'h1']:
            self.assertEqual(self.browser.evaluate(f'document.querySelectorAll("{tag}").length'), 1, tag)
        levels = self.browser.evaluate(
            '[...document.querySelectorAll("h1, main h2, h3, h4, h5")].map(e => Number(e.tagName[1]))')
        self.assertEqual(levels[0], 1)
        for before, after in zip(levels, levels[1:]):
            self.assertLessEqual(after, before + 1, levels)
        parts = self.browser.evaluate('[...document.querySelectorAll("main > section")].map(e => e.id)')
        links = self.browser.evaluate(
            '[...document.querySelectorAll("nav a")].map(e => e.getAttribute("href"))')
        self.assertEqual(links, ['#' + name for name in parts])
        self.assertEqual(len(set(parts)), len(parts))
        for link in self.browser.evaluate('[...document.querySelectorAll("main a")].map(e => e.hash)'):
            self.assertIn(link, links)
        tables = self.browser.evaluate(
            '[...document.querySelectorAll("table")].every(e => e.ariaLabel || e.caption)')
        self.assertTrue(tables)

    def test_the_keyboard_reaches_everything(self):
        self.open('keyboard', *self.sources['runs'])
        focused = 'document.activeElement.textContent'
        self.browser.press('Tab')
        self.assertEqual(self.browser.evaluate(focused), 'Skip to the content')
        left = self.browser.evaluate('document.activeElement.getBoundingClientRect().left')
        self.assertGreaterEqual(left, 0)
        self.assertEqual(self.browser.evaluate(
            'getComputedStyle(document.activeElement).outlineStyle'), 'solid')
        self.browser.press('Enter')
        self.assertEqual(self.browser.evaluate('document.activeElement.id'), 'main')
        # The first heading of the first table: sorted by a key.
        self.browser.press('Tab')
        self.assertEqual(self.browser.evaluate(focused), 'run')
        self.browser.press('Enter')
        self.assertEqual(self.browser.evaluate('document.activeElement.closest("th").ariaSort'), 'ascending')
        self.browser.evaluate('document.querySelector("[data-choice=steps]").focus()')
        self.browser.press('ArrowDown')
        self.assertEqual(self.browser.evaluate('document.activeElement.value'),
                         'Loss on the public test set')
        self.assertEqual(self.browser.evaluate(
            'document.querySelectorAll("canvas[data-chart=accuracy]").length'), 0)
        self.assertEqual(self.chart('test-loss', 'chart.data.datasets.length'), 2)

    def test_every_chart_has_a_label_and_its_numbers(self):
        self.open('numbers', *self.sources['runs'], self.sources['ledger'], self.make_attack())
        names = self.browser.evaluate(
            '[...document.querySelectorAll("canvas[data-chart]")].map(e => e.dataset.chart)')
        self.assertGreaterEqual(len(names), 4)
        self.browser.evaluate('document.querySelectorAll("details").forEach(e => { e.open = true; });'
                              'new Promise(r => setTimeout(r, 100))')
        for name in names:
            self.assertTrue(self.chart(name, 'canvas.getAttribute("aria-label")').endswith(
                'The numbers are below the chart.'))
            shown = self.browser.evaluate(
                f'[...document.querySelectorAll("[data-table=numbers-{name}] tbody tr")]'
                '.map(row => [...row.children].slice(0, 3).map(e => e.textContent))')
            points = self.chart(name, '''chart.data.datasets
                .filter(d => !["pure chance", "right as often as said"].includes(d.label))
                .flatMap(d => d.data.map(p => [d.label, p.x, p.y]))''')
            self.assertEqual(len(shown), len(points), name)
            for (series, *texts), (label, *values) in zip(shown, points):
                self.assertEqual(series, label)
                for text, value in zip(texts, values):
                    scale = 0.01 if text.endswith(' %') else 1
                    self.assertAlmostEqual(scale * float(text.removesuffix(' %')), value,
                                           delta=max(1.01e-4, 1e-3 * abs(value)), msg=name)

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
        heads = self.browser.evaluate(
            '[...document.querySelectorAll("[data-table=overview] thead th")].map(e => e.textContent)')
        place = heads.index('epsilon') + 1
        cells = (f'[...document.querySelectorAll("[data-table=overview] tbody :nth-child({place})")]'
                 '.map(e => Number(e.textContent))')
        for number, reverse in [(1, False), (2, True)]:
            self.browser.click(*self.box(f'[data-table=overview] th:nth-child({place})'))
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
        bins = [bin for bin in kept['quality']['calibration'] if bin['records'] > 0]
        self.assertTrue(bins)
        self.assertEqual(self.chart('calibration-0', 'chart.data.datasets[0].data.map(p => [p.x, p.y])'),
                         [[bin['probability'], bin['right']] for bin in bins])
        for table, rows in (('quality', 3), ('calibration', len(bins))):
            self.assertEqual(self.browser.evaluate(
                f'document.querySelectorAll("[data-table={table}] tbody tr").length'), rows)
        self.assertEqual(self.browser.evaluate('document.querySelectorAll(".examples figure").length'),
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
            long = self.made_run('a-name-without-a-blank' * 8, 1)
            self.open('narrow', long, *self.sources['runs'], self.sources['ledger'],
                      self.make_attack())
            wide = self.browser.evaluate(
                '[...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll") && '
                'e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))')
            self.assertEqual(wide, [])
            self.assertLessEqual(self.browser.evaluate('document.documentElement.scrollWidth'), 360)
            cut = self.browser.evaluate(
                '[...document.querySelectorAll("body *")].filter(e => e.scrollWidth > e.clientWidth + 1 '
                '&& ["hidden", "clip"].includes(getComputedStyle(e).overflowX))'
                '.map(e => e.outerHTML.slice(0, 80))')
            self.assertEqual(cut, [])
            # What is wider than the window is scrolled by keys.
            table = '[data-table=overview]'
            scroll = f'document.querySelector("{table}").closest(".scroll")'
            self.assertEqual(self.browser.evaluate(f'[{scroll}.tabIndex, {scroll}.ariaLabel]'),
                             [0, 'Runs'])
            self.browser.evaluate(f'{scroll}.focus()')
            self.browser.press('ArrowRight')
            self.browser.evaluate('new Promise(r => setTimeout(r, 300))')
            self.assertGreater(self.browser.evaluate(f'{scroll}.scrollLeft'), 0)
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
        steps = 'document.querySelector("#start [data-path$=step]").textContent'
        self.assertEqual(self.browser.evaluate(steps), '60')
        self.browser.click(*self.box('.series button'))  # a choice that stays
        # So do the place of the reader, the focus and what was unfolded.
        self.browser.evaluate('''(() => {
            document.querySelector('details.numbers').open = true;
            document.querySelector('[data-details=settings-0]').open = true;
            document.querySelector('[data-details=settings-0] th button').focus();
            document.querySelector('[data-details=settings-0]').scrollIntoView(); })();
            new Promise(r => setTimeout(r, 300))''')
        where = ('[document.activeElement.textContent, document.activeElement.closest("details").dataset.details, '
                 'Math.round(document.querySelector("[data-details=settings-0]").getBoundingClientRect().top)]')
        before = self.browser.evaluate(where)
        self.assertEqual(before[1], 'settings-0')
        with open(run / 'metrics.jsonl', 'a', encoding='utf-8') as metrics:
            metrics.write(json.dumps({'private': True, 'step': 70, 'epsilon': 1.0,
                                      'test_accuracy': 0.9, 'seconds': 7}) + '\n')
        self.browser.evaluate(f'''new Promise((done, fail) => {{
            setTimeout(() => fail(new Error("not refreshed")), 60000);
            const look = () => {steps} === "70" ? done() : setTimeout(look, 100);
            look(); }})''')
        self.assertFalse(self.chart('accuracy', 'chart.isDatasetVisible(0)'))
        after = self.browser.evaluate(where)
        self.assertEqual(after[:2], before[:2])
        # One row more in the table of numbers above it.
        self.assertLess(abs(after[2] - before[2]), 60)

    def test_printing_is_light_and_unfolded(self):
        self.browser.call('Emulation.setEmulatedMedia',
                          features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])
        self.open('print', self.sources['runs'][0])
        self.browser.evaluate('window.addEventListener("beforeprint", () => { '
                              'window.printed = document.documentElement.dataset.theme; '
                              'window.unfolded = document.querySelectorAll('
                              '"main details:not([open]):not(.numbers)").length === 0; })')
        unfolded = 'document.querySelectorAll("details[open]").length'
        before = self.browser.evaluate(unfolded)
        pdf = self.browser.call('Page.printToPDF', printBackground=True)
        self.assertGreater(len(pdf['data']), 10_000)
        self.assertEqual(self.browser.evaluate('window.printed'), 'light')
        self.assertTrue(self.browser.evaluate('window.unfolded'))
        self.assertEqual(self.browser.evaluate(unfolded), before)
        self.assertEqual(self.browser.evaluate('document.documentElement.dataset.theme'), 'dark')
        self.browser.call('Emulation.setEmulatedMedia', features=[])


if __name__ == '__main__':
    if PROGRAM is None:
        print('skipped: no browser is installed (tools/setup --browser installs Chromium)')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
