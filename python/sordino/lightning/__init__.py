"""Private training of a LightningModule by the trainer of Lightning.

    import lightning
    from sordino.lightning import PrivateStrategy

    trainer = lightning.Trainer(max_epochs=3, strategy=PrivateStrategy(epsilon=3, delta=1e-5))
    trainer.fit(module, loader)
    trainer.strategy.run.save('runs/mine')

The batch that `training_step` sees is one record. Batches are drawn by the run, with the batch size
of the loader as their expected size.
"""
from sordino.lightning._strategy import PrivateStrategy

__all__ = ['PrivateStrategy']
