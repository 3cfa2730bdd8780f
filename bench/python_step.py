#!/usr/bin/env python3
"""A private step from Python beside a step of plain torch and those of Opacus, in one run.

    PYTHONPATH=build/release/python bench/python_step.py cnn-mnist gpt2-small
    PYTHONPATH=build/release/python bench/python_step.py --device cuda --precision bfloat16 gpt2

Ours is a whole step of sordino.torch.Trainer: clipping, charge, noise, update. Opacus' is one of its
engine with the same model, without sampling. Rounds alternate; shown are the median time, the median
of each round's ratio to plain torch, and on a GPU the largest memory.
"""
import argparse
import contextlib
import gc
import operator
import statistics
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import sordino
import sordino.torch as private

warnings.filterwarnings('ignore')


def cnn_mnist():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10))
    return model, (torch.randn(256, 1, 28, 28), torch.arange(256) % 10)


def resnet18(images=32):
    import torchvision
    model = torchvision.models.resnet18(num_classes=10, norm_layer=lambda c: nn.GroupNorm(8, c))
    return model, (torch.randn(images, 3, 32, 32), torch.arange(images) % 10)


def resnet50():
    import torchvision
    model = torchvision.models.resnet50(norm_layer=lambda c: nn.GroupNorm(8, c))
    return model, (torch.randn(64, 3, 224, 224), torch.arange(64))


def vit():
    import torchvision
    return torchvision.models.vit_b_16(), (torch.randn(64, 3, 224, 224), torch.arange(64))


def _words(records, length, vocabulary=1000):
    ids = torch.randint(0, vocabulary, (records, length))
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids)}


def _gpt2(records, length, **config):
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=False, **config))
    batch = _words(records, length)
    return model, dict(batch, labels=batch['input_ids'])


def gpt2_small():
    return _gpt2(32, 64, n_layer=4, n_embd=128, n_head=4, vocab_size=5000)


def gpt2():
    return _gpt2(32, 256)


def bert_tiny():
    import transformers
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    return model, dict(_words(64, 64), labels=torch.arange(64) % 2)


def bert():
    import transformers
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    return model, dict(_words(32, 128), labels=torch.arange(32) % 2)


class _LowRank(nn.Module):
    """What peft puts around a linear layer, for machines that have no peft."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def llama_lora():
    import transformers
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=32000, use_cache=False)).requires_grad_(False)
    for layer in model.model.layers:
        for name in ('q_proj', 'v_proj'):
            setattr(layer.self_attn, name, _LowRank(getattr(layer.self_attn, name), 8))
    batch = _words(8, 512)
    return model, dict(batch, labels=batch['input_ids'])


MODELS = {'cnn-mnist': cnn_mnist, 'resnet18-gn': resnet18, 'gpt2-small': gpt2_small,
          'bert-tiny': bert_tiny, 'resnet50-gn': resnet50, 'vit-b-16': vit, 'gpt2': gpt2,
          'bert-base': bert, 'llama-lora': llama_lora}


def loss_of(model, batch):
    if isinstance(batch, dict):
        return model(**batch).loss
    return F.cross_entropy(model(batch[0]), batch[1])


def made(name, device):
    torch.manual_seed(1)
    model, batch = MODELS[name]()
    to = lambda t: t.to(device)
    batch = {k: to(v) for k, v in batch.items()} if isinstance(batch, dict) else tuple(map(to, batch))
    model = model.to(device).train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    return model, batch, optimizer


def autocast(args):
    if args.precision != 'bfloat16':
        return contextlib.nullcontext()
    return torch.autocast(args.device, dtype=torch.bfloat16)


def plain(name, args):
    model, batch, optimizer = made(name, args.device)
    compiled = torch.compile(model) if args.compile else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(args):
            loss = loss_of(compiled, batch)
        loss.backward()
        optimizer.step()
    return step


def ours(name, args):
    model, batch, optimizer = made(name, args.device)
    keys = list(batch) if isinstance(batch, dict) else None
    columns = list(batch.values()) if keys else list(batch)
    trainer = private.Trainer(model, optimizer, torch.utils.data.TensorDataset(*columns), noise=1,
                              delta=1e-5, sampling='full', steps=10_000, clip=1.0, progress=False,
                              precision=args.precision)
    steps = iter(trainer)

    def step():
        next(steps)(lambda *x: loss_of(model, dict(zip(keys, x)) if keys else x))
    return step


def opacus(mode):
    def make(name, args):
        from opacus import PrivacyEngine
        model, batch, optimizer = made(name, args.device)
        columns = list(batch.values()) if isinstance(batch, dict) else list(batch)
        keys = list(batch) if isinstance(batch, dict) else None
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*columns),
                                             batch_size=len(columns[0]))
        criterion = nn.CrossEntropyLoss()
        given = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0,
                     max_grad_norm=1.0, poisson_sampling=False, grad_sample_mode=mode)
        if mode == 'ghost':
            model, optimizer, criterion, _ = PrivacyEngine().make_private(criterion=criterion,
                                                                          **given)
        else:
            model, optimizer, _ = PrivacyEngine().make_private(**given)

        def step():
            optimizer.zero_grad()
            if keys:
                inputs = {k: v for k, v in batch.items() if k != 'labels'}
                out, target = model(**inputs).logits, batch['labels']
                if out.dim() == 3:
                    out, target = out[:, :-1].flatten(0, 1), target[:, 1:].flatten()
            else:
                out, target = model(batch[0]), batch[1]
            criterion(out, target).backward()
            optimizer.step()
        return step
    return make


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('models', nargs='+', choices=MODELS)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--precision', default='float32', choices=['float32', 'tf32', 'bfloat16'])
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--compile', action='store_true', help='compile the plain model')
    parser.add_argument('--no-opacus', action='store_true')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.precision != 'float32':
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    wait = torch.cuda.synchronize if args.device == 'cuda' else lambda: None
    makers = {'plain': plain, 'ours': ours}
    if not args.no_opacus:
        makers.update({'opacus hooks': opacus('hooks'), 'opacus ghost': opacus('ghost')})
    cuda = args.device == 'cuda'
    for name in args.models:
        steps, first, memory = {}, {}, {}
        for who, make in makers.items():
            gc.collect()
            if cuda:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
            begin = time.perf_counter()
            try:
                step = make(name, args)
                step()
                wait()
            except (Exception, sordino.Error) as error:
                print(f'{name}  {who}: {type(error).__name__}: {str(error)[:150]}', flush=True)
                continue
            first[who] = time.perf_counter() - begin
            for _ in range(2):
                step()
            wait()
            steps[who] = step
            if cuda:
                memory[who] = (torch.cuda.max_memory_allocated() - before) / 2 ** 30
        times = {who: [] for who in steps}
        for _ in range(args.rounds):
            for who, step in steps.items():
                begin = time.perf_counter()
                step()
                wait()
                times[who].append(1e3 * (time.perf_counter() - begin))
        for who, found in times.items():
            ratio = statistics.median(map(operator.truediv, found, times['plain']))
            text = f'{name:12} {who:13} {statistics.median(found):9.2f} ms {ratio:6.2f} x'
            if cuda:
                text += f'  {memory[who]:6.2f} GB {memory[who] / memory["plain"]:5.2f} x'
            print(f'{text}  first {first[who]:.1f} s', flush=True)
        steps = step = None


if __name__ == '__main__':
    main()
