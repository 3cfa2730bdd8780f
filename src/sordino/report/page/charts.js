// Charts: Chart.js with buttons for the series, zoom by dragging, and the colours of the page.
'use strict';

const kSeriesColours = 8;
const charts = new Map();         // canvas -> {chart, spec}
const hiddenSeries = new Set();   // "chart/series" that were switched off; kept over refreshes

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value);
  }
  for (const child of children.flat()) {
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

// A panel with a title, a button for each series, and the chart. Drawn when it is in the page.
function chartPanel(spec) {
  const canvas = el('canvas', {role: 'img', 'aria-label': spec.title, 'data-chart': spec.name});
  const unzoom = el('button', {class: 'unzoom', hidden: ''}, 'Whole range');
  const buttons = spec.series.map((series, index) => {
    const key = spec.name + '/' + series.name;
    const button = el('button', {'aria-pressed': String(!hiddenSeries.has(key)),
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
  const panel = el('section', {class: spec.square ? 'panel square' : 'panel'}, el('h3', {}, spec.title),
                   spec.text ? el('p', {class: 'soft'}, spec.text) : null,
                   el('div', {class: 'series'}, buttons, unzoom),
                   el('div', {class: 'plot'}, canvas));
  panel.$draw = () => drawChart(canvas, spec, unzoom);
  return panel;
}

// ---- Tables that are sorted by a click on a heading. A cell is {text, value, path} or a text.
function sortableTable(headings, rows, name) {
  const body = el('tbody', {});
  const fill = (order) => body.replaceChildren(...order.map((row) => el('tr', {}, row.map((cell) => {
    const isNumber = typeof cell === 'object' && typeof cell.value === 'number';
    const text = typeof cell === 'object' ? cell.text : cell;
    return el('td', {class: isNumber ? 'number' : null, 'data-path': cell.path, 'data-form': cell.form}, text);
  }))));
  const key = (cell) => (typeof cell === 'object' ? cell.value ?? cell.text : cell);
  const heads = headings.map((heading, column) => {
    const isNumber = rows.some((row) => typeof key(row[column]) === 'number');
    const head = el('th', {tabindex: '0', scope: 'col', class: isNumber ? 'number' : null}, heading);
    const sort = () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const order = [...rows].sort((a, b) => {
        const [x, y] = [key(a[column]), key(b[column])];
        const both = typeof x === 'number' && typeof y === 'number';
        const sign = both ? x - y : String(x).localeCompare(String(y), 'en', {numeric: true});
        return down ? -sign : sign;
      });
      fill(order);
    };
    head.onclick = sort;
    head.onkeydown = (event) => { if (event.key === 'Enter') sort(); };
    return head;
  });
  fill(rows);
  return el('div', {class: 'scroll'},
            el('table', {'data-table': name}, el('thead', {}, el('tr', {}, heads)), body));
}
