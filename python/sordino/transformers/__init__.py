"""Private training with the Trainer of Hugging Face: the same arguments, and the budget.

    from sordino.transformers import Trainer

    trainer = Trainer(model, arguments, train_dataset=records, eval_dataset=public, epsilon=3,
                      delta=1e-5)
    trainer.train()
    trainer.save_model('mine')   # statement.txt lies beside the weights

Models of peft are trained as they are; parameters that are frozen are not part of the run.
"""
from sordino.transformers._trainer import Trainer

__all__ = ['Trainer']
