"""A small BERT that learns from nothing whether a sentence is positive (SST-2).

    SORDINO_DATA=FOLDER python SCRIPT [STEPS]

A word becomes a number by a hash, so there is no vocabulary that would tell about the sentences,
and each sentence is padded to the same length.
"""
import lzma
import os
import sys
import tempfile
import zlib

import transformers
from sordino.transformers import Trainer

WORDS, LENGTH = 2048, 24
PAD, BEGIN = 0, 1


def record(line):
    label, sentence = line.rstrip('\n').split('\t')
    words = [2 + zlib.crc32(word.encode()) % (WORDS - 2) for word in sentence.split()]
    ids = [BEGIN] + words[:LENGTH - 1]
    padding = LENGTH - len(ids)
    return {'input_ids': ids + [PAD] * padding,
            'attention_mask': [1] * len(ids) + [0] * padding, 'labels': int(label)}


def sentences(part):
    with lzma.open(f'{os.environ["SORDINO_DATA"]}/sst2/{part}.tsv.xz', 'rt') as lines:
        next(lines)  # the names of the columns
        return [record(line) for line in lines]


def accuracy(results):
    return {'accuracy': float((results.predictions.argmax(-1) == results.label_ids).mean())}


model = transformers.BertForSequenceClassification(transformers.BertConfig(
    vocab_size=WORDS, hidden_size=32, num_hidden_layers=1, num_attention_heads=1,
    intermediate_size=64, max_position_embeddings=LENGTH, initializer_range=0.15,
    hidden_dropout_prob=0, attention_probs_dropout_prob=0))
arguments = transformers.TrainingArguments(
    tempfile.TemporaryDirectory().name, per_device_train_batch_size=2048,
    per_device_eval_batch_size=512,
    num_train_epochs=8, max_steps=int(sys.argv[1]) if len(sys.argv) > 1 else -1,
    learning_rate=0.01, eval_strategy='epoch', logging_strategy='epoch', save_strategy='no',
    report_to=[])
trainer = Trainer(
    model, arguments, train_dataset=sentences('train'), eval_dataset=sentences('dev'),
    compute_metrics=accuracy, epsilon=3, delta=1e-5)
trainer.train()
print(f'accuracy {trainer.evaluate()["eval_accuracy"]:.3f}')
