// The page: what is shown of the data, in which order.
'use strict';

// A number with the way it is written and its place in the data.
const kForms = {up: upTo, down: downTo, plain: plain, percent: percent, percentUp: percentUp,
                whole: (value) => value === null ? '' : String(value)};
function cell(value, form, path) {
  return {text: kForms[form](value), value: value === null ? undefined : value, path, form};
}
function number(value, form, path) {
  return el('span', {'data-path': path, 'data-form': form}, kForms[form](value));
}
function tile(label, value) {
  return el('div', {class: 'tile'}, el('span', {class: 'soft'}, label), el('b', {}, value));
}
const last = (list) => list[list.length - 1];

// The last evaluation that has the value, with its place; undefined where none has.
function lastOf(run, index, name) {
  for (let i = run.points.length - 1; i >= 0; --i) {
    if (run.points[i][name] !== null) {
      return {value: run.points[i][name], path: `runs.${index}.points.${i}.${name}`};
    }
  }
  return undefined;
}

function progressBar(share) {
  const bar = el('progress', {max: '1', value: String(Math.min(1, share ?? 1))});
  return el('div', {class: 'bar'}, bar);
}

function overview(runs) {
  const names = [['test_accuracy', 'test accuracy', 'percent'],
                 ['test_mean_squared_error', 'mean squared error', 'plain'],
                 ['test_mean_absolute_error', 'mean absolute error', 'plain'],
                 ['seconds', 'seconds', 'plain']];
  const used = names.filter(([name]) => runs.some((run, i) => lastOf(run, i, name)));
  const rows = runs.map((run, i) => [
    run.name, run.data, run.model, run.private ? 'yes' : 'NOT PRIVATE', run.ended ? 'ended' : 'not ended',
    run.points.length ? cell(last(run.points).step, 'whole', `runs.${i}.points.${run.points.length - 1}.step`) : '',
    run.guarantee ? cell(run.guarantee.epsilon, 'up', `runs.${i}.guarantee.epsilon`) : '',
    run.guarantee ? cell(run.guarantee.delta, 'plain', `runs.${i}.guarantee.delta`) : '',
    ...used.map(([name, , form]) => {
      const found = lastOf(run, i, name);
      return found ? cell(found.value, form, found.path) : '';
    }),
  ]);
  return sortableTable(['run', 'data', 'model', 'private', 'state', 'steps', 'epsilon', 'delta',
                        ...used.map(([, label]) => label)], rows, 'overview');
}

function runSeries(runs, x, y) {
  return runs.map((run, i) => ({
    name: run.name, colour: i, dashed: !run.private,
    points: run.points.filter((point) => point[x] !== null && point[y] !== null)
      .map((point) => ({x: point[x], y: point[y]})),
  })).filter((series) => series.points.length > 0);
}

function runCharts(runs) {
  const specs = [
    {name: 'accuracy', title: 'Test accuracy', x: 'step', y: 'test_accuracy', xl: 'step', yl: 'test accuracy', show: percent},
    {name: 'epsilon', title: 'Epsilon spent', x: 'step', y: 'epsilon', xl: 'step', yl: 'epsilon', show: upTo},
    {name: 'price', title: 'What accuracy costs', x: 'epsilon', y: 'test_accuracy', xl: 'epsilon', yl: 'test accuracy', show: percent},
    {name: 'test-loss', title: 'Loss on the public test set', x: 'step', y: 'test_loss', xl: 'step', yl: 'test loss', show: plain},
    {name: 'squared', title: 'Mean squared error on the test set', x: 'step', y: 'test_mean_squared_error', xl: 'step', yl: 'mean squared error', show: plain},
  ];
  return specs.map((spec) => ({...spec, series: runSeries(runs, spec.x, spec.y)}))
    .filter((spec) => spec.series.some((series) => series.points.length > 1))
    .map((spec) => chartPanel({name: spec.name, title: spec.title, series: spec.series,
                               x: {label: spec.xl}, y: {label: spec.yl, show: spec.show,
                                                       ticks: spec.show === percent ? (v) => plain(100 * v) + ' %' : undefined}}));
}

function differingSettings(runs) {
  const maps = runs.map((run) => new Map(run.settings));
  const keys = [...new Set(runs.flatMap((run) => run.settings.map(([key]) => key)))];
  // What a run of another kind does not have is no difference.
  const differs = (key) => {
    const kinds = new Set(runs.filter((run, i) => maps[i].has(key)).map((run) => run.kind));
    const values = maps.filter((map, i) => kinds.has(runs[i].kind)).map((map) => map.get(key));
    return new Set(values).size > 1;
  };
  const rows = keys.filter(differs)
    .map((key) => [key, ...maps.map((map) => map.get(key) ?? '')]);
  if (rows.length === 0) return el('p', {}, 'The runs have the same settings.');
  return sortableTable(['setting', ...runs.map((run) => run.name)], rows, 'differences');
}

function guaranteeText(run, i) {
  const g = run.guarantee;
  const at = `runs.${i}.guarantee`;
  const section = el('section', {class: 'panel'}, el('h3', {}, run.name));
  if (!run.private) {
    section.append(el('p', {class: 'warning'}, 'NOT PRIVATE: this run protects nobody. The numbers below, if any, are those of the same run with secret noise.'));
  }
  if (!g) {
    section.append(el('p', {}, 'Nothing limits what an attacker can learn.'));
    return section;
  }
  if (g.weak) section.append(el('p', {class: 'warning'}, g.weak));
  section.append(
    el('p', {}, 'Somebody who knows everybody else in the data, and sees all that was released, wants to know whether you were in it.'),
    el('ul', {},
      el('li', {}, 'If being in or out is equally likely, the best guess is right at most ',
         number(g.attack_accuracy, 'percentUp', `${at}.attack_accuracy`), ' of the time; a coin is right 50 %.'),
      g.recognised.map(([rate, share], k) => el('li', {},
        'Who wrongly accuses ', number(rate, 'percent', `${at}.recognised.${k}.0`),
        ' of those who were not in the data recognises at most ',
        number(share, 'percentUp', `${at}.recognised.${k}.1`), ' of those who were.')),
      g.beliefs.map(([before, after], k) => el('li', {},
        'A suspicion of ', number(before, 'percent', `${at}.beliefs.${k}.0`), ' grows to at most ',
        number(after, 'percentUp', `${at}.beliefs.${k}.1`), '.'))),
    el('p', {class: 'soft'}, 'Epsilon ', number(g.epsilon, 'up', `${at}.epsilon`), ', delta ',
       number(g.delta, 'plain', `${at}.delta`),
       ': the last lines hold except with probability delta; the others count it in.'));
  if (run.target_epsilon) {
    const share = g.epsilon === null ? null : g.epsilon / run.target_epsilon;
    section.append(el('p', {}, 'Budget of this run: epsilon ', number(run.target_epsilon, 'plain', `runs.${i}.target_epsilon`),
                      ', of which ', share === null ? 'more than all' : percentUp(share), ' counts as used.'), progressBar(share));
  }
  return section;
}

const kChance = {name: 'pure chance', colour: 'x', dashed: true, bare: true, points: [{x: 0, y: 1}, {x: 1, y: 0}]};

function attackerSection(runs) {
  const series = runs.filter((run) => run.guarantee).map((run) => ({
    name: run.name, colour: runs.indexOf(run), bare: true,
    points: run.guarantee.curve.map(([x, y]) => ({x, y}))}));
  const nodes = [el('h2', {}, 'What an attacker can learn about you')];
  if (series.length > 0) {
    nodes.push(chartPanel({
      name: 'tradeoff', square: true, title: 'How well one record can be told',
      text: 'No attack on a run gets below its line. The nearer the line is to pure chance, the more private the run.',
      series: [...series, kChance], x: {label: 'false positive rate', range: {min: 0, max: 1}, show: percent},
      y: {label: 'false negative rate', range: {min: 0, max: 1}, show: percent}}));
  }
  nodes.push(el('div', {class: 'grid'}, runs.map(guaranteeText)));
  return nodes;
}

function auditSection(run, i) {
  const audit = run.audit;
  const at = `runs.${i}.audit`;
  const nodes = [el('h2', {}, 'Audit of ' + run.name)];
  if (audit.contradiction) {
    nodes.push(el('p', {class: 'warning'}, 'THE AUDIT CONTRADICTS THE CLAIM: do not release this model.'));
  }
  nodes.push(el('p', {}, number(audit.canaries, 'whole', `${at}.canaries`),
    ' made-up records took part, each if a coin said so. What the guesses about the coins prove, with confidence ',
    number(audit.confidence, 'percent', `${at}.confidence`), ', beside the claimed epsilon ',
    number(audit.epsilon_claimed, 'up', `${at}.epsilon_claimed`), ' at delta ', number(audit.delta, 'plain', `${at}.delta`),
    ': epsilon is at least'));
  const methods = [...new Set(audit.attackers.flatMap((a) => Object.keys(a.epsilon_lower)))];
  nodes.push(sortableTable(['attacker', 'guesses', 'right', ...methods],
    audit.attackers.map((attacker, k) => [attacker.name,
      cell(attacker.guesses, 'whole', `${at}.attackers.${k}.guesses`),
      cell(attacker.correct, 'whole', `${at}.attackers.${k}.correct`),
      ...methods.map((method) => method in attacker.epsilon_lower
        ? cell(attacker.epsilon_lower[method], 'down', `${at}.attackers.${k}.epsilon_lower.${method}`) : '')]), 'audit'));
  const curves = audit.attackers.map((attacker, k) => ({
    name: attacker.name, colour: k, bare: true, points: attacker.curve.map(([x, y]) => ({x, y}))}))
    .filter((series) => series.points.length > 0);
  if (curves.length > 0) {
    const limit = run.guarantee ? [{name: 'limit of the claim', colour: 4, dashed: true, bare: true,
      points: run.guarantee.curve.map(([x, y]) => ({x, y: 1 - y}))}] : [];
    nodes.push(chartPanel({name: 'roc-' + i, square: true, title: 'What the canaries gave away',
      text: 'Points above the limit of the claim would be chance, or a contradiction.',
      series: [...curves, ...limit, {name: 'pure chance', colour: 'x', dashed: true, bare: true, points: [{x: 0, y: 0}, {x: 1, y: 1}]}],
      x: {label: 'false positive rate', range: {min: 0, max: 1}, show: percent},
      y: {label: 'true positive rate', range: {min: 0, max: 1}, show: percent}}));
  }
  return nodes;
}

function ledgerSection(ledger, i) {
  const at = `ledgers.${i}`;
  const nodes = [el('h2', {}, 'Ledger ' + ledger.name), el('p', {}, 'Budget: ' + ledger.budget + '.'),
    el('div', {class: 'tiles'},
      tile('used', ledger.epsilon === null ? 'no limit' : number(ledger.used, 'percentUp', `${at}.used`)),
      tile('composed epsilon', number(ledger.composed.upper, 'up', `${at}.composed.upper`)),
      tile('delta', number(ledger.delta, 'plain', `${at}.delta`)),
      tile('runs', String(ledger.runs.length))),
    el('p', {}, 'Left: ' + ledger.left + '.'),
    el('p', {class: 'soft'}, 'The composed epsilon is exact if all runs had been fixed in advance; what decides is the used share.')];
  if (ledger.epsilon !== null) nodes.push(progressBar(ledger.used));
  if (ledger.runs.some((run) => !run.private)) {
    nodes.push(el('p', {class: 'warning'}, 'NOT PRIVATE: the noise of some of these runs came from a typed seed.'));
  }
  if (ledger.points.length > 1 && ledger.epsilon !== null) {
    nodes.push(chartPanel({name: 'ledger-' + i, title: 'Budget used, charge by charge',
      series: [{name: 'used', colour: 0, stepped: 'before', points: ledger.points.map((point, k) => ({x: k + 1, y: point.used ?? 1}))}],
      x: {label: 'charge', whole: true}, y: {label: 'used share', show: percentUp, range: {min: 0}, ticks: (v) => plain(100 * v) + ' %'}}));
  }
  nodes.push(sortableTable(['when', 'who', 'what', 'epsilon alone', 'releases', 'returned', 'note', 'event'],
    ledger.runs.map((run, k) => [run.time, run.who, run.what, cell(run.epsilon, 'up', `${at}.runs.${k}.epsilon`),
      cell(run.releases, 'whole', `${at}.runs.${k}.releases`), cell(run.returned, 'whole', `${at}.runs.${k}.returned`),
      [run.whole ? 'counts whole' : '', run.private ? '' : 'NOT PRIVATE'].filter(Boolean).join(', '), run.event]), 'ledger-' + i));
  return nodes;
}

function recordSection(record) {
  return [el('h2', {}, 'Release ' + record.name),
    record.private ? null : el('p', {class: 'warning'}, 'NOT PRIVATE: treat this release like the data themselves.'),
    sortableTable(['field', 'value'], record.fields, 'record')].filter(Boolean);
}

function runDetails(run) {
  const open = (name, ...children) => el('details', {'data-details': name + run.name}, el('summary', {}, name), ...children);
  return [el('h2', {}, run.name),
    run.private ? null : el('p', {class: 'warning'}, 'NOT PRIVATE: treat the model and all metrics like the training data themselves.'),
    run.statement ? open('Privacy statement', el('pre', {class: 'statement'}, run.statement)) : el('p', {}, 'There is no statement yet.'),
    run.event ? open('Event, for sordino account --event', el('pre', {}, run.event)) : null,
    run.record.length ? open('Deployment record, hardware and version', sortableTable(['field', 'value'], run.record, 'record')) : null,
    open('Settings', sortableTable(['setting', 'value'], run.settings, 'settings'))].filter(Boolean);
}

const kLicence = `Chart.js v3.9.1, copyright (c) 2014-2022 Chart.js Contributors; @kurkle/color, copyright (c) 2018-2021 Jukka Kurkela. Both under the MIT License:

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

// ---- Themes
function setTheme(theme) {
  document.documentElement.setAttribute('data-theme', theme);
  redrawCharts();
}
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;
const currentTheme = () => chosenTheme ?? (prefersDark.matches ? 'dark' : 'light');

function titleOf(data) {
  const names = [...data.runs.map((run) => run.name), ...data.experiments.map((e) => e.title), ...data.ledgers.map((l) => l.name),
                 ...data.memberships.map((m) => m.name), ...data.records.map((r) => r.name)];
  return names.length > 3 ? names.length + ' reports' : names.join(', ');
}

function render(data) {
  const open = new Set([...document.querySelectorAll('details[open]')].map((d) => d.dataset.details));
  for (const {chart} of charts.values()) chart.destroy();
  charts.clear();
  document.title = titleOf(data) + ' - Sordino report';
  document.querySelector('h1').textContent = titleOf(data);
  const main = document.querySelector('main');
  const nodes = [];
  if (data.runs.length > 0) {
    const warned = data.runs.filter((run) => !run.private).map((run) => run.name);
    if (warned.length) nodes.push(el('p', {class: 'warning'}, 'NOT PRIVATE: ' + warned.join(', ')));
    nodes.push(overview(data.runs));
    const panels = runCharts(data.runs);
    nodes.push(el('p', {class: 'soft hint'}, panels.length ? 'Drag across a chart to zoom, double-click to undo; click a name to hide a series, a heading to sort.' : ''));
    nodes.push(el('div', {class: 'grid'}, panels));
    if (data.runs.length > 1) nodes.push(el('h2', {}, 'Settings that differ'), differingSettings(data.runs));
    nodes.push(...attackerSection(data.runs));
    data.runs.forEach((run, i) => { if (run.audit) nodes.push(...auditSection(run, i)); });
    data.runs.forEach((run, i) => { if (run.predictions) nodes.push(...predictionsSection(run, i)); });
  }
  data.memberships.forEach((membership, i) => nodes.push(...membershipSection(membership, i)));
  data.experiments.forEach((experiment, i) => nodes.push(...experimentSection(experiment, i)));
  data.ledgers.forEach((ledger, i) => nodes.push(...ledgerSection(ledger, i)));
  data.records.forEach((record) => nodes.push(...recordSection(record)));
  data.runs.forEach((run) => nodes.push(...runDetails(run)));
  main.replaceChildren(...nodes);
  main.querySelectorAll('section.panel').forEach((panel) => { if (panel.$draw) panel.$draw(); });
  main.querySelectorAll('details').forEach((details) => { details.open = open.has(details.dataset.details); });
}

function start() {
  let text = document.getElementById('data').textContent;
  const theme = el('button', {id: 'theme', type: 'button'}, 'Light or dark');
  theme.onclick = () => { chosenTheme = currentTheme() === 'dark' ? 'light' : 'dark'; setTheme(chosenTheme); };
  const print = el('button', {id: 'print', type: 'button'}, 'Print');
  print.onclick = () => window.print();
  const data = JSON.parse(text);
  const isPublic = data.runs.every((run) => run.private) && data.records.every((record) => record.private) &&
    data.memberships.length === 0;
  document.body.append(el('header', {}, el('h1', {}), theme, print), el('main', {}),
    el('footer', {}, el('p', {}, `Made by sordino ${data.version}. The page loads nothing` +
         (!isPublic ? '; it shows what is not private.' : ' and holds public values only.')),
       el('details', {'data-details': 'licence'}, el('summary', {}, 'Charts by Chart.js (MIT License)'), el('pre', {}, kLicence))));
  document.documentElement.setAttribute('data-theme', currentTheme());
  render(data);
  prefersDark.addEventListener('change', () => { if (!chosenTheme) setTheme(currentTheme()); });
  // On paper everything is light and nothing is folded away.
  let folded = [];
  window.addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('main details:not([open])')];
    folded.forEach((details) => { details.open = true; });
    setTheme('light');
  });
  window.addEventListener('afterprint', () => {
    folded.forEach((details) => { details.open = false; });
    setTheme(currentTheme());
  });
  if (!('watched' in document.body.dataset)) return;
  let failures = 0;
  const timer = setInterval(async () => {
    try {
      const answer = await fetch(location.href, {cache: 'no-store'});
      failures = 0;
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const newer = page.getElementById('data').textContent;
      if (newer === text) return;
      text = newer;
      render(JSON.parse(text));
    } catch (error) {
      // The server has ended: the page stays as it is.
      if (++failures === 5) clearInterval(timer);
    }
  }, 2000);
}
start();
