"""What arguments of transformers cannot mean in a private run."""
from collections.abc import Callable
from typing import Any

from sordino._error import Error

_Given = Callable[[Any], Any]


def _given(name: str) -> _Given:
    return lambda arguments: getattr(arguments, name, None)


def _sampling(arguments: Any) -> bool:
    return (getattr(arguments, 'train_sampling_strategy', 'random') != 'random'
            or getattr(arguments, 'group_by_length', False))


def _hidden_optimizer(arguments: Any) -> bool:
    return any(word in str(getattr(arguments.optim, 'value', arguments.optim))
               for word in ('lomo', 'layerwise'))


# Each is a condition on the arguments, and why and what to do instead.
_REFUSED: list[tuple[_Given, str]] = [
    (_given('fp16'), 'fp16 scales losses by a factor that private gradients choose; use bf16.'),
    (_given('deepspeed'), 'deepspeed computes gradients of whole batches; leave it out.'),
    (_given('fsdp'), 'fsdp computes gradients of whole batches; leave it out.'),
    (_given('parallelism_config'), 'parallelism_config divides the model among processes, and a '
                                   'private run in Python has one; leave it out.'),
    (lambda a: a.world_size > 1, 'a private run in Python has one process, and several were '
                                 'started; start one.'),
    (lambda a: a.n_gpu > 1, 'a private run in Python has one GPU, and several are visible; let '
                            'CUDA_VISIBLE_DEVICES name one.'),
    (_given('auto_find_batch_size'), 'auto_find_batch_size would begin the run anew with another '
                                     'batch; give the batch, and physical_batch for the number of '
                                     'records in memory at once.'),
    (_sampling, 'the records of a batch are drawn at random, so that the guarantee holds, and '
                'train_sampling_strategy (group_by_length) asks for another order; leave it out.'),
    (_hidden_optimizer, 'optimizers that update inside of the backward pass (lomo, layerwise) '
                        'would see gradients without noise; choose another optim.'),
    (_given('torch_compile'), 'torch_compile compiles the model for whole batches; leave it out.'),
    (_given('use_liger_kernel'), 'use_liger_kernel computes gradients in kernels of whole batches; '
                                 'leave it out.'),
    (lambda a: a.include_num_input_tokens_seen not in (False, 'no'),
     'include_num_input_tokens_seen counts private tokens; leave it out.'),
    (_given('debug'), 'debug prints values of private records; leave it out.'),
    (lambda a: not a.skip_memory_metrics, 'memory metrics follow the sizes of the batches, which '
                                          'are private; leave skip_memory_metrics at True.'),
]

# Settings of a run that have a name among the arguments of transformers.
_ARGUMENTS = {
    'epochs': 'num_train_epochs or max_steps', 'steps': 'max_steps or num_train_epochs',
    'batch': 'per_device_train_batch_size and gradient_accumulation_steps',
    'batch_size': 'per_device_train_batch_size and gradient_accumulation_steps',
    'workers': 'dataloader_num_workers', 'collate_fn': 'data_collator',
    'state': 'resume_from_checkpoint', 'progress': 'disable_tqdm',
}


def refuse_arguments(arguments: Any) -> None:
    for is_given, why in _REFUSED:
        if is_given(arguments):
            raise Error(why)


def refuse_settings(settings: dict[str, Any]) -> None:
    for name in settings:
        if name in _ARGUMENTS:
            raise Error(f'{name} was given to the trainer, and the training arguments say it; '
                        f'give {_ARGUMENTS[name]} there.')
