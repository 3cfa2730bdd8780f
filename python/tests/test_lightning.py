"""sordino.lightning: the loop of Lightning with private steps."""
import lightning
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import loop
import sordino
from sordino.lightning import PrivateStrategy
from test_transformers import make_ledger

pytestmark = pytest.mark.filterwarnings('ignore')


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
        self.updates, self.batches = [], []

    def training_step(self, batch, index):
        x, y = batch
        self.batches.append(tuple(x.shape))
        loss = F.cross_entropy(self.net(x), y)
        self.log('train_loss', loss, prog_bar=True)
        self.log_dict({'train_also': loss})
        return loss

    def on_before_optimizer_step(self, optimizer):
        self.updates.append([p.grad.clone() for p in self.parameters()])

    def validation_step(self, batch, index):
        x, y = batch
        self.log('val_loss', F.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=.5)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, .1)]


def data(count, seed=1):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, generator=random)
    return TensorDataset(x, (x[:, 0] > 0).long())


class Pairs(torch.utils.data.Dataset):
    """The same records, one by one."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        return self.records[index]


BUDGET = dict(epsilon=8, delta=1e-5, clip=1.)


def trainer(folder, settings=BUDGET, **more):
    return lightning.Trainer(**{
        'max_epochs': 2, 'accelerator': 'cpu', 'logger': False, 'enable_progress_bar': False,
        'enable_model_summary': False, 'enable_checkpointing': False,
        'default_root_dir': str(folder), 'strategy': PrivateStrategy(**settings), **more})


def loader(count=40, batch=10, **more):
    return DataLoader(data(count), **{'batch_size': batch, 'shuffle': True, **more})


@pytest.mark.parametrize('records', [data(12), Pairs(data(12))])
def test_a_step_is_the_mean_of_clipped_gradients(tmp_path, records):
    module = Module()
    batch = tuple(torch.stack(column) for column in zip(*[records[i] for i in range(12)]))
    sums = None
    for gradient in loop.gradients(module, lambda x, y: F.cross_entropy(module.net(x), y), batch):
        factor = min(1, .2 / loop.norm(gradient))
        parts = [part * factor for part in gradient]
        sums = parts if sums is None else [a + b for a, b in zip(sums, parts)]
    made = trainer(tmp_path, dict(noise=1e-3, delta=1e-5, clip=.2, sampling='full'), max_epochs=1)
    made.fit(module, DataLoader(records, batch_size=12))
    assert len(module.updates) == 1
    for found, part in zip(module.updates[0], sums):
        assert (found - part / 12).abs().max() < .05 * .2 / 12
    assert set(module.batches) == {(1, 3)}


def test_epochs_schedules_and_callbacks_are_those_of_lightning(tmp_path):
    class Counted(lightning.Callback):
        starts = ends = 0

        def on_train_epoch_start(self, trainer, module):
            self.starts += 1

        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            assert batch == {} and outputs['loss'] == 0
            self.ends += 1

    counted = Counted()
    module = Module()
    made = trainer(tmp_path, max_epochs=3, callbacks=[counted])
    made.fit(module, loader(batch=12))
    run = made.strategy.run
    assert made.global_step == run.steps == run.steps_done == counted.ends == 12
    assert counted.starts == 3 and run.plan.startswith('add-remove: 12*poisson(0.3')
    assert made.optimizers[0].param_groups[0]['lr'] == pytest.approx(.5e-3)


def test_max_steps_is_the_number_of_steps(tmp_path):
    made = trainer(tmp_path, max_epochs=-1, max_steps=7)
    made.fit(Module(), loader())
    assert made.strategy.run.steps == made.strategy.run.steps_done == 7


def test_epsilon_is_logged_and_no_value_of_a_training_step(tmp_path):
    made = trainer(tmp_path, log_every_n_steps=2)
    made.fit(Module(), loader(), DataLoader(data(8, seed=2), batch_size=4))
    assert made.callback_metrics['epsilon'] == pytest.approx(made.strategy.epsilon())
    assert set(made.callback_metrics) == {'epsilon', 'val_loss'}


def test_a_module_can_log_again_after_training(tmp_path):
    module = Module()
    trainer(tmp_path).fit(module, loader())
    assert 'log' not in vars(module)


def test_a_run_with_a_ledger_is_resumed_from_a_checkpoint(tmp_path):
    settings = dict(BUDGET, ledger=make_ledger(tmp_path / 'records.db'))

    class Stop(lightning.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            if trainer.global_step == 5:
                trainer.save_checkpoint(tmp_path / 'five.ckpt')
            if trainer.global_step == 6:
                raise RuntimeError('power is lost')

    with pytest.raises(RuntimeError, match='power'):
        trainer(tmp_path, settings, callbacks=[Stop()]).fit(Module(), loader())
    saved = torch.load(tmp_path / 'five.ckpt', weights_only=True)
    assert 'Privacy statement' in saved['sordino']['statement']
    module, began = Module(), {}
    with torch.no_grad():
        module.net[0].bias.fill_(9)

    class Began(lightning.Callback):
        def on_train_batch_start(self, trainer, module, batch, index):
            began.setdefault('weights', {k: v.clone() for k, v in module.state_dict().items()})

    second = trainer(tmp_path, settings, callbacks=[Began()])
    second.fit(module, loader(), ckpt_path=tmp_path / 'five.ckpt')
    assert all(torch.equal(value, saved['state_dict'][name])
               for name, value in began['weights'].items())
    assert second.global_step == second.strategy.run.steps_done == 8
    # Step 6 was made twice and is counted twice.
    assert second.strategy.run.event.startswith('add-remove: 9*poisson(0.25')


def test_a_run_without_a_ledger_is_not_resumed(tmp_path):
    made = trainer(tmp_path)
    made.fit(Module(), loader())
    made.save_checkpoint(tmp_path / 'end.ckpt')
    with pytest.raises(sordino.Error, match='without a ledger'):
        trainer(tmp_path, max_epochs=3).fit(Module(), loader(), ckpt_path=tmp_path / 'end.ckpt')
    module = Module()
    trainer(tmp_path).validate(module, DataLoader(data(8)), ckpt_path=tmp_path / 'end.ckpt')


class Manual(Module):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False


class Augments(Module):
    def on_after_batch_transfer(self, batch, index):
        return batch


@pytest.mark.parametrize('more, word', [
    (dict(accumulate_grad_batches=2), 'accumulate_grad_batches'),
    (dict(callbacks=[lightning.pytorch.callbacks.GradientAccumulationScheduler({0: 2})]),
     'accumulate_grad_batches'),
    (dict(gradient_clip_val=1.), 'gradient_clip_val'), (dict(devices=2), 'devices=1'),
    (dict(overfit_batches=2), 'overfit_batches'),
    (dict(reload_dataloaders_every_n_epochs=1), 'reload_dataloaders'),
    (dict(max_epochs=-1), 'max_epochs')])
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path, more, word):
    with pytest.raises(sordino.Error, match=word):
        trainer(tmp_path, **more).fit(Module(), loader())


def test_scaled_losses_are_refused(tmp_path):
    made = trainer(tmp_path)
    made.strategy.precision_plugin.precision = '16-mixed'  # which a CPU does not have
    with pytest.raises(sordino.Error, match='16-mixed'):
        made.fit(Module(), loader())


@pytest.mark.parametrize('module, word', [
    (Manual, 'automatic_optimization'), (Augments, 'on_after_batch_transfer')])
def test_modules_that_need_whole_batches_are_refused_by_name(tmp_path, module, word):
    with pytest.raises(sordino.Error, match=word):
        trainer(tmp_path).fit(module(), loader())


def test_loaders_of_another_order_are_refused(tmp_path):
    weighted = torch.utils.data.WeightedRandomSampler(torch.ones(40), 40)
    for given, word in ((loader(shuffle=False, sampler=weighted), 'sampler of its own'),
                        (DataLoader(data(40), batch_size=None), 'sampler of its own'),
                        ([loader(), loader()], 'several training loaders'),
                        ([1, 2, 3], 'several training loaders|no DataLoader')):
        with pytest.raises(sordino.Error, match=word):
            trainer(tmp_path).fit(Module(), given)


def test_training_records_are_no_evaluation_data(tmp_path):
    records = data(40)
    made = trainer(tmp_path)
    for _ in range(2):
        with pytest.raises(sordino.Error, match='evaluate on public data'):
            made.fit(Module(), DataLoader(records, batch_size=10), DataLoader(records))
    made = trainer(tmp_path)
    made.fit(Module(), DataLoader(records, batch_size=10))
    with pytest.raises(sordino.Error, match='evaluate on public data'):
        made.validate(Module(), dataloaders=DataLoader(records))


def test_a_second_run_without_a_ledger_is_refused(tmp_path):
    made, module = trainer(tmp_path), Module()
    made.fit(module, loader())
    with pytest.raises(sordino.Error, match='name a ledger'):
        made.fit(module, loader())


@pytest.mark.parametrize('name', ['epochs', 'steps', 'batch', 'batch_size', 'workers'])
def test_what_lightning_names_is_not_a_setting(name):
    with pytest.raises(sordino.Error, match=f'{name} was given'):
        PrivateStrategy(**{name: 3})


def test_bfloat16_is_taken(tmp_path):
    made = trainer(tmp_path, precision='bf16-mixed')
    made.fit(Module(), loader())
    assert made.strategy.run.steps_done == 8
