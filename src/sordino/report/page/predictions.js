// What a model said about its public test set: a confusion matrix and examples.
'use strict';

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

function pictureOf(image, label) {
  const canvas = el('canvas', {width: image.width, height: image.height, class: 'example', role: 'img', 'aria-label': label});
  const context = canvas.getContext('2d');
  const target = context.createImageData(image.width, image.height);
  const bytes = bytesOf(image.pixels);
  for (let i = 0; i < image.width * image.height; ++i) {
    for (let c = 0; c < 3; ++c) target.data[4 * i + c] = bytes[image.channels * i + (image.channels === 3 ? c : 0)];
    target.data[4 * i + 3] = 255;
  }
  context.putImageData(target, 0, 0);
  return canvas;
}

// Shades are shares of a row, so that rare classes are seen too.
function confusionTable(predictions, at) {
  const names = predictions.classes;
  const rows = predictions.confusion.map((counts, truth) => {
    const total = counts.reduce((sum, count) => sum + count, 0);
    const cells = counts.map((count, k) => {
      const node = el('td', {class: truth === k ? 'number right' : 'number wrong', 'data-path': `${at}.confusion.${truth}.${k}`,
                             'data-form': 'whole', title: `${names[truth]} taken for ${names[k]}: ${count}`}, String(count));
      node.style.setProperty('--share', total ? String(count / total) : '0');
      return node;
    });
    return el('tr', {}, el('th', {scope: 'row'}, names[truth]), cells,
              el('td', {class: 'number'}, total ? percent(counts[truth] / total) : ''));
  });
  return scrolling(el('div', {class: 'scroll'}, el('table', {class: 'confusion', 'data-table': 'confusion'},
    el('caption', {}, 'Rows: the true class. Columns: the predicted one.'),
    el('thead', {}, el('tr', {}, el('td', {}), names.map((name) => el('th', {scope: 'col', class: 'number'}, name)),
                       el('th', {scope: 'col', class: 'number'}, 'right'))),
    el('tbody', {}, rows))), 'Confusion matrix');
}

function exampleFigure(predictions, example, at) {
  const name = (label) => predictions.classes[label];
  const isRight = example.predictions[0][0] === example.truth;
  return el('figure', {class: isRight ? 'right' : 'wrong'},
    example.image ? pictureOf(example.image, `record ${example.record}, of class ${name(example.truth)}`) : null,
    el('figcaption', {}, el('b', {}, isRight ? name(example.truth) : `${name(example.truth)}, taken for ${name(example.predictions[0][0])}`),
      example.predictions.map(([label, probability], k) => el('div', {class: 'soft'}, name(label) + ': ',
        number(probability, 'percent', `${at}.predictions.${k}.1`))),
      el('div', {class: 'soft'}, 'record ' + example.record)));
}

// The numbers, and how often classes are right that are predicted with a probability: a curve and its table.
const kAsSaid = {name: 'right as often as said', colour: 'x', dashed: true, bare: true, points: [{x: 0, y: 0}, {x: 1, y: 1}]};
function qualityParts(quality, at, i) {
  const rows = [['Log-loss', cell(quality.log_loss, 'plain', at + '.log_loss')],
                ['Area under the ROC curve', cell(quality.auroc, 'plain', at + '.auroc')],
                ['Calibration error', cell(quality.calibration_error, 'percent', at + '.calibration_error')]];
  const bins = quality.calibration.map((bin, k) => ({...bin, path: `${at}.calibration.${k}`})).filter((bin) => bin.records > 0);
  return [el('h4', {}, 'Probabilities'),
    dataTable('Quality of the probabilities', ['', 'value'], rows.filter(([, shown]) => shown.value !== undefined), {name: 'quality', isFixed: true}),
    chartPanel({
      name: 'calibration-' + i, square: true, title: 'Whether the probabilities can be believed',
      text: 'Below the dashed line the model is surer than it should be, above it less sure.',
      series: [{name: 'public test set', colour: i, points: bins.map((bin) => ({x: bin.probability, y: bin.right}))}, kAsSaid],
      x: {label: 'probability of the predicted class', range: {min: 0, max: 1}, show: percent, ticks: share},
      y: {label: 'right', range: {min: 0, max: 1}, show: percent, ticks: share}}),
    dataTable('Calibration', ['probability of the predicted class', 'right', 'records'],
      bins.map((bin) => [cell(bin.probability, 'percent', bin.path + '.probability'), cell(bin.right, 'percent', bin.path + '.right'),
                         cell(bin.records, 'whole', bin.path + '.records')]), {name: 'calibration'})];
}

function predictionsFold(run, i, isOpen) {
  const at = `runs.${i}.predictions`;
  const predictions = run.predictions;
  return fold(`predictions-${i}`, 'Public test set', isOpen, confusionTable(predictions, at),
    predictions.quality ? qualityParts(predictions.quality, at + '.quality', i) : null,
    predictions.examples.length === 0 ? null : [el('h4', {}, 'Examples'),
      el('p', {class: 'soft'}, 'The first records of the test set, and the mistakes that the model was surest of.'),
      el('div', {class: 'examples'}, predictions.examples.map((example, k) =>
        exampleFigure(predictions, example, `${at}.examples.${k}`)))]);
}
