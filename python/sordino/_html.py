"""Small tables for notebooks."""
from __future__ import annotations

from collections.abc import Iterable, Sequence


def escape(value: object) -> str:
    text = str(value)
    for mark, name in (('&', '&amp;'), ('<', '&lt;'), ('>', '&gt;'), ('"', '&quot;')):
        text = text.replace(mark, name)
    return text


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = (), caption: str = '') -> str:
    """Rows of cells, the first of each its name."""
    html = ['<table>']
    if caption:
        html.append(f'<caption>{escape(caption)}</caption>')
    if head:
        html.append('<tr>' + ''.join(f'<th>{escape(cell)}</th>' for cell in head) + '</tr>')
    for name, *cells in rows:
        html.append(f'<tr><th>{escape(name)}</th>'
                    + ''.join(f'<td>{escape(cell)}</td>' for cell in cells) + '</tr>')
    return '\n'.join([*html, '</table>'])
