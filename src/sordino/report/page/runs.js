// Runs: how they compare, what they tell about a person, and a card for each.
'use strict';

// The last evaluation that has the value, with its place; undefined where none has.
function lastOf(run, index, name) {
  for (let i = run.points.length - 1; i >= 0; --i) {
    if (run.points[i][name] !== null) {
      return {value: run.points[i][name], path: `runs.${index}.points.${i}.${name}`};
    }
  }
  return undefined;
}

// What a test set says, the first of them first.
const kQualities = [
  {name: 'test_accuracy', label: 'test accuracy', form: 'percent', of: ' of the public test set is right'},
  {name: 'test_mean_squared_error', label: 'mean squared error', form: 'plain', of: ' is the mean squared error on the public test set'},
  {name: 'test_mean_absolute_error', label: 'mean absolute error', form: 'plain', of: ' is the mean absolute error on the public test set'}];

// The place of the run without privacy that the run is measured against: same data, same model. -1: none.
function baselineOf(runs, i, quality) {
  const run = runs[i];
  if (run.without_privacy) return -1;
  return runs.findIndex((other, k) => other.without_privacy && other.kind === run.kind && other.data === run.data &&
                                      other.model === run.model && lastOf(other, k, quality));
}

function runLink(run, i) {
  return el('a', {href: '#run-' + i}, run.name);
}

function overview(runs) {
  const found = (run, i, name, form) => {
    const last = lastOf(run, i, name);
    return last ? cell(last.value, form, last.path) : '';
  };
  const columns = kQualities.filter(({name}) => runs.some((run, i) => lastOf(run, i, name))).flatMap(({name, label, form}) => {
    const own = {label, of: (run, i) => found(run, i, name, form)};
    if (runs.every((run, i) => baselineOf(runs, i, name) < 0)) return [own];
    return [own, {label: 'without privacy', of: (run, i) => {
      const k = baselineOf(runs, i, name);
      return k < 0 ? '' : found(runs[k], k, name, form);
    }}];
  });
  const ofGuarantee = (name, form) => (run, i) => run.guarantee ? cell(run.guarantee[name], form, `runs.${i}.guarantee.${name}`) : '';
  columns.unshift(
    {label: 'data', of: (run) => run.data}, {label: 'model', of: (run) => run.model},
    {label: 'private', of: (run) => run.private ? 'yes' : 'NOT PRIVATE'}, {label: 'state', of: (run) => run.ended ? 'ended' : 'not ended'},
    {label: 'steps', of: (run, i) => run.points.length ? cell(last(run.points).step, 'whole', `runs.${i}.points.${run.points.length - 1}.step`) : ''});
  columns.push(
    {label: 'epsilon', of: ofGuarantee('epsilon', 'up')}, {label: 'delta', of: ofGuarantee('delta', 'plain')},
    {label: 'best attack is right', of: ofGuarantee('attack_accuracy', 'percentUp')});
  if (runs.some((run) => run.audit)) {
    columns.push({label: 'audit', of: (run, i) => run.audit ? auditVerdict(run.audit, `runs.${i}.audit`).word : ''});
  }
  if (runs.some((run, i) => lastOf(run, i, 'seconds'))) columns.push({label: 'seconds', of: (run, i) => found(run, i, 'seconds', 'plain')});
  return dataTable('Runs', ['run', ...columns.map((column) => column.label)],
    runs.map((run, i) => [runLink(run, i), ...columns.map((column) => column.of(run, i))]), {name: 'overview'});
}

// ---- What a run is, how good it is, what it tells about a person, and what it used of its budget.
function runFacts(data, i) {
  const run = data.runs[i];
  const of = (key) => (run.record.find(([name]) => name === key) ?? [])[1];
  const steps = run.points.length ? [number(last(run.points).step, 'whole', `runs.${i}.points.${run.points.length - 1}.step`), ' steps. '] : '';
  const what = fact('What', [run.model || 'a model', run.kind === 'fit' ? ' fitted to ' : ' trained on ', run.data],
    run.kind === 'fit' ? '' : steps, run.ended ? '' : 'The run has not ended. ', of('intended use') ? `For: ${of('intended use')}. ` : '',
    of('curator') ? `Answers for it: ${of('curator')}.` : '');
  return [run.guarantee?.weak ? el('p', {class: 'warning'}, run.guarantee.weak) : null,
    el('dl', {class: 'facts'}, what, goodness(data.runs, i), aboutAPerson(run, i), budgetOf(data, i),
       run.audit ? fact('Audit', auditVerdict(run.audit, `runs.${i}.audit`).word, auditVerdict(run.audit, `runs.${i}.audit`).text) : null)];
}

function goodness(runs, i) {
  const quality = kQualities.find(({name}) => lastOf(runs[i], i, name));
  if (!quality) return fact('How good', 'not measured', 'No public test set was given.');
  const own = lastOf(runs[i], i, quality.name);
  const k = baselineOf(runs, i, quality.name);
  const other = k < 0 ? undefined : lastOf(runs[k], k, quality.name);
  return fact('How good', number(own.value, quality.form, own.path), quality.of.trim(),
    other ? ['; without privacy ', number(other.value, quality.form, other.path), ' (', runLink(runs[k], k), ').'] : '.');
}

function aboutAPerson(run, i) {
  const label = 'What it tells about a person';
  const g = run.guarantee;
  if (!g) return fact(label, run.without_privacy ? 'everything' : 'no limit', 'Nothing limits what an attacker can learn.');
  const isOfUsers = run.record.some(([name, value]) => name === 'unit of privacy' && value === 'user');
  const at = `runs.${i}.guarantee`;
  return fact(label, ['epsilon ', number(g.epsilon, 'up', `${at}.epsilon`)],
    'Somebody who knows everybody else in the data, and sees all that was released, guesses whether ',
    isOfUsers ? 'you were' : 'a record of yours was', ' in it, and is right at most ',
    number(g.attack_accuracy, 'percentUp', `${at}.attack_accuracy`), ' of the time; a coin is right 50 %. Delta is ',
    number(g.delta, 'plain', `${at}.delta`), '.', run.private ? '' : ' NOT PRIVATE: only the same run with secret noise would keep this.');
}

function budgetOf(data, i) {
  const run = data.runs[i];
  const label = 'Budget of the run';
  if (!run.target_epsilon) return run.without_privacy ? null : fact(label, 'none', 'The noise was given instead of an epsilon.');
  const used = run.guarantee?.epsilon ? run.guarantee.epsilon / run.target_epsilon : null;
  return fact(label, run.guarantee ? (used === null ? 'more than all' : percentUp(used)) + ' used' : 'not used yet',
    'of epsilon ', number(run.target_epsilon, 'plain', `runs.${i}.target_epsilon`), '. What is left for other runs stands in ',
    data.ledgers.length ? el('a', {href: '#ledger-0'}, 'the ledger') : 'the ledger of the data', '.',
    run.guarantee ? progressBar(used, 'used') : null);
}

// ---- Charts
function runSeries(runs, x, y) {
  return runs.map((run, i) => ({
    name: run.name, colour: i, dashed: !run.private,
    points: run.points.filter((point) => point[x] !== null && point[y] !== null)
      .map((point) => ({x: point[x], y: point[y]})),
  })).filter((series) => series.points.length > 0);
}

function runCharts(runs) {
  const percents = {show: percent, ticks: share};
  const specs = (list) => list.map((spec) => ({...spec, x: {label: spec.x}, y: {label: spec.label, show: plain, ...spec.axis},
                                               series: runSeries(runs, spec.x, spec.y)}))
    .filter((spec) => spec.series.some((series) => series.points.length > 1));
  const bySteps = specs([
    {name: 'accuracy', title: 'Test accuracy', x: 'step', y: 'test_accuracy', label: 'test accuracy', axis: percents},
    {name: 'squared', title: 'Mean squared error on the test set', x: 'step', y: 'test_mean_squared_error', label: 'mean squared error'},
    {name: 'test-loss', title: 'Loss on the public test set', x: 'step', y: 'test_loss', label: 'test loss'},
    {name: 'epsilon', title: 'Epsilon spent', x: 'step', y: 'epsilon', label: 'epsilon', axis: {show: upTo}}]);
  const costs = specs([
    {name: 'price', title: 'What accuracy costs', x: 'epsilon', y: 'test_accuracy', label: 'test accuracy', axis: percents}]);
  return bySteps.length ? el('div', {class: 'grid'}, chosenChart('steps', bySteps), costs.map(chartPanel)) : null;
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
  const rows = keys.filter(differs).map((key) => [key, ...maps.map((map) => map.get(key) ?? '')]);
  if (rows.length === 0) return el('p', {}, 'The runs have the same settings.');
  return dataTable('Settings that differ', ['setting', ...runs.map((run) => run.name)], rows, {name: 'differences'});
}

// ---- What an attacker can learn. The same sentences hold of every run: a row each, a column for a run.
const kChance = {name: 'pure chance', colour: 'x', dashed: true, bare: true, points: [{x: 0, y: 1}, {x: 1, y: 0}]};

function attackerTable(runs) {
  const known = runs.map((run, i) => ({run, g: run.guarantee, at: `runs.${i}.guarantee`})).filter(({g}) => g);
  const first = known[0];
  const row = (sentence, value) => [{nodes: sentence}, ...known.map(value)];
  const rows = [
    row(['Guesses that are right, if being in or out is equally likely (a coin: 50 %)'],
        ({g, at}) => cell(g.attack_accuracy, 'percentUp', `${at}.attack_accuracy`)),
    ...first.g.recognised.map(([rate], k) => row(
      ['Members that are recognised, if ', number(rate, 'share', `${first.at}.recognised.${k}.0`), ' of the others are wrongly accused'],
      ({g, at}) => cell(g.recognised[k][1], 'percentUp', `${at}.recognised.${k}.1`))),
    ...first.g.beliefs.map(([before], k) => row(
      ['A suspicion of ', number(before, 'share', `${first.at}.beliefs.${k}.0`), ' grows to'],
      ({g, at}) => cell(g.beliefs[k][1], 'percentUp', `${at}.beliefs.${k}.1`)))];
  return dataTable('What an attacker can do at most', ['at most', ...known.map(({run}) => run.name)], rows, {name: 'attacker', isFixed: true});
}

function attackerPart(runs) {
  const series = runs.map((run, i) => ({name: run.name, colour: i, bare: true, points: run.guarantee?.curve.map(([x, y]) => ({x, y}))}))
    .filter((one) => one.points);
  if (series.length === 0) return part('attacker', 'What an attacker can learn about you', el('p', {}, 'Nothing limits what an attacker can learn.'));
  return part('attacker', 'What an attacker can learn about you',
    el('p', {}, 'Somebody who knows everybody else in the data, and sees all that was released, wants to know whether you were in it.'),
    attackerTable(runs),
    el('p', {class: 'soft'}, 'A suspicion grows beyond its limit with probability delta at most; the other rows count delta in.'),
    chartPanel({
      name: 'tradeoff', square: true, title: 'How well one record can be told',
      text: 'No attack on a run gets below its line. The nearer the line is to pure chance, the more private the run.',
      series: [...series, kChance], x: {label: 'false positive rate', range: {min: 0, max: 1}, show: percent},
      y: {label: 'false negative rate', range: {min: 0, max: 1}, show: percent}}));
}

// ---- Audits. A bound on epsilon is an interval: what the guesses prove, up to what is claimed.
function auditVerdict(audit, at) {
  const bounds = audit.attackers.flatMap((attacker, k) => Object.entries(attacker.epsilon_lower)
    .map(([method, value]) => ({value, path: `${at}.attackers.${k}.epsilon_lower.${method}`})));
  const best = bounds.reduce((a, b) => (b.value > a.value ? b : a), bounds[0]);
  const claimed = () => number(audit.epsilon_claimed, 'up', `${at}.epsilon_claimed`);
  const proven = () => [number(best.value, 'down', best.path), ' (confidence ', number(audit.confidence, 'share', `${at}.confidence`), ')'];
  if (audit.contradiction) {
    return {word: 'CONTRADICTED', text: ['Do not release this model. ',
      best ? ['The guesses prove an epsilon of at least ', proven(), ', and ', claimed(), ' is claimed.'] : '']};
  }
  if (!best) return {word: 'no bound', text: ['The audit proves nothing about epsilon.']};
  if (best.value > audit.epsilon_claimed) {
    return {word: 'undecided', text: ['The best bound on epsilon is ', proven(), ', above the claimed ', claimed(),
      '. Of a sound run a bound is too high by chance at times, and the guesses do not suffice to exclude the claim. Repeat the run with more canaries.']};
  }
  return {word: 'compatible', text: ['Epsilon is at least ', proven(), ' by what the guesses prove, and at most ', claimed(),
    ' by what is claimed: the audit does not contradict the claim.']};
}

const kDiagonal = {name: 'pure chance', colour: 'x', dashed: true, bare: true, points: [{x: 0, y: 0}, {x: 1, y: 1}]};
function rocPanel(name, title, text, curves, limit) {
  const series = curves.map(([label, curve], k) => ({name: label, colour: k, bare: true, points: curve.map(([x, y]) => ({x, y}))}))
    .filter((one) => one.points.length > 0);
  if (series.length === 0) return null;
  const limits = limit.length ? [{name: 'limit of the claim', colour: 4, dashed: true, bare: true, points: limit.map(([x, y]) => ({x, y}))}] : [];
  return chartPanel({name, square: true, title, text, series: [...series, ...limits, kDiagonal],
    x: {label: 'false positive rate', range: {min: 0, max: 1}, show: percent},
    y: {label: 'true positive rate', range: {min: 0, max: 1}, show: percent}});
}

function auditFold(run, i) {
  const audit = run.audit;
  const at = `runs.${i}.audit`;
  const methods = [...new Set(audit.attackers.flatMap((a) => Object.keys(a.epsilon_lower)))];
  return fold(`audit-${i}`, 'Audit by canaries', false,
    el('p', {}, number(audit.canaries, 'whole', `${at}.canaries`),
      ' made-up records took part, each if a coin said so. What right guesses about the coins prove with confidence ',
      number(audit.confidence, 'share', `${at}.confidence`), ' at delta ', number(audit.delta, 'plain', `${at}.delta`), ': epsilon is at least'),
    dataTable('Bounds of the audit', ['attacker', 'guesses', 'right', ...methods],
      audit.attackers.map((attacker, k) => [attacker.name,
        cell(attacker.guesses, 'whole', `${at}.attackers.${k}.guesses`),
        cell(attacker.correct, 'whole', `${at}.attackers.${k}.correct`),
        ...methods.map((method) => method in attacker.epsilon_lower
          ? cell(attacker.epsilon_lower[method], 'down', `${at}.attackers.${k}.epsilon_lower.${method}`) : '')]), {name: 'audit'}),
    rocPanel('roc-' + i, 'What the canaries gave away', 'Points above the limit of the claim would be chance, or a contradiction.',
             audit.attackers.map((attacker) => [attacker.name, attacker.curve]), run.guarantee ? run.guarantee.curve.map(([x, y]) => [x, 1 - y]) : []));
}

// Released with the noise on them, which a reader must know to read them.
function coefficientsFold(run, i, isOpen) {
  const columns = [['value', 'coefficient'], ['noise', 'noise'], ['lower', 'from'], ['upper', 'to']]
    .filter(([key]) => run.coefficients.some((one) => one[key] !== null));
  const hasClasses = run.coefficients.some((one) => one.class !== '');
  return fold(`coefficients-${i}`, 'Coefficients', isOpen,
    el('p', {class: 'soft'}, 'As they were released; noise is its standard deviation, where it is known, and an interval holds in 95 % of fits.'),
    dataTable('Coefficients', ['feature', ...(hasClasses ? ['class'] : []), ...columns.map(([, heading]) => heading)],
      run.coefficients.map((one, k) => [one.feature, ...(hasClasses ? [one.class] : []),
        ...columns.map(([key]) => one[key] === null ? '' : cell(one[key], 'plain', `runs.${i}.coefficients.${k}.${key}`))]), {name: 'coefficients'}));
}

// ---- The card of a run
function runCard(data, i) {
  const run = data.runs[i];
  const isAlone = data.runs.length === 1;
  return part('run-' + i, isAlone ? 'Details of ' + run.name : run.name,
    run.private ? null : el('p', {class: 'warning'}, 'NOT PRIVATE: treat the model and all metrics like the training data themselves.'),
    isAlone ? null : runFacts(data, i),
    run.audit ? auditFold(run, i) : null,
    run.coefficients.length ? coefficientsFold(run, i, isAlone) : null,
    run.predictions ? predictionsFold(run, i, isAlone) : null,
    run.statement ? fold(`statement-${i}`, 'Privacy statement', false, el('pre', {class: 'statement'}, run.statement))
                  : el('p', {}, 'There is no statement yet.'),
    run.event ? fold(`event-${i}`, 'Event, for sordino account --event', false, el('pre', {}, run.event)) : null,
    run.record.length ? fold(`record-${i}`, 'Deployment record, hardware and version', false,
                             dataTable('Deployment record', ['field', 'value'], run.record, {name: 'record'})) : null,
    run.hashes.length ? fold(`hashes-${i}`, 'Hashes of model, code and declaration', false,
                             dataTable('Hashes', ['file', 'SHA-256'], run.hashes, {name: 'hashes'})) : null,
    fold(`settings-${i}`, 'Settings', false, dataTable('Settings', ['setting', 'value'], run.settings, {name: 'settings'})));
}
