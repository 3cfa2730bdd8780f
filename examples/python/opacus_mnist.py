"""MNIST as in the example of Opacus: one line is changed.

    SORDINO_DATA=folder python examples/python/opacus_mnist.py
"""
import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from sordino import opacus  # was: import opacus


class SampleConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 8, 2, padding=3)
        self.conv2 = nn.Conv2d(16, 32, 4, 2)
        self.fc1 = nn.Linear(32 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2, 1)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2, 1)
        x = x.view(-1, 32 * 4 * 4)
        return self.fc2(F.relu(self.fc1(x)))


def read(name):
    with gzip.open(Path(os.environ['SORDINO_DATA']) / 'mnist' / name) as file:
        content = file.read()
    # A zero, the type, the number of dimensions, and each of them in four bytes.
    sizes = np.frombuffer(content, '>i4', content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes).copy()


def mnist(part):
    images = torch.from_numpy(read(f'{part}-images-idx3-ubyte.gz')).unsqueeze(1) / 255
    labels = torch.from_numpy(read(f'{part}-labels-idx1-ubyte.gz')).long()
    return TensorDataset((images - 0.1307) / 0.3081, labels)


def train(args, model, loader, optimizer, engine, epoch):
    model.train()
    criterion = nn.CrossEntropyLoss()
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
    epsilon = engine.get_epsilon(delta=args.delta)
    print(f'epoch {epoch}: epsilon {epsilon:.2f} at delta {args.delta}')


@torch.no_grad()
def test(model, loader):
    model.eval()
    correct = sum((model(data).argmax(1) == target).sum().item() for data, target in loader)
    print(f'test accuracy {100 * correct / len(loader.dataset):.2f} %')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch-size', type=int, default=256)
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--lr', type=float, default=0.5)
    parser.add_argument('--sigma', type=float, default=1.0)
    parser.add_argument('--max-grad-norm', type=float, default=1.0)
    parser.add_argument('--delta', type=float, default=1e-5)
    args = parser.parse_args()

    loader = DataLoader(mnist('train'), batch_size=args.batch_size)
    test_loader = DataLoader(mnist('t10k'), batch_size=1024)
    model = SampleConvNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    engine = opacus.PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=args.sigma,
        max_grad_norm=args.max_grad_norm)

    for epoch in range(1, args.epochs + 1):
        train(args, model, loader, optimizer, engine, epoch)
        test(model, test_loader)


if __name__ == '__main__':
    main()
