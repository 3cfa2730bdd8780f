"""Draws docs/neighbours.svg: the answers of `sordino release` for two files that differ in one row.

    python3 docs/make_neighbours_svg.py build/release/bin/sordino docs/neighbours.svg
"""
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile

RUNS, EPSILON, ROWS = 3000, 0.3, 1000
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 300, 30, 30, 58, 46
SPAN = 16  # counts drawn on each side


def answers(sordino, path):
    """How often each count was released."""
    seen = collections.Counter()
    for _ in range(RUNS):
        out = subprocess.run([sordino, 'release', path, '--count', '--epsilon', str(EPSILON),
                              '--json'], capture_output=True, check=True).stdout
        seen[round(json.loads(out)['releases'][0]['value'])] += 1
    return seen


def main():
    sordino, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        histograms = []
        for rows in (ROWS, ROWS - 1):
            path = pathlib.Path(folder) / f'{rows}.csv'
            path.write_text('patient\n' + 'p\n' * rows, encoding='utf-8')
            histograms.append(answers(sordino, str(path)))
    low, high = ROWS - SPAN, ROWS + SPAN
    top = max(max(histogram.values()) for histogram in histograms)
    step = (WIDTH - LEFT - RIGHT) / (high - low + 1)
    scale = (HEIGHT - TOP - BOTTOM) / top
    floor = HEIGHT - BOTTOM
    svg = [f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
     aria-label="Histograms of {RUNS} private counts each of two files that differ in one patient">
<style>
  text {{ font: 13px system-ui, sans-serif; fill: #57606a }}
  .title {{ font-size: 16px; font-weight: 600; fill: #24292f }}
  .with {{ fill: #0d7d8c; fill-opacity: .55 }} .without {{ fill: #e0703a; fill-opacity: .55 }}
  .axis {{ stroke: #8c959f; stroke-width: 1 }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #9da7b3 }} .title {{ fill: #e6edf3 }} .axis {{ stroke: #6e7681 }}
    .with {{ fill: #37b6c6 }} .without {{ fill: #f08c58 }}
  }}
</style>
<text class="title" x="{LEFT}" y="24">Is one patient in the file? {RUNS:,} answers each.</text>''']
    for index, (name, label) in enumerate([('with', f'{ROWS:,} patients'),
                                           ('without', f'{ROWS - 1:,} patients')]):
        x = LEFT + 140 * index
        svg.append(f'<rect class="{name}" x="{x}" y="36" width="12" height="12" rx="2"/>'
                   f'<text x="{x + 18}" y="47">{label}</text>')
    svg.append(f'<text x="{WIDTH - RIGHT}" y="47" text-anchor="end">no answer is more than '
               f'{math.exp(EPSILON):.2f} times (e^{EPSILON}) likelier</text>')
    for name, histogram in zip(('with', 'without'), histograms):
        for count in range(low, high + 1):
            if histogram[count]:
                height = histogram[count] * scale
                svg.append(f'<rect class="{name}" x="{LEFT + (count - low) * step + 1:.1f}" '
                           f'y="{floor - height:.1f}" width="{step - 2:.1f}" '
                           f'height="{height:.1f}" rx="1.5"/>')
    svg.append(f'<path class="axis" d="M{LEFT} {floor + .5}H{WIDTH - RIGHT}"/>')
    for count in range(low, high + 1, 4):
        svg.append(f'<text x="{LEFT + (count - low + .5) * step:.1f}" y="{floor + 18}" '
                   f'text-anchor="middle">{count}</text>')
    svg.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
               f'count released by sordino at epsilon {EPSILON}</text>\n</svg>\n')
    pathlib.Path(target).write_text('\n'.join(svg), encoding='utf-8')


if __name__ == '__main__':
    main()
