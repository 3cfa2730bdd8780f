"""A private model in three lines: first_model.py [FOLDER]

The records are drawn, so this needs no file. The run folder is written to FOLDER, where given.
"""
import shutil
import sys

import torch
import torch.nn.functional as F

import sordino.torch as private

records = torch.randn(2000, 20)
labels = (records[:, :3].sum(dim=1) > 0).long()
train_set = torch.utils.data.TensorDataset(records, labels)

model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)

trainer = private.Trainer(model, optimizer, train_set, epsilon=3, delta=1e-5, epochs=10,
                          batch_size=200, clip=1.0)
for step in trainer:
    step(lambda x, y: F.cross_entropy(model(x), y))

fresh = torch.randn(2000, 20)
right = model(fresh).argmax(dim=1) == (fresh[:, :3].sum(dim=1) > 0).long()
print(f'accuracy {right.float().mean():.3f} on fresh records, epsilon {trainer.epsilon():.4f}')
if len(sys.argv) > 1:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    trainer.save(sys.argv[1])
    print(trainer.statement)
