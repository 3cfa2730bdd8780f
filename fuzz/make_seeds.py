#!/usr/bin/env python3
"""Writes a few small valid inputs for each fuzzer, from which libFuzzer starts.

    make_seeds.py FOLDER    FOLDER/<fuzzer>/<number>

Standard library only. Formats whose first byte chooses options for the fuzzer get several.
"""

import base64
import gzip
import json
import lzma
import struct
import sys
import zlib
from pathlib import Path

# 9 x 9 pixels each: colour, progressive colour, grey.
JPEGS = [base64.b64decode(text) for text in (
    '/9j/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5'
    'moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk'
    'pKSkpKT/wAARCAAJAAkDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAQT/xAAjEAAABAMJAAAAAAAAAAAAAA'
    'AAAQIDBAXRExQhMlJUcaPB/8QAFQEBAQAAAAAAAAAAAAAAAAAAAAH/xAAXEQADAQAAAAAAAAAAAAAAAAAAAREh/9oA'
    'DAMBAAIRAxEAPwBYS3LoS1URGs8G06joJr/Ndx1poKZxmguF+ABO6Q//2Q==',
    '/9j/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5'
    'moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk'
    'pKSkpKT/wgARCAAJAAkDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAVAQEBAAAAAAAAAAAAAAAAAA'
    'AAAf/aAAwDAQACEAMQAAABToT/xAAaEAABBQEAAAAAAAAAAAAAAAADAAECEBES/9oACAEBAAEFAmwceyo1f//EABQR'
    'AQAAAAAAAAAAAAAAAAAAAAD/2gAIAQMBAT8Bf//EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQIBAT8Bf//EABoQAA'
    'EFAQAAAAAAAAAAAAAAAAACEBEykaH/2gAIAQEABj8CnC3BDf/EABwQAAEDBQAAAAAAAAAAAAAAAAABEDERQVGB8P/a'
    'AAgBAQABPyFNSmzJ0QS2b//aAAwDAQACAAMAAAAQp//EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQMBAT8Qf//EAB'
    'cRAQADAAAAAAAAAAAAAAAAAAEAESH/2gAIAQIBAT8QG9n/xAAdEAABAgcAAAAAAAAAAAAAAAABANEQESFRocHw/9oA'
    'CAEBAAE/EJTgTpcMuzCwdYf/2Q==',
    '/9j/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5'
    'moq6T/wAALCAAJAAkBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABsQAAIBBQAAAAAAAAAAAAAAAAAEBRUiMUFi'
    '/9oACAEBAAA/ADrRuLRlN5HraGH/2Q==',
)]


def idx(kind, shape, values):
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f'>{len(shape)}I', *shape) + values


def npy(descr, shape, values, major=1, fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    width = 2 if major == 1 else 4
    header = header.ljust(63 - (8 + width) % 64) + '\n'
    return (b'\x93NUMPY' + bytes([major, 0]) + len(header).to_bytes(width, 'little') +
            header.encode() + values)


def png(depth, colour, rows, width, extra=b'', interlace=0):
    def chunk(name, data):
        body = name + data
        return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))
    raw = b''.join(b'\0' + row for row in rows)
    size = struct.pack('>IIBBBBB', width, len(rows), depth, colour, 0, 0, interlace)
    palette = chunk(b'PLTE', extra) if extra else b''
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', size) + palette +
            chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))


def safetensors(tensors, metadata=None):
    header, place = {}, 0
    if metadata:
        header['__metadata__'] = metadata
    data = b''
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape,
                        'data_offsets': [place, place + len(values)]}
        place += len(values)
        data += values
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + data


def with_options(inputs, options):
    return [bytes([option]) + data for data in inputs for option in options]


def seeds():
    text = b'a line of text, again and again\n' * 20
    xz = lzma.compress(text, preset=0)
    row = bytes(i % 251 for i in range(3072))
    pngs = [png(8, 2, [bytes(range(12))] * 3, 4), png(8, 0, [bytes(range(4))] * 3, 4),
            png(1, 3, [b'\x50'] * 3, 4, extra=bytes(6)), png(16, 4, [bytes(range(16))] * 3, 4),
            png(8, 6, [bytes(range(16))] * 3, 4), png(8, 0, [b'\7'], 1, interlace=1)]
    table = (b'age,city,sick,id,other\n31,Bern,no,u1,x\n"99","Basel",yes,u2,"a ""b"", c"\r\n'
             b'5.5e1,Thun,no,u1,\n')
    sentences = b'label\tsentence\n0\ta good film\n1\tbad bad  film\n'
    return {
        'decompress': [text, gzip.compress(text), gzip.compress(text) + gzip.compress(b'x'),
                       gzip.compress(b''), xz, xz + xz, xz + bytes(4)],
        'idx': [idx(8, [2, 2, 2], bytes(8)), idx(9, [3], bytes(3)), idx(11, [2, 1], bytes(4)),
                idx(12, [1, 2], bytes(8)), idx(13, [2], bytes(8)), idx(14, [1, 1], bytes(8))],
        'cifar': with_options([b'\1' + row], [0]) + with_options([b'\1\2' + row], [1, 2]),
        'npy': [npy('|u1', (2, 3), bytes(6)), npy('<f4', (2,), bytes(8), 2),
                npy('>i8', (), bytes(8), 3), npy('<u2', (2, 2), bytes(8), 1, True),
                npy('|b1', (0, 4), b''), npy('<f2', (3, 1), bytes(6)), npy('|O', (1,), b'x')],
        'image': with_options(pngs + JPEGS, [0, 1]),
        'table': with_options([table, table.replace(b',', b'\t'), b'sick,age,city,id\nno,1,Bern,\n'],
                              [0, 1, 2, 6]),
        'schema': [b'[table]\nheader = false\ndelimiter = "tab"\nmissing = ["?"]\nrows-per-user = 3\n'
                   b'[[column]]\nname = "age"\nkind = "numeric"\nlow = 0\nhigh = 120\n'
                   b'[[column]]\nname = "sick"\nkind = "label"\nvalues = ["no", "a|\\"b"]\n'
                   b'[[column]]\nname = "id"\nkind = "user"\n'],
        'columns': [b'age:numeric:0:120\ncity:categorical:Bern|Basel|*\nsick:label:no|yes\nid:user',
                    b'x:numeric:-1e3:1.5', b'c:categorical:*\nl:label:a'],
        'text': with_options([sentences, b'a good film\t0\nbad\t1\n', b'bare sentence\n'],
                             [0, 1, 2, 3]),
        'safetensors': [safetensors({}),
                        safetensors({'a': ('F32', [2, 1], bytes(8)), 'b': ('U8', [3], bytes(3))},
                                    {'format': 'pt'}),
                        safetensors({'w': ('BF16', [], bytes(2)), 'e': ('I64', [0, 3], b'')})],
        'schedule': [b'constant', b'linear:0.5', b'cosine:0', b'exponential:1e-3', b'step:10:0.5',
                     b'warmup:100,cosine:0'],
        'event': [b'add-remove: 10000*poisson(0.01, gaussian(4))',
                  b'replace-one: compose(laplace(2), 3*approximate(0.5, 1e-07))',
                  b'zero-out: parallel(pure(1), zcdp(0.5), none)',
                  b'add-remove: truncated-poisson(1000, 0.1, 200, gaussian(1))',
                  b'add-remove: 10*allocation(100, gaussian(2))',
                  b'add-remove: best-tnb(-0.5, 0.1, 3*gaussian(2))',
                  b'add-remove: mixture-gaussian(1, 0, 0.5, 1, 0.5)',
                  b'replace-one: fixed(0.1, randomized-response(0.5, 4))',
                  b'add-remove: compose(tree(2, 16), discrete-gaussian(3, 1), exponential(1))'],
    }


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, inputs in seeds().items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (folder / str(number)).write_bytes(data)


if __name__ == '__main__':
    main()
