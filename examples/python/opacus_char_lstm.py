"""Classification of texts by a character LSTM as in the example of Opacus: one line is changed.

    SORDINO_DATA=folder python examples/python/opacus_char_lstm.py

The texts are those of SST-2. All have one declared length: padded to the longest text of a batch,
one long text would change what is computed for the others.
"""
import argparse
import lzma
import os
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from sordino import opacus  # was: import opacus

PADDING = 256  # behind the 256 bytes


class Sentences(Dataset):
    def __init__(self, pattern, length):
        path = next((Path(os.environ['SORDINO_DATA']) / 'sst2').glob(pattern))
        with lzma.open(path, 'rt', encoding='utf-8') as file:
            next(file)  # the names of the columns
            rows = [line.rstrip('\n').split('\t', 1) for line in file]
        self.rows = [(int(label), text) for label, text in rows]
        self.length = length

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        label, text = self.rows[index]
        codes = list(text.encode())[:self.length]
        codes = [PADDING] * (self.length - len(codes)) + codes
        return torch.tensor(codes), torch.tensor(label)


class CharNNClassifier(nn.Module):
    def __init__(self, embedding_size=64, hidden_size=128, output_size=2):
        super().__init__()
        self.embedding = nn.Embedding(PADDING + 1, embedding_size)
        self.rnn = opacus.layers.DPLSTM(embedding_size, hidden_size, batch_first=True)
        self.out_layer = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        x = self.embedding(x)
        x, _ = self.rnn(x)
        return self.out_layer(x[:, -1, :])


def train(args, model, criterion, optimizer, loader, engine, epoch):
    model.train()
    for x, y in loader:
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    epsilon = engine.accountant.get_epsilon(delta=args.delta)
    print(f'epoch {epoch}: epsilon {epsilon:.2f} at delta {args.delta}')


@torch.no_grad()
def test(model, loader):
    model.eval()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    print(f'test accuracy {100 * correct / len(loader.dataset):.2f} %')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch-size', type=int, default=800)
    parser.add_argument('--length', type=int, default=64)
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--learning-rate', type=float, default=2.0)
    parser.add_argument('--sigma', type=float, default=1.0)
    parser.add_argument('--max-grad-norm', type=float, default=1.5)
    parser.add_argument('--delta', type=float, default=1e-5)
    args = parser.parse_args()

    loader = DataLoader(Sentences('train*', args.length), batch_size=args.batch_size)
    test_loader = DataLoader(Sentences('dev*', args.length), batch_size=800)
    model = CharNNClassifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)

    engine = opacus.PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=args.sigma,
        max_grad_norm=args.max_grad_norm)

    for epoch in range(1, args.epochs + 1):
        train(args, model, criterion, optimizer, loader, engine, epoch)
        test(model, test_loader)


if __name__ == '__main__':
    main()
