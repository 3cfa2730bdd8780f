#!/usr/bin/env python3
"""The tangent kernel of cnn-mnist, whole and of each layer, beside torch.func.

  bench/peers/tangent_kernel.py build/release/bin/tangent_kernel_figure [--examples 512]

Runs ours and vmap of jacrev in processes of their own, in turn, and prints seconds and the memory
beyond what was in use before. Needs Python with torch (the environment of bench/peers/step.py).
"""
import argparse
import subprocess
import sys
import time

LAYERS = [['0.weight', '0.bias'], ['3.weight', '3.bias'], ['7.weight', '7.bias'],
          ['9.weight', '9.bias']]


def megabytes(key):
    with open('/proc/self/status', encoding='ascii') as status:
        for line in status:
            if line.startswith(key + ':'):
                return int(line.split()[1]) / 1024
    return 0


def peer(examples):
    import torch
    from torch import nn
    from torch.func import functional_call, jacrev, vmap
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 16, 8, 2, 3), nn.Tanh(), nn.MaxPool2d(2, 1),
                          nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(),
                          nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10))
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    images = torch.randn(examples, 1, 28, 28)

    def outputs(values, x):
        return functional_call(model, values, (x.unsqueeze(0),)).squeeze(0)
    outputs(parameters, images[0])
    before = megabytes('VmRSS')
    begin = time.monotonic()
    jacobian = vmap(jacrev(outputs), (None, 0))(parameters, images)
    whole = None
    for layer in LAYERS:
        kernel = None
        for name in layer:
            rows = jacobian[name].flatten(2).flatten(0, 1)  # [examples * outputs, entries]
            product = rows @ rows.T
            kernel = product if kernel is None else kernel + product
        whole = kernel if whole is None else whole + kernel
    seconds = time.monotonic() - begin
    print(f"seconds {seconds:.3f} megabytes {megabytes('VmHWM') - before:.0f} "
          f'threads {torch.get_num_threads()} trace {whole.trace().item():.6g}')


def measure(words):
    answer = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(answer[1]), float(answer[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--examples', type=int, default=512)
    parser.add_argument('--runs', type=int, default=3)
    options = parser.parse_args()
    if options.program == 'peer':
        return peer(options.examples)
    ours, theirs = [], []
    for _ in range(options.runs):
        ours.append(measure([options.program, str(options.examples)]))
        theirs.append(measure([sys.executable, __file__, 'peer', '--examples',
                               str(options.examples)]))
    for name, runs in (('sordino', ours), ('torch.func', theirs)):
        print(f'{name:10} ' + '  '.join(f'{s:.2f} s {m:.0f} MB' for s, m in runs))
    print(f'{min(s for s, _ in theirs) / min(s for s, _ in ours):.1f} times faster (goal 3), '
          f'{max(m for _, m in ours) / max(m for _, m in theirs):.2f} of the memory (goal 0.1)')


if __name__ == '__main__':
    main()
