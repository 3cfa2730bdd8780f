"""Networks of a few layers, trained by sordino.torch.Trainer."""
import itertools
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.utils.validation import validate_data

from sordino._error import Error
from sordino.sklearn import _table
from sordino.sklearn._base import (CLASSES, DECLARED, TARGET, PrivateClassifier, PrivateModel,
                                   PrivateRegressor, call)
from sordino.torch import Trainer
from sordino.torch._extension import extension

_ACTIVATIONS = {'identity': torch.nn.Identity, 'logistic': torch.nn.Sigmoid, 'tanh': torch.nn.Tanh,
                'relu': torch.nn.ReLU}
_SETTINGS = """
    hidden_layer_sizes, activation, random_state : as those of scikit-learn; `random_state` is the
        seed of the initial weights alone, which are public.
    learning_rate, momentum : of stochastic gradient descent; those of `sordino train` if left out.
    epochs, steps, batch_size, clip, rate, adjacency, records, ledger, whole, insecure_seed : as for
        sordino.torch.Trainer. Where neither `records` nor `rate` is given, the number of records is
        public.
    train_settings : other settings of the trainer by name, such as `{'sampling': 'fixed'}`.
    out : a folder for the run, which `sordino report` reads.

    Columns that are not declared are not used. A row with a label that is not declared is an error,
    as in `sordino train`.

    Attributes
    ----------
    coefs_, intercepts_, n_layers_, n_features_in_, feature_names_in_ : as in scikit-learn.
    epsilon_, delta_, epsilon_interval_, event_, statement_, guarantee_, is_private_ : as those of
        the linear models.
    n_iter_ : steps that were made.
"""
# Settings that go to the trainer as they are.
_PASSED = ('epsilon', 'delta', 'epochs', 'steps', 'batch_size', 'clip', 'rate', 'adjacency',
           'records', 'insecure_seed')


def _documented(answer):
    def decorate(estimator):
        declared = DECLARED.format(answer=answer, pure='')
        estimator.__doc__ = f'{estimator.__doc__.rstrip()}\n{declared}{_SETTINGS}'
        return estimator
    return decorate


class _Network(PrivateModel):
    """What the networks share."""

    non_private = False

    def _make(self, inputs, outputs):
        if self.activation not in _ACTIVATIONS:
            raise Error(f'the activation is {self.activation!r}, which is not known; it can be '
                        f'{", ".join(_ACTIVATIONS)}.')
        hidden = np.atleast_1d(self.hidden_layer_sizes).tolist()
        if not all(isinstance(size, int) and size > 0 for size in hidden):
            raise Error('hidden_layer_sizes are not whole numbers above 0; give the width of each '
                        'hidden layer, such as (64, 64).')
        sizes = [inputs, *hidden, outputs]
        layers = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0 if self.random_state is None else self.random_state)
            for before, behind in itertools.pairwise(sizes):
                layers += [torch.nn.Linear(before, behind), _ACTIVATIONS[self.activation]()]
        return torch.nn.Sequential(*layers[:-1])

    def _trainer(self, network, inputs, labels):
        settings = {name: getattr(self, name) for name in _PASSED}
        for name, value in (self.train_settings or {}).items():
            if name in settings or name in ('ledger', 'whole', 'state'):
                raise Error(f'{name} is in train_settings and a parameter of its own; set the '
                            'parameter.')
            settings[name] = value
        recipe = extension.recipe()
        sgd = {name: recipe[name] if getattr(self, name) is None else getattr(self, name)
               for name in ('learning_rate', 'momentum')}
        try:
            optimizer = torch.optim.SGD(network.parameters(), lr=sgd['learning_rate'],
                                        momentum=sgd['momentum'])
        except (TypeError, ValueError):
            raise Error('learning_rate or momentum is no number that descent can use; give numbers '
                        'not below 0.') from None
        example = (torch.zeros(inputs.shape[1]), torch.zeros((), dtype=labels.dtype))
        return Trainer(network, optimizer, torch.utils.data.TensorDataset(inputs, labels),
                       example=example, name=type(self).__name__, progress=False,
                       ledger=self._path('ledger'), whole=self.whole, **settings)

    def fit(self, X, y):
        """Trains the model; every step is charged to the ledger before its noise is drawn."""
        self._refuse(y)
        X = _table.as_table(X)
        y = _table.as_column(y)
        validate_data(self, X, skip_check_array=True)
        declared = self._declare(X)
        if declared['rows_per_user'] > 0:
            raise Error('the schema declares a user column, and a network protects rows; use '
                        'sordino train, or leave the column out.')
        inputs, labels = call(extension.records, declared,
                              _table.held_columns(X, declared['columns'], y), True)
        if self.records is None and self.rate is None:
            if len(y) == 0:
                raise Error('X has no rows; give the records.')
            self._warn_of_number()
        network = self._make(inputs.shape[1], self._outputs())
        trainer = self._trainer(network, inputs, labels)
        try:
            for step in trainer:
                step(lambda x, answer: self._loss(network(x), answer))
        except Error:
            if not trainer._run.refusal or trainer.steps_done == 0:
                raise
            warnings.warn(f'the ledger ended the run: {trainer._run.refusal}.', stacklevel=2)
        finally:
            trainer._data.close()
        self._keep(declared, network, trainer)
        return self

    def _keep(self, declared, network, trainer):
        self._declared = declared
        self._network = network
        linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
        self.coefs_ = [layer.weight.detach().numpy().T.copy() for layer in linear]
        self.intercepts_ = [layer.bias.detach().numpy().copy() for layer in linear]
        self.n_layers_ = len(linear) + 1
        self.n_iter_ = trainer.steps_done
        self.epsilon_interval_ = trainer.epsilon_interval()
        self.epsilon_ = self.epsilon_interval_[1]
        self.delta_ = trainer.delta
        self.event_ = trainer.event
        self.statement_ = trainer.statement
        self.guarantee_ = trainer._run.guarantee()
        self.is_private_ = trainer.is_private
        self._take_answer()
        out = self._path('out')
        if out is not None:
            trainer.save(out)
        if not self.is_private_:
            warnings.warn(self.guarantee_, stacklevel=3)

    def _take_answer(self):
        pass

    def _answers(self, X):
        features = self._features(X)
        with torch.no_grad():
            return self._network(features).to(torch.float64)


@_documented(CLASSES.format(rest=''))
class MLPClassifier(PrivateClassifier, _Network):
    """A private classifier of a few layers."""

    def __init__(self, hidden_layer_sizes=(100,), activation='relu', *, epsilon=None, delta=None,
                 bounds=None, categories=None, classes=None, schema=None, missing=None,
                 learning_rate=None, momentum=None, epochs=None, steps=None, batch_size=None,
                 clip=None, rate=None, adjacency=None, records=None, ledger=None, whole=False,
                 train_settings=None, out=None, random_state=None, insecure_seed=None):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.schema = schema
        self.missing = missing
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.clip = clip
        self.rate = rate
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.whole = whole
        self.train_settings = train_settings
        self.out = out
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    def _outputs(self):
        return len(self._classes)

    def _loss(self, answers, labels):
        return F.cross_entropy(answers, labels)

    def _take_answer(self):
        self.classes_ = self._classes

    def _places(self, X):
        return self._answers(X).argmax(dim=1).numpy()

    def predict_proba(self, X):
        """The probabilities of the classes."""
        return self._answers(X).softmax(dim=1).numpy()

    def predict_log_proba(self, X):
        """Their logarithms."""
        return self._answers(X).log_softmax(dim=1).numpy()


@_documented(TARGET)
class MLPRegressor(PrivateRegressor, _Network):
    """A private network of a few layers that predicts a number."""

    def __init__(self, hidden_layer_sizes=(100,), activation='relu', *, epsilon=None, delta=None,
                 bounds=None, categories=None, target=None, schema=None, missing=None,
                 learning_rate=None, momentum=None, epochs=None, steps=None, batch_size=None,
                 clip=None, rate=None, adjacency=None, records=None, ledger=None, whole=False,
                 train_settings=None, out=None, random_state=None, insecure_seed=None):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.target = target
        self.schema = schema
        self.missing = missing
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.clip = clip
        self.rate = rate
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.whole = whole
        self.train_settings = train_settings
        self.out = out
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    def _outputs(self):
        return 1

    def _loss(self, answers, targets):
        return F.mse_loss(answers[:, 0], targets)

    def predict(self, X):
        """The predicted numbers, in the units of y."""
        low, high = self._declared['columns'][-1][2:4]
        return low + (self._answers(X)[:, 0].numpy() + 1) * (high - low) / 2
