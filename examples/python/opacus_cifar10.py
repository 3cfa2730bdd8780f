"""CIFAR-10 as in the example of Opacus, in parts that fit into memory: its imports are changed.

    SORDINO_DATA=folder python examples/python/opacus_cifar10.py
"""
import argparse
import lzma
import os
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from sordino.opacus import PrivacyEngine  # was: from opacus import ...
from sordino.opacus.utils.batch_memory_manager import BatchMemoryManager  # was: from opacus.utils


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 32, kernel_size=3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(32, 64, kernel_size=3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(64, 128, kernel_size=3, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(128, 10))


def cifar10(pattern):
    rows = []
    for path in sorted((Path(os.environ['SORDINO_DATA']) / 'cifar-10').glob(pattern)):
        rows.append(np.frombuffer(lzma.open(path).read(), np.uint8).reshape(-1, 3073))
    rows = torch.from_numpy(np.concatenate(rows))
    images = rows[:, 1:].reshape(-1, 3, 32, 32) / 255
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
    deviation = torch.tensor([0.2023, 0.1994, 0.2010]).view(3, 1, 1)
    return TensorDataset((images - mean) / deviation, rows[:, 0].long())


def train(args, model, loader, optimizer, engine, epoch):
    model.train()
    criterion = nn.CrossEntropyLoss()
    with BatchMemoryManager(data_loader=loader, optimizer=optimizer,
                            max_physical_batch_size=args.physical_batch_size) as part_loader:
        for images, target in part_loader:
            output = model(images)
            loss = criterion(output, target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    epsilon = engine.accountant.get_epsilon(delta=args.delta)
    print(f'epoch {epoch}: epsilon {epsilon:.2f} at delta {args.delta}')


@torch.no_grad()
def test(model, loader):
    model.eval()
    correct = sum((model(images).argmax(1) == target).sum().item() for images, target in loader)
    print(f'test accuracy {100 * correct / len(loader.dataset):.2f} %')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch-size', type=int, default=1000)
    parser.add_argument('--physical-batch-size', type=int, default=128)
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--lr', type=float, default=0.5)
    parser.add_argument('--epsilon', type=float, default=8.0)
    parser.add_argument('--max-grad-norm', type=float, default=1.0)
    parser.add_argument('--delta', type=float, default=1e-5)
    args = parser.parse_args()

    loader = DataLoader(cifar10('data_batch_*'), batch_size=args.batch_size)
    test_loader = DataLoader(cifar10('test_batch*'), batch_size=256)
    engine = PrivacyEngine()
    model = engine.get_compatible_module(convnet())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, target_epsilon=args.epsilon,
        target_delta=args.delta, epochs=args.epochs, max_grad_norm=args.max_grad_norm)
    print(f'noise multiplier {optimizer.noise_multiplier:.3f}')

    for epoch in range(1, args.epochs + 1):
        train(args, model, loader, optimizer, engine, epoch)
        test(model, test_loader)
        scheduler.step()


if __name__ == '__main__':
    main()
