"""Adapters of peft and other models with frozen parameters: gradients equal a loop over records."""
import peft
import pytest
import torch
import transformers

import loop
import models
import sordino
import sordino.torch as private
from sordino.transformers import Trainer
from test_transformers import Grads, arguments, bert, mean_of_clipped, records


def wrapped(name, kind, **config):
    """A model of models.py below an adapter."""
    def make():
        model, _, batch = models.MODELS[name]()
        model = peft.get_peft_model(model, getattr(peft, kind)(**config))
        return model, lambda batch: model(**batch).loss, batch
    return make


def last_layer():
    model, loss, batch = models.MODELS['bert']()
    model.requires_grad_(False)
    model.classifier.requires_grad_(True)
    return model, loss, batch


MADE = {name: models.MODELS[name] for name in (
    'lora gpt2', 'lora llama', 'lora bert', 'ia3 bert', 'prompt gpt2', 'bitfit bert')}
ALL = dict(r=2, target_modules='all-linear', lora_dropout=0.)
MADE.update({
    'lora as it starts': wrapped('llama', 'LoraConfig', **ALL),
    'lora with a trained head': wrapped('bert', 'LoraConfig', task_type='SEQ_CLS',
                                        init_lora_weights=False, **ALL),
    'lora of the embedding': wrapped('llama', 'LoraConfig', r=2, lora_dropout=0.,
                                     target_modules=['embed_tokens', 'q_proj'],
                                     init_lora_weights=False),
    'dora': wrapped('llama', 'LoraConfig', use_dora=True, init_lora_weights=False, **ALL),
    'rank-stabilised lora': wrapped('gpt2', 'LoraConfig', use_rslora=True,
                                    init_lora_weights=False, **ALL),
    'prefix tuning': wrapped('gpt2', 'PrefixTuningConfig', task_type='CAUSAL_LM',
                             num_virtual_tokens=3),
    'p-tuning': wrapped('gpt2', 'PromptEncoderConfig', task_type='CAUSAL_LM',
                        num_virtual_tokens=3, encoder_hidden_size=8),
    'prompt of a classifier': wrapped('bert', 'PromptTuningConfig', task_type='SEQ_CLS',
                                      num_virtual_tokens=3),
    'last layer': last_layer,
})


@pytest.mark.parametrize('name', MADE)
def test_clipped_sums_equal_a_loop_over_records(name):
    torch.manual_seed(5)
    model, loss, batch = MADE[name]()
    models.without_dropout(model)
    gradients = loop.gradients(model, loss, batch)
    norms = sorted(loop.norm(gradient) for gradient in gradients)
    clip = norms[len(norms) // 2]  # above some, below others
    factors = [min(1, clip / loop.norm(gradient)) for gradient in gradients]
    expected = [sum(factor * part for factor, part in zip(factors, parts))
                for parts in zip(*gradients)]
    found = private.clipped_sum(model, loss, batch, clip=clip)
    trained = [key for key, value in model.named_parameters() if value.requires_grad]
    assert list(found) == trained
    assert any(not value.requires_grad for value in model.parameters())
    error = sum(((found[key] - part) ** 2).sum() for key, part in zip(trained, expected))
    whole = sum((part ** 2).sum() for part in expected)
    assert whole > 0 and (error / whole) ** .5 < 1e-5


def test_adapters_that_draw_whether_they_are_used_are_refused():
    """LoHa and its kin draw a number in each call, and branch on it."""
    model, loss, batch = wrapped('llama', 'LoHaConfig', r=2, target_modules=['q_proj', 'v_proj'],
                                 init_weights=False)()
    with pytest.raises(sordino.Error, match='a branch or a loop'):
        private.clipped_sum(model, loss, batch, clip=1.)


def adapted():
    return peft.get_peft_model(bert(), peft.LoraConfig(
        task_type='SEQ_CLS', r=2, target_modules=['query', 'value'], lora_dropout=0.,
        init_lora_weights=False))


def test_a_step_of_lora_is_the_mean_of_clipped_gradients(tmp_path):
    model, seen = adapted(), Grads()
    model.train()
    expected = mean_of_clipped(model, lambda batch: model(**batch).loss, records(12), .05)
    made = Trainer(model, arguments(tmp_path, max_steps=1, per_device_train_batch_size=12),
                   train_dataset=records(12), noise=1e-3, delta=1e-5, clip=.05, sampling='full',
                   callbacks=[seen])
    made.train()
    scale = max(part.abs().max() for part in expected)
    assert len(seen.seen[0]) == len(expected)
    for found, part in zip(seen.seen[0], expected):
        assert (found - part).abs().max() < .05 * scale


def test_frozen_parameters_stay_and_the_adapter_is_saved(tmp_path):
    model = adapted()
    before = {name: value.clone() for name, value in model.named_parameters()}
    made = Trainer(model, arguments(tmp_path, learning_rate=.1), train_dataset=records(40),
                   epsilon=8, delta=1e-5)
    made.train()
    for name, value in model.named_parameters():
        assert torch.equal(before[name], value) != value.requires_grad, name
    made.save_model(str(tmp_path / 'mine'))
    assert (tmp_path / 'mine' / 'statement.txt').exists()
    again = peft.PeftModel.from_pretrained(bert(), tmp_path / 'mine')
    state = peft.get_peft_model_state_dict(model)
    for name, value in peft.get_peft_model_state_dict(again).items():
        assert torch.equal(value, state[name])
    assert isinstance(again.base_model.model, transformers.BertForSequenceClassification)
