// The page: its start, its parts in their order, and its frame.
'use strict';

// A number with the way it is written and its place in the data.
const kForms = {up: upTo, down: downTo, plain: plain, percent: percent, percentUp: percentUp, share: share,
                whole: (value) => value === null ? '' : String(value)};
function cell(value, form, path) {
  return {text: kForms[form](value), value: value === null ? undefined : value, path, form};
}
function number(value, form, path) {
  return el('span', {'data-path': path, 'data-form': form}, kForms[form](value));
}
const last = (list) => list[list.length - 1];

// A part that the list of contents names.
function part(id, title, ...children) {
  return el('section', {id, 'aria-labelledby': id + '-title'}, el('h2', {id: id + '-title'}, title), children);
}

// What is read by who wants to know more. It stays as the reader left it when a watched page is drawn anew.
const folds = new Map();
function fold(key, title, isOpen, ...children) {
  return el('details', {'data-details': key, open: folds.get(key) ?? isOpen ? '' : null}, el('summary', {}, el('h3', {}, title)), children);
}

// One fact of the start: in one word, and in a sentence.
function fact(label, word, ...sentence) {
  return el('div', {}, el('dt', {}, label), el('dd', {}, el('b', {}, word), el('p', {}, sentence)));
}

function progressBar(share, label) {
  return el('progress', {max: '1', value: String(Math.min(1, share ?? 1)), 'aria-label': label});
}

// ---- Ledgers and records of releases
function ledgerFacts(ledger, i) {
  const at = `ledgers.${i}`;
  return fact('Ledger ' + ledger.name, ledger.epsilon === null ? 'no limit' : [number(ledger.used, 'percentUp', `${at}.used`), ' used'],
    `Budget: ${ledger.budget}. Left: ${ledger.left}.`, ledger.epsilon === null ? null : progressBar(ledger.used, 'used'));
}

function ledgerPart(ledger, i) {
  const at = `ledgers.${i}`;
  return part('ledger-' + i, 'Ledger ' + ledger.name,
    el('dl', {class: 'facts'}, ledgerFacts(ledger, i),
      fact('Composed epsilon', number(ledger.composed.upper, 'up', `${at}.composed.upper`), 'at delta ',
           number(ledger.delta, 'plain', `${at}.delta`), ', of ', String(ledger.runs.length),
           ' runs. It is exact if all runs had been fixed in advance; what decides is the used share.')),
    ledger.runs.some((run) => !run.private)
      ? el('p', {class: 'warning'}, 'NOT PRIVATE: the noise of some of these runs came from a typed seed.') : null,
    ledger.points.length > 1 && ledger.epsilon !== null ? chartPanel({
      name: 'ledger-' + i, title: 'Budget used, charge by charge',
      series: [{name: 'used', colour: 0, stepped: 'before', points: ledger.points.map((point, k) => ({x: k + 1, y: point.used ?? 1}))}],
      x: {label: 'charge', whole: true}, y: {label: 'used share', show: percentUp, range: {min: 0}, ticks: share}}) : null,
    dataTable('Runs in the ledger', ['when', 'who', 'what', 'epsilon alone', 'releases', 'returned', 'note', 'event'],
      ledger.runs.map((run, k) => [run.time, run.who, run.what, cell(run.epsilon, 'up', `${at}.runs.${k}.epsilon`),
        cell(run.releases, 'whole', `${at}.runs.${k}.releases`), cell(run.returned, 'whole', `${at}.runs.${k}.returned`),
        [run.whole ? 'counts whole' : '', run.private ? '' : 'NOT PRIVATE'].filter(Boolean).join(', '), run.event]), {name: 'ledger-' + i}));
}

function releasePart(record, i) {
  return part('release-' + i, 'Release ' + record.name,
    record.private ? null : el('p', {class: 'warning'}, 'NOT PRIVATE: treat this release like the data themselves.'),
    dataTable('Deployment record', ['field', 'value'], record.fields, {name: 'record'}));
}

// ---- The start: one run in four facts, several in a table, and what is left of budgets.
function startPart(data) {
  const runs = data.runs;
  const warned = runs.filter((run) => !run.private).map((run) => run.name);
  const denied = runs.filter((run) => run.audit?.contradiction).map((run) => run.name);
  const others = [...data.memberships.map(membershipFact), ...data.ledgers.map(ledgerFacts)];
  return part('start', 'In short',
    warned.length ? el('p', {class: 'warning'}, 'NOT PRIVATE: ' + warned.join(', ')) : null,
    denied.length ? el('p', {class: 'warning'}, 'THE AUDIT CONTRADICTS THE CLAIM, do not release: ' + denied.join(', ')) : null,
    runs.length === 1 ? runFacts(data, 0) : overview(runs),
    others.length ? el('dl', {class: 'facts'}, others) : null);
}

function partsOf(data) {
  const runs = data.runs;
  const charts = runCharts(runs);
  return [
    runs.length ? startPart(data) : null,
    charts ? part('charts', 'Accuracy and its price', charts) : null,
    runs.length ? attackerPart(runs) : null,
    runs.length > 1 ? part('settings', 'Settings that differ', differingSettings(runs)) : null,
    ...runs.map((_, i) => runCard(data, i)), ...data.memberships.map(membershipPart),
    ...data.experiments.map(experimentPart), ...data.ledgers.map(ledgerPart), ...data.records.map(releasePart)].filter(Boolean);
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
  document.querySelectorAll('details').forEach((one) => folds.set(one.dataset.details, one.open));
  for (const {chart} of charts.values()) chart.destroy();
  charts.clear();
  document.title = titleOf(data) + ' - Sordino report';
  document.querySelector('h1').textContent = titleOf(data);
  const parts = partsOf(data);
  const main = document.querySelector('main');
  main.replaceChildren(...parts);
  main.querySelectorAll('figure.panel').forEach((panel) => panel.$draw());
  const link = (one) => el('li', {}, el('a', {href: '#' + one.id}, one.querySelector('h2').textContent));
  document.querySelector('nav').replaceChildren(el('h2', {}, 'Contents'), el('ul', {}, parts.map(link)));
}

// ---- Where the reader of a watched page is: what has the focus and how far boxes are scrolled, by their places.
function placeOf(node) {
  const path = [];
  for (; node && node !== document.body; node = node.parentElement) path.unshift([...node.parentElement.children].indexOf(node));
  return path;
}
const nodeAt = (path) => path.reduce((node, k) => node?.children[k], document.body);

function whereTheReaderIs() {
  const focused = document.activeElement ?? document.body;
  const boxes = [...document.querySelectorAll('nav, .scroll')].filter((box) => box.scrollLeft || box.scrollTop);
  return {x: window.scrollX, y: window.scrollY, focused: placeOf(focused), tag: focused.tagName,
          boxes: boxes.map((box) => ({path: placeOf(box), left: box.scrollLeft, top: box.scrollTop}))};
}

function goBackTo(place) {
  for (const {path, left, top} of place.boxes) nodeAt(path)?.scrollTo(left, top);
  const node = nodeAt(place.focused);
  if (node !== document.body && node?.tagName === place.tag) node.focus({preventScroll: true});
  window.scrollTo(place.x, place.y);
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
  document.body.append(el('a', {class: 'skip', href: '#main'}, 'Skip to the content'),
    el('header', {}, el('h1', {}), theme, print), el('nav', {'aria-label': 'Contents'}), el('main', {id: 'main', tabindex: '-1'}),
    el('footer', {}, el('p', {}, `Made by sordino ${data.version}. The page loads nothing` +
         (!isPublic ? '; it shows what is not private.' : ' and holds public values only.')),
       el('p', {}, 'Drag across a chart to zoom, double-click to undo; press a name to hide a series, a heading to sort.'),
       el('details', {'data-details': 'licence'}, el('summary', {}, 'Charts by Chart.js (MIT License)'), el('pre', {}, kLicence))));
  document.documentElement.setAttribute('data-theme', currentTheme());
  render(data);
  prefersDark.addEventListener('change', () => { if (!chosenTheme) setTheme(currentTheme()); });
  // On paper everything is light and nothing is folded away.
  let folded = [];
  window.addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('main details:not([open]):not(.numbers)')];
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
      const place = whereTheReaderIs();
      render(JSON.parse(text));
      goBackTo(place);
    } catch (error) {
      // The server has ended: the page stays as it is.
      if (++failures === 5) clearInterval(timer);
    }
  }, 2000);
}
start();
