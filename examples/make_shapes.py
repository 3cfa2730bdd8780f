"""Draws grey pictures of circles, squares and triangles, the same ones every time:

    python3 examples/make_shapes.py shapes [PICTURES]

shapes/private has 2,400 pictures or PICTURES, shapes/public 600, each as CLASS/NUMBER.png of 20 x 20
pixels; shapes/new has ten without a class.
"""
import math
import pathlib
import random
import struct
import sys
import zlib

CLASSES = ['circle', 'square', 'triangle']
SIZE = 20


def inside(kind, x, y):
    """Whether the point is in a figure of about radius 1 around the origin."""
    if kind == 'circle':
        return x * x + y * y < 1
    if kind == 'square':
        return max(abs(x), abs(y)) < 0.9
    return y < 0.8 and y > 2 * abs(x) - 1


def picture(rng, kind):
    """Rows of bytes: a figure, turned, of another size and place and brightness, under noise."""
    radius, angle = rng.uniform(5, 8), rng.uniform(-0.5, 0.5)
    left, top = (SIZE / 2 + rng.uniform(-2, 2) for _ in range(2))
    bright, dark = rng.uniform(140, 230), rng.uniform(10, 80)
    rows = []
    for row in range(SIZE):
        pixels = bytearray()
        for column in range(SIZE):
            x, y = (column - left) / radius, (row - top) / radius
            turned = x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)
            value = (bright if inside(kind, *turned) else dark) + rng.gauss(0, 25)
            pixels.append(min(255, max(0, round(value))))
        rows.append(bytes(pixels))
    return rows


def png(rows):
    def chunk(name, data):
        return (struct.pack('>I', len(data)) + name + data
                + struct.pack('>I', zlib.crc32(name + data)))
    header = struct.pack('>IIBBBBB', SIZE, SIZE, 8, 0, 0, 0, 0)  # 8 bits of grey
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header)
            + chunk(b'IDAT', zlib.compress(b''.join(b'\0' + row for row in rows)))
            + chunk(b'IEND', b''))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit('make_shapes.py: give the folder to write, and the number of pictures if not 2400.')
    folder = pathlib.Path(sys.argv[1])
    sets = {'private': int(sys.argv[2]) if len(sys.argv) == 3 else 2400, 'public': 600, 'new': 10}
    for seed, (name, count) in enumerate(sets.items()):
        rng = random.Random(seed)
        for number in range(count):
            kind = CLASSES[number % len(CLASSES)]
            place = folder / name / ('' if name == 'new' else kind)
            place.mkdir(parents=True, exist_ok=True)
            (place / f'{number:05}.png').write_bytes(png(picture(rng, kind)))


if __name__ == '__main__':
    main()
