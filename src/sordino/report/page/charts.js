// Charts: Chart.js with buttons for the series, zoom by dragging, and the colours of the page.
'use strict';

const kSeriesColours = 8;
const charts = new Map();         // canvas -> {chart, spec}
const hiddenSeries = new Set();   // "chart/series" that were switched off; kept over refreshes
const chosenCharts = new Map();   // name of a choice -> title of its chart; likewise

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}
function seriesColour(series) {
  return series.colour === 'x' ? colour('soft') : colour('s' + (series.colour % kSeriesColours));
}

// ---- Numbers. Bounds are rounded so that what is read still holds.
function scaleFor(value, digits) {
  return Math.pow(10, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
}
function trimmed(value, digits) {
  const rounded = Number(value.toPrecision(digits));
  const isSmall = rounded !== 0 && Math.abs(rounded) < 1e-4;
  return isSmall ? String(Number(rounded).toExponential()) : String(rounded);
}
function upTo(value, digits = 4) {
  if (value === null || value === undefined) return 'no limit';
  if (value === 0) return '0';
  const scale = scaleFor(value, digits);
  return trimmed(Math.ceil(value * scale * (1 - 1e-12)) / scale, digits);
}
function downTo(value, digits = 4) {
  if (value === null || value === undefined) return '';
  if (value === 0) return '0';
  const scale = scaleFor(value, digits);
  return trimmed(Math.floor(value * scale * (1 + 1e-12)) / scale, digits);
}
function plain(value, digits = 4) {
  if (value === null || value === undefined) return '';
  return value === 0 ? '0' : trimmed(value, digits);
}
function percent(value) {
  return value === null || value === undefined ? '' : (100 * value).toFixed(2) + ' %';
}
// A share that was chosen, such as a confidence.
function share(value) {
  return value === null || value === undefined ? '' : plain(100 * value) + ' %';
}
function percentUp(value) {
  if (value === null || value === undefined) return '';
  return (Math.ceil(value * 1e4 * (1 - 1e-12)) / 100).toFixed(2) + ' %';
}

// ---- Zoom: a rectangle that is dragged becomes the range of the axes; a double click undoes it.
const zoomPlugin = {
  id: 'zoom',
  afterDraw(chart) {
    const drag = chart.$drag;
    if (!drag) return;
    const context = chart.ctx;
    context.save();
    context.fillStyle = colour('accent');
    context.globalAlpha = 0.15;
    context.fillRect(Math.min(drag.x0, drag.x1), chart.chartArea.top, Math.abs(drag.x1 - drag.x0),
                     chart.chartArea.bottom - chart.chartArea.top);
    context.restore();
  },
};

function attachZoom(canvas, chart, unzoom) {
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    return Math.min(Math.max(x, chart.chartArea.left), chart.chartArea.right);
  };
  canvas.onpointerdown = (event) => {
    if (event.button !== 0) return;
    chart.$drag = {x0: place(event), x1: place(event)};
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    if (!chart.$drag) return;
    chart.$drag.x1 = place(event);
    chart.draw();
  };
  // A finger that moves up or down scrolls the page.
  canvas.onpointercancel = () => { chart.$drag = null; chart.draw(); };
  canvas.onpointerup = () => {
    const drag = chart.$drag;
    chart.$drag = null;
    if (!drag) return;
    if (Math.abs(drag.x1 - drag.x0) < 8) { chart.draw(); return; }
    const ends = [drag.x0, drag.x1].map((x) => chart.scales.x.getValueForPixel(x));
    chart.options.scales.x.min = Math.min(...ends);
    chart.options.scales.x.max = Math.max(...ends);
    unzoom.hidden = false;
    chart.update('none');
  };
  const reset = () => {
    delete chart.options.scales.x.min;
    delete chart.options.scales.x.max;
    Object.assign(chart.options.scales.x, chart.$range);
    unzoom.hidden = true;
    chart.update('none');
  };
  canvas.ondblclick = reset;
  unzoom.onclick = reset;
}

// ---- Error bars of a series that has them: [low, high] for each point.
const errorBarPlugin = {
  id: 'errors',
  afterDatasetsDraw(chart) {
    chart.data.datasets.forEach((dataset, index) => {
      if (!dataset.errors || !chart.isDatasetVisible(index)) return;
      const context = chart.ctx;
      context.save();
      context.strokeStyle = dataset.borderColor;
      context.lineWidth = 1.5;
      dataset.data.forEach((point, i) => {
        const x = chart.scales.x.getPixelForValue(point.x);
        if (x < chart.chartArea.left - 1 || x > chart.chartArea.right + 1) return;
        const [low, high] = dataset.errors[i].map((y) => chart.scales.y.getPixelForValue(y));
        context.beginPath();
        context.moveTo(x, low);
        context.lineTo(x, high);
        context.moveTo(x - 4, low);
        context.lineTo(x + 4, low);
        context.moveTo(x - 4, high);
        context.lineTo(x + 4, high);
        context.stroke();
      });
      context.restore();
    });
  },
};

// Powers of ten of a logarithmic axis, and 2 and 5 times them where there is room. Without a label there is no line.
function logTick(value, index, ticks) {
  const isNarrow = ticks[ticks.length - 1].value / ticks[0].value < 200;
  const first = Math.round(value / Math.pow(10, Math.floor(Math.log10(value) + 1e-9)));
  return first === 1 || (isNarrow && (first === 2 || first === 5)) ? plain(value) : null;
}

function axisOptions(axis) {
  return {
    type: axis.log ? 'logarithmic' : 'linear',
    title: {display: true, text: axis.label, color: colour('soft')},
    grid: {color: colour('line')},
    ticks: {color: colour('soft'), maxRotation: 0, autoSkipPadding: 12,
            precision: axis.whole ? 0 : undefined,
            callback: axis.log ? logTick : axis.ticks || ((value) => plain(value))},
    ...axis.range,
  };
}

function drawChart(canvas, spec, unzoom) {
  const old = charts.get(canvas);
  if (old) old.chart.destroy();
  const chart = new Chart(canvas, {
    type: 'line',
    data: {datasets: spec.series.map((series) => ({
      label: series.name, data: series.points, errors: series.errors,
      borderColor: seriesColour(series), backgroundColor: seriesColour(series),
      borderDash: series.dashed ? [6, 4] : [], borderWidth: 2,
      pointRadius: series.points.length > 60 || series.bare ? 0 : 3, pointHitRadius: 8,
      stepped: series.stepped || false, hidden: hiddenSeries.has(spec.name + '/' + series.name),
    }))},
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {x: axisOptions(spec.x), y: axisOptions(spec.y)},
      plugins: {
        legend: {display: false},
        tooltip: {callbacks: {
          title: (items) => items.length ? spec.x.label + ' ' + (spec.x.show || plain)(items[0].parsed.x) : '',
          label: (item) => item.dataset.label + ': ' + (spec.y.show || plain)(item.parsed.y),
        }},
      },
    },
    plugins: [zoomPlugin, errorBarPlugin],
  });
  chart.$range = {...spec.x.range};
  charts.set(canvas, {chart, spec, unzoom});
  attachZoom(canvas, chart, unzoom);
  return chart;
}

function redrawCharts() {
  for (const [canvas, {spec, unzoom}] of charts) {
    if (canvas.isConnected) drawChart(canvas, spec, unzoom);
  }
}

// ---- Tables. A cell is a text, a node, or {text or nodes, value, path, form} with a number to sort by.
const keyOf = (cell) => (cell instanceof Node ? cell.textContent : typeof cell === 'object' ? cell.value ?? cell.text : cell);
const isNumber = (cell) => typeof keyOf(cell) === 'number';

// The first cell of a row names it. A heading is a button that sorts, unless `isFixed`.
function dataTable(label, headings, rows, {name, isFixed} = {}) {
  const body = el('tbody', {});
  const fill = (order) => body.replaceChildren(...order.map((row) => el('tr', {}, row.map((cell, column) => {
    const attributes = {class: isNumber(cell) ? 'number' : null, 'data-path': cell.path, 'data-form': cell.form};
    if (column === 0) attributes.scope = 'row';
    return el(column === 0 ? 'th' : 'td', attributes, cell instanceof Node ? cell : cell.nodes ?? cell.text ?? cell);
  }))));
  const heads = headings.map((heading, column) => {
    const head = el('th', {scope: 'col', class: rows.some((row) => isNumber(row[column])) ? 'number' : null});
    if (isFixed) {
      head.append(heading);
      return head;
    }
    const button = el('button', {type: 'button'}, heading);
    button.onclick = () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      fill([...rows].sort((a, b) => {
        const [x, y] = [keyOf(a[column]), keyOf(b[column])];
        const both = typeof x === 'number' && typeof y === 'number';
        const sign = both ? x - y : String(x).localeCompare(String(y), 'en', {numeric: true});
        return down ? -sign : sign;
      }));
    };
    head.append(button);
    return head;
  });
  fill(rows);
  const scroll = el('div', {class: 'scroll'},
                    el('table', {'data-table': name, 'aria-label': label}, el('thead', {}, el('tr', {}, heads)), body));
  return scrolling(scroll, label);
}

// Whoever has no mouse scrolls a table that is wider than its place by the arrow keys.
function scrolling(box, label) {
  new ResizeObserver(() => {
    const isWide = box.scrollWidth > box.clientWidth;
    for (const [key, value] of [['tabindex', '0'], ['role', 'region'], ['aria-label', label]]) {
      isWide ? box.setAttribute(key, value) : box.removeAttribute(key);
    }
  }).observe(box);
  return box;
}

// ---- Charts with what stands around them.

// The points of a chart, for whoever does not see it. Made when it is unfolded.
function numbersOf(spec) {
  const key = 'numbers of ' + spec.name;
  const fold = el('details', {class: 'numbers', 'data-details': key, open: folds.get(key) ? '' : null},
                  el('summary', {}, 'Numbers of this chart'));
  const fill = () => {
    if (!fold.open || fold.querySelector('table')) return;
    const shown = spec.series.filter((series) => series.colour !== 'x');
    const hasErrors = shown.some((series) => series.errors);
    const show = (axis, value) => ({text: (axis.show || plain)(value), value});
    fold.append(dataTable('Numbers of ' + spec.title, ['series', spec.x.label, spec.y.label, ...(hasErrors ? ['from', 'to'] : [])],
      shown.flatMap((series) => series.points.map((point, i) => [series.name, show(spec.x, point.x), show(spec.y, point.y),
        ...(hasErrors ? series.errors?.[i].map((end) => show(spec.y, end)) ?? ['', ''] : [])])),
      {name: 'numbers-' + spec.name}));
  };
  fold.ontoggle = fill;
  fill();  // a watched page is as long at once as it was
  return fold;
}

// A title, a button for each series, the chart and its numbers. Drawn when it is in the page.
function chartPanel(spec) {
  const canvas = el('canvas', {role: 'img', 'data-chart': spec.name,
    'aria-label': `${spec.title}: ${spec.y.label} by ${spec.x.label}. The numbers are below the chart.`});
  const unzoom = el('button', {type: 'button', class: 'unzoom', hidden: ''}, 'Whole range');
  const buttons = spec.series.map((series, index) => {
    const key = spec.name + '/' + series.name;
    const button = el('button', {type: 'button', 'aria-pressed': String(!hiddenSeries.has(key)),
                                 'data-series': series.name},
                      el('span', {class: 'swatch c' + (series.colour === 'x' ? 'x' : series.colour % kSeriesColours)}),
                      series.name);
    button.onclick = () => {
      const chart = charts.get(canvas).chart;
      const visible = !chart.isDatasetVisible(index);
      chart.setDatasetVisibility(index, visible);
      chart.update('none');
      button.setAttribute('aria-pressed', String(visible));
      visible ? hiddenSeries.delete(key) : hiddenSeries.add(key);
    };
    return button;
  });
  const panel = el('figure', {class: spec.square ? 'panel square' : 'panel'},
                   el('figcaption', {}, el('b', {}, spec.title), spec.text ? el('p', {class: 'soft'}, spec.text) : null),
                   el('div', {class: 'series'}, buttons, unzoom),
                   el('div', {class: 'plot'}, canvas), numbersOf(spec));
  panel.$draw = () => drawChart(canvas, spec, unzoom);
  return panel;
}

// One chart at a time, chosen by its title.
function chosenChart(name, specs) {
  if (specs.length < 2) return specs.map(chartPanel);
  const place = el('div', {});
  const select = el('select', {'data-choice': name}, specs.map((spec) => el('option', {}, spec.title)));
  const show = () => {
    for (const canvas of place.querySelectorAll('canvas')) {
      charts.get(canvas)?.chart.destroy();
      charts.delete(canvas);
    }
    const panel = chartPanel(specs[select.selectedIndex]);
    place.replaceChildren(panel);
    if (place.isConnected) panel.$draw();
  };
  select.selectedIndex = Math.max(0, specs.findIndex((spec) => spec.title === chosenCharts.get(name)));
  select.onchange = () => { chosenCharts.set(name, select.value); show(); };
  show();
  return el('div', {}, el('label', {class: 'choice'}, 'Chart: ', select), place);
}
