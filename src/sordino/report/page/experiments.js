'use strict';

// ---- Experiments: means over repeats with one standard error, against the first numeric axis.
const kMaxCells = 5000;
const kMaxSeries = 16;
const measured = (item, measure) => Number.isFinite(item.values[measure] ?? undefined);

// The first axis of numbers along which the measure has more than one place.
function axisOf(experiment, measure) {
  const cells = experiment.cells.filter((item) => measured(item, measure));
  return experiment.axes.find((axis) => {
    const places = new Set(cells.map((item) => item.settings[axis.name]).filter((text) => text !== undefined));
    return places.size > 1 && [...places].every((text) => text !== '' && Number.isFinite(Number(text)));
  });
}
function groupCells(experiment, axis, measure) {
  const groups = new Map();
  for (const item of experiment.cells) {
    if (!measured(item, measure) || item.settings[axis.name] === undefined) continue;
    const others = experiment.axes.filter((other) => other !== axis && other.name in item.settings);
    const name = others.map((other) => `${other.name} ${item.settings[other.name]}`).join(', ') || measure;
    const x = Number(item.settings[axis.name]);
    if (!groups.has(name)) groups.set(name, new Map());
    const points = groups.get(name);
    points.set(x, [...(points.get(x) || []), item.values[measure]]);
  }
  return groups;
}
function measureChart(experiment, i, measure, m) {
  const axis = axisOf(experiment, measure);
  if (!axis) return null;
  const all = [...groupCells(experiment, axis, measure)];
  const groups = all.slice(0, kMaxSeries);
  const places = groups.flatMap(([, points]) => [...points.keys()]);
  const values = groups.flatMap(([, points]) => [...points.values()].flat());
  const isWide = (list, ratio) => Math.min(...list) > 0 && Math.max(...list) / Math.min(...list) > ratio;
  return {name: `experiment-${i}-${m}`, title: measure, text: all.length > kMaxSeries ? `The first ${kMaxSeries} of ${all.length} series; the table below has all.` : undefined,
    series: groups.map(([name, points], k) => {
      const order = [...points].sort((a, b) => a[0] - b[0]).map(([x, list]) => ({x, ...meanOf(list)}));
      return {name, colour: k, points: order.map((p) => ({x: p.x, y: p.mean})),
              errors: order.some((p) => p.error > 0) ? order.map((p) => [p.mean - p.error, p.mean + p.error]) : undefined};
    }),
    x: {label: axis.name, log: isWide(places, 30)}, y: {label: measure, log: isWide(values, 1000)}};
}
function meanOf(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {mean, error: values.length > 1 ? Math.sqrt(squares / (values.length - 1) / values.length) : 0};
}

function experimentPart(experiment, i) {
  const charts = experiment.measures.map((measure, m) => measureChart(experiment, i, measure, m)).filter(Boolean);
  return part('experiment-' + i, 'Experiment ' + experiment.name, el('p', {}, el('b', {}, experiment.title)),
    experiment.about ? el('p', {}, experiment.about) : null,
    experiment.source ? el('p', {class: 'soft'}, 'Source: ' + experiment.source) : null,
    el('p', {}, experiment.public ? 'The data of this experiment are public: nothing was spent.'
                                  : 'Shown are results on public test data and what was paid for.'),
    experiment.measures_left_out > 0
      ? el('p', {class: 'soft'}, experiment.measures_left_out + ' measures are left out, which are not known to be public.') : null,
    experiment.pictures.length > 0
      ? el('div', {class: 'grid pictures'}, experiment.pictures.map((picture) => el('img', {alt: picture.name,
          src: 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(picture.svg)}))) : null,
    chosenChart('experiment-' + i, charts),
    fold('cells-' + i, 'All cells', charts.length === 0, dataTable('Cells of the experiment', [...experiment.axes.map((axis) => axis.name), ...experiment.measures],
      experiment.cells.slice(0, kMaxCells).map((item, k) => [
        ...experiment.axes.map((axis) => {
          const text = item.settings[axis.name] ?? '';
          return text !== '' && Number.isFinite(Number(text)) ? {text, value: Number(text)} : text;
        }),
        ...experiment.measures.map((measure) => measure in item.values
          ? cell(item.values[measure], 'plain', `experiments.${i}.cells.${k}.values.${measure}`) : '')]), {name: 'experiment-' + i})),
    experiment.cells.length > kMaxCells ? el('p', {class: 'soft'}, `The first ${kMaxCells} of ${experiment.cells.length} cells.`) : null);
}
