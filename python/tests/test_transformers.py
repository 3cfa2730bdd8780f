"""sordino.transformers: the loop of transformers with private steps."""
import math
import os

import pytest
import torch
import transformers

import loop
import sordino
from sordino.transformers import Trainer

LENGTH = 8


def records(count, seed=1):
    random = torch.Generator().manual_seed(seed)
    made = []
    for i in range(count):
        ids = torch.randint(5, 40, (LENGTH,), generator=random)
        mask = (torch.arange(LENGTH) < 3 + i % 6).long()
        made.append({'input_ids': (ids * mask).tolist(), 'attention_mask': mask.tolist(),
                     'labels': i % 2})
    return made


def bert(**more):
    torch.manual_seed(3)
    return transformers.BertForSequenceClassification(transformers.BertConfig(**{
        'vocab_size': 40, 'hidden_size': 16, 'num_hidden_layers': 1, 'num_attention_heads': 2,
        'intermediate_size': 24, 'max_position_embeddings': LENGTH, 'hidden_dropout_prob': 0,
        'attention_probs_dropout_prob': 0, **more}))


def arguments(folder, **more):
    return transformers.TrainingArguments(str(folder), **{
        'per_device_train_batch_size': 10, 'max_steps': 4, 'report_to': [], 'use_cpu': True,
        'disable_tqdm': True, 'save_strategy': 'no', 'logging_steps': 1, **more})


def trainer(folder, model=None, count=40, settings={}, kind=Trainer, **more):
    keywords = {name: more.pop(name) for name in list(more)
                if name in ('callbacks', 'data_collator', 'eval_dataset', 'train_dataset',
                            'processing_class', 'compute_loss_func', 'optimizers', 'max_length')}
    return kind(model or bert(), arguments(folder, **more),
                **{'train_dataset': records(count), **keywords},
                **{'epsilon': 8, 'delta': 1e-5, **settings})


class Grads(transformers.TrainerCallback):
    """What each update is made of."""

    def __init__(self):
        self.seen = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **more):
        self.seen.append([p.grad.clone() for p in model.parameters() if p.requires_grad])


def mean_of_clipped(model, loss, data, clip):
    """By a loop over the records."""
    batch = {name: torch.tensor([record[name] for record in data]) for name in data[0]}
    sums = None
    for gradient in loop.gradients(model, loss, batch):
        factor = min(1, clip / loop.norm(gradient))
        parts = [part * factor for part in gradient]
        sums = parts if sums is None else [a + b for a, b in zip(sums, parts)]
    return [part / len(data) for part in sums]


def check_update(folder, model, loss, clip=.05, count=12, **more):
    """One step over all records with hardly any noise is the mean of clipped gradients."""
    model.train()
    expected = mean_of_clipped(model, loss, records(count), clip)
    seen = Grads()
    made = trainer(folder, model, count, settings={
        'epsilon': None, 'noise': 1e-3, 'clip': clip, 'sampling': 'full'}, callbacks=[seen],
        max_steps=1, per_device_train_batch_size=count, **more)
    made.train()
    assert len(seen.seen) == 1
    scale = max(part.abs().max() for part in expected)
    for found, part in zip(seen.seen[0], expected):
        assert (found - part).abs().max() < .05 * scale
    return made


def test_a_step_is_the_mean_of_clipped_gradients(tmp_path):
    model = bert()
    check_update(tmp_path, model, lambda batch: model(**batch).loss)


def test_accumulated_batches_are_one_batch(tmp_path):
    made = trainer(tmp_path, settings={'epsilon': None, 'noise': 1., 'clip': 1.},
                   per_device_train_batch_size=5, gradient_accumulation_steps=4)
    made.train()
    assert made.run.plan == 'add-remove: 4*poisson(0.5, gaussian(1))'
    assert made.run.steps_done == made.state.global_step == 4


def test_label_smoothing_is_part_of_the_loss(tmp_path):
    model = bert()
    smooth = transformers.trainer_pt_utils.LabelSmoother(epsilon=.3)
    check_update(tmp_path, model,
                 lambda batch: smooth(model(**{k: v for k, v in batch.items() if k != 'labels'}),
                                      batch['labels']), label_smoothing_factor=.3)


def test_an_override_of_compute_loss_is_the_loss(tmp_path):
    class Mine(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            assert num_items_in_batch is None and len(inputs['labels']) == 1
            return model(**inputs).logits.square().mean()

    model = bert()
    check_update(tmp_path, model,
                 lambda batch: model(**{k: v for k, v in batch.items()
                                        if k != 'labels'}).logits.square().mean(), kind=Mine)


def test_a_loss_function_is_the_loss(tmp_path):
    model = bert()

    def loss(outputs, labels, num_items_in_batch=None):
        assert num_items_in_batch is None
        return torch.nn.functional.cross_entropy(outputs['logits'] * 2, labels)

    check_update(tmp_path, model, lambda batch: loss(
        model(**{k: v for k, v in batch.items() if k != 'labels'}), batch['labels']),
        compute_loss_func=loss)


def test_records_are_clipped_at_max_grad_norm_without_clip(tmp_path):
    made = trainer(tmp_path, max_grad_norm=.25)
    made.train()
    assert 'flat clipping at 0.25' in made.run.statement
    made = trainer(tmp_path, max_grad_norm=.25, settings={'clip': .5})
    made.train()
    assert 'flat clipping at 0.5' in made.run.statement


def test_the_noised_mean_is_not_clipped_again(tmp_path):
    seen = Grads()
    made = trainer(tmp_path, max_grad_norm=.01, settings={'epsilon': None, 'noise': 10000.},
                   callbacks=[seen], max_steps=1)
    made.train()
    assert torch.sqrt(sum((part ** 2).sum() for part in seen.seen[0])) > 1


def test_epochs_are_those_of_transformers(tmp_path):
    class Counted(transformers.TrainerCallback):
        counts = {}

        def __getattribute__(self, name):
            if name.startswith('on_'):
                counts = type(self).counts
                counts[name] = counts.get(name, 0) + 1
            return super().__getattribute__(name)

    made = trainer(tmp_path, callbacks=[Counted()], max_steps=-1, num_train_epochs=2.5,
                   per_device_train_batch_size=12, save_strategy='epoch', eval_strategy='epoch',
                   eval_dataset=records(6, seed=2))
    output = made.train()
    assert output.global_step == made.run.steps == made.run.steps_done == 10
    counts = Counted.counts
    assert counts['on_train_begin'] == counts['on_train_end'] == 1
    assert counts['on_epoch_begin'] == counts['on_epoch_end'] == 3
    assert counts['on_step_begin'] == counts['on_step_end'] == counts['on_optimizer_step'] == 10
    assert counts['on_evaluate'] == counts['on_save'] == 3
    assert counts['on_log'] == 10 + 3 + 1


def test_the_learning_rate_follows_the_schedule_of_transformers(tmp_path):
    made = trainer(tmp_path, learning_rate=.4, lr_scheduler_type='linear')
    made.train()
    rates = [row['learning_rate'] for row in made.state.log_history if 'learning_rate' in row]
    assert rates == pytest.approx([.4, .3, .2, .1])


def test_logs_hold_epsilon_and_no_training_loss(tmp_path):
    made = trainer(tmp_path, eval_dataset=records(6, seed=2), eval_strategy='steps', eval_steps=2)
    output = made.train()
    steps = [row for row in made.state.log_history if 'learning_rate' in row]
    spent = [row['epsilon'] for row in steps]
    assert len(spent) == 4 and spent == sorted(spent) and 0 < spent[0] and spent[-1] <= 8
    assert spent[-1] == made.epsilon()
    assert not any({'loss', 'train_loss'} & set(row) for row in made.state.log_history)
    assert any('eval_loss' in row for row in made.state.log_history)
    assert math.isnan(output.training_loss) and 'train_loss' not in output.metrics


def test_callbacks_see_no_record(tmp_path):
    seen = []

    class Loader(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, train_dataloader=None, **more):
            seen.extend(train_dataloader)

    trainer(tmp_path, callbacks=[Loader()]).train()
    assert seen and all(batch == {} for batch in seen)


def test_a_model_is_saved_with_its_statement(tmp_path):
    made = trainer(tmp_path)
    made.train()
    made.save_model(str(tmp_path / 'mine'))
    assert (tmp_path / 'mine' / 'statement.txt').read_text() == made.run.statement
    assert 'Epsilon is 8' in made.run.statement
    again = transformers.BertForSequenceClassification.from_pretrained(tmp_path / 'mine')
    assert torch.equal(again.classifier.weight, made.model.classifier.weight)


@pytest.mark.parametrize('name, value', [
    ('fp16', True), ('deepspeed', {'zero_optimization': {}}), ('fsdp', 'full_shard'),
    ('parallelism_config', object()), ('_n_gpu', 2), ('auto_find_batch_size', True),
    ('train_sampling_strategy', 'group_by_length'), ('train_sampling_strategy', 'sequential'),
    ('optim', 'lomo'), ('optim', 'galore_adamw_layerwise'), ('torch_compile', True),
    ('use_liger_kernel', True), ('include_num_input_tokens_seen', 'all'),
    ('debug', ['underflow_overflow']), ('skip_memory_metrics', False)])
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path, name, value):
    args = arguments(tmp_path)
    args.n_gpu  # sets up the device
    setattr(args, name, value)
    word = {'_n_gpu': 'GPU', 'skip_memory_metrics': 'memory metrics'}.get(name, name)
    with pytest.raises(sordino.Error, match=word):
        Trainer(bert(), args, train_dataset=records(4), epsilon=8, delta=1e-5)


@pytest.mark.parametrize('name, said', [
    ('epochs', 'num_train_epochs'), ('steps', 'max_steps'),
    ('batch', 'per_device_train_batch_size'), ('batch_size', 'per_device_train_batch_size'),
    ('workers', 'dataloader_num_workers')])
def test_what_training_arguments_say_is_not_a_setting(tmp_path, name, said):
    with pytest.raises(sordino.Error, match=said):
        trainer(tmp_path, settings={name: 3})


def test_an_unknown_setting_is_refused(tmp_path):
    with pytest.raises(sordino.Error, match='epsilom'):
        trainer(tmp_path, settings={'epsilom': 3}).train()


def test_a_budget_is_needed(tmp_path):
    with pytest.raises(sordino.Error, match='epsilon'):
        trainer(tmp_path, settings={'epsilon': None}).train()


def test_training_records_are_no_evaluation_data(tmp_path):
    data = records(20)
    with pytest.raises(sordino.Error, match='evaluate on public data'):
        trainer(tmp_path, train_dataset=data, eval_dataset=data)
    made = trainer(tmp_path, train_dataset=data, eval_dataset=records(4))
    for ask in (made.evaluate, made.predict):
        with pytest.raises(sordino.Error, match='evaluate on public data'):
            ask(data)


def test_a_search_is_refused(tmp_path):
    with pytest.raises(sordino.Error, match='best of several private runs'):
        trainer(tmp_path).hyperparameter_search()


def test_a_second_run_without_a_ledger_is_refused(tmp_path):
    made = trainer(tmp_path, max_steps=1)
    made.train()
    with pytest.raises(sordino.Error, match='name a ledger'):
        made.train()


def test_bfloat16_is_taken(tmp_path):
    made = trainer(tmp_path, bf16=True)
    made.train()
    assert made.run.steps_done == 4


def test_the_number_of_steps_follows_from_what_is_declared(tmp_path):
    """Not from the data: a neighbour has one record more."""
    for count in (40, 41):
        made = trainer(tmp_path, count=count, max_steps=-1, num_train_epochs=1,
                       settings={'records': 40})
        made.train()
        assert made.run.steps == 4 and made.run.plan.startswith('add-remove: 4*poisson(0.25')


class Padding:
    """A tokenizer, as far as a collator needs it."""
    padding_side = 'right'
    model_input_names = ['input_ids', 'attention_mask']
    pad_token_id = 0
    deprecation_warnings = {}

    def pad(self, rows, padding=True, max_length=None, pad_to_multiple_of=None,
            return_tensors=None, **more):
        length = max_length if padding == 'max_length' else max(len(r['input_ids']) for r in rows)
        out = {name: torch.tensor([list(row[name]) + [0] * (length - len(row[name]))
                                   for row in rows]) for name in ('input_ids', 'attention_mask')}
        return transformers.BatchEncoding(
            {**out, 'labels': torch.tensor([row['labels'] for row in rows])})


def ragged(count):
    return [{'input_ids': [5] * (3 + i % 4), 'attention_mask': [1] * (3 + i % 4), 'labels': i % 2}
            for i in range(count)]


def test_padding_to_the_longest_record_is_refused(tmp_path):
    made = trainer(tmp_path, train_dataset=ragged(20),
                   data_collator=transformers.DataCollatorWithPadding(Padding()))
    with pytest.raises(sordino.Error, match='max_length'):
        made.train()


def test_a_declared_max_length_pads_each_record_alone(tmp_path):
    seen = []

    class Mine(Trainer):
        def compute_loss(self, model, inputs, **more):
            seen.append(tuple(inputs['input_ids'].shape))
            return super().compute_loss(model, inputs, **more)

    made = trainer(tmp_path, train_dataset=ragged(20), kind=Mine, max_length=7, max_steps=2,
                   data_collator=transformers.DataCollatorWithPadding(Padding()))
    made.train()
    assert set(seen) == {(1, 7)}
    with pytest.raises(sordino.Error, match='does not pad'):
        trainer(tmp_path, max_length=7).train()


def test_columns_that_the_model_does_not_know_are_left_out(tmp_path):
    data = [{**record, 'name': 'somebody', 'age': 3.} for record in records(20)]
    made = trainer(tmp_path, train_dataset=data, max_steps=1)
    made.train()
    assert made.run.steps_done == 1


def test_an_unknown_seed_masks_the_records(tmp_path):
    """transformers seeds with a known number; what a collator draws must not follow from it."""
    import random
    drawn = []
    for _ in range(2):
        trainer(tmp_path, max_steps=1).train()
        drawn.append(random.random())
    assert drawn[0] != drawn[1]


def make_ledger(path):
    """A ledger for up to 20 at 1e-5, made by the program of the build."""
    import pathlib
    import shutil
    import subprocess

    import sordino._core
    program = os.environ.get('SORDINO_PROGRAM') or shutil.which('sordino') or next(
        (str(place) for place in (
            pathlib.Path(sordino._core.__file__).parents[2] / 'bin' / 'sordino',
            pathlib.Path(sordino._core.__file__).parent / 'bin' / 'sordino') if place.exists()),
        None)
    if program is None:
        pytest.skip('the program `sordino` is not there')
    subprocess.run([program, 'ledger', 'init', str(path), '--epsilon', '20', '--delta', '1e-5'],
                   check=True, capture_output=True)
    return str(path)


class Stop(transformers.TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **more):
        if state.global_step == self.step:
            raise KeyboardInterrupt


def test_a_run_with_a_ledger_is_resumed_from_a_checkpoint(tmp_path):
    settings = {'ledger': make_ledger(tmp_path / 'records.db')}
    saved = {'save_strategy': 'steps', 'save_steps': 2, 'max_steps': 6}
    first = trainer(tmp_path, settings=settings, callbacks=[Stop(3)], **saved)
    with pytest.raises(KeyboardInterrupt):
        first.train()
    weights = {name: value.clone() for name, value in transformers.BertForSequenceClassification
               .from_pretrained(tmp_path / 'checkpoint-2').state_dict().items()}
    began = {}

    class Began(transformers.TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, **more):
            began.update({name: value.clone() for name, value in model.state_dict().items()})
            began['rate'] = optimizer.param_groups[0]['lr']

    second = trainer(tmp_path, model=bert(), settings=settings, callbacks=[Began()], **saved)
    output = second.train(resume_from_checkpoint=True)
    assert output.global_step == 6 and second.run.steps_done == 6
    assert all(torch.equal(began[name], value) for name, value in weights.items())
    assert began['rate'] == pytest.approx(5e-5 * 4 / 6)
    # Step 3 was made twice and is counted twice.
    assert second.run.event.startswith('add-remove: 7*poisson(0.25') and second.epsilon() > 8


def test_a_run_without_a_ledger_is_not_resumed(tmp_path):
    made = trainer(tmp_path, save_strategy='steps', save_steps=2)
    made.train()
    assert (tmp_path / 'checkpoint-2' / 'statement.txt').exists()
    with pytest.raises(sordino.Error, match='without a ledger'):
        trainer(tmp_path).train(resume_from_checkpoint=str(tmp_path / 'checkpoint-2'))


def test_no_state_of_a_generator_is_saved(tmp_path):
    """It would say how many numbers were drawn, and so how large the batches were."""
    trainer(tmp_path, save_strategy='steps', save_steps=2).train()
    assert not list(tmp_path.rglob('rng_state*'))


def test_the_best_model_on_public_data_is_loaded(tmp_path):
    made = trainer(tmp_path, save_strategy='steps', save_steps=1, eval_strategy='steps',
                   eval_steps=1, eval_dataset=records(10, seed=2), load_best_model_at_end=True,
                   metric_for_best_model='eval_loss', learning_rate=.5)
    made.train()
    best = transformers.BertForSequenceClassification.from_pretrained(
        made.state.best_model_checkpoint)
    assert torch.equal(best.classifier.weight, made.model.classifier.weight)
    assert made.run.steps_done == 4


def test_what_evaluations_say_is_in_the_run_folder(tmp_path):
    made = trainer(tmp_path, eval_strategy='steps', eval_steps=2, eval_dataset=records(10, seed=2))
    made.train()
    made.run.save(str(tmp_path / 'run'))
    metrics = (tmp_path / 'run' / 'metrics.jsonl').read_text()
    assert metrics.count('test_loss') >= 2
