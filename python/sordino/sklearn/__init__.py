"""Private models with the interface of scikit-learn.

>>> import numpy as np
>>> from sordino.sklearn import LogisticRegression
>>> X = np.arange(2000).reshape(-1, 1) % 100
>>> y = X[:, 0] > 50
>>> model = LogisticRegression(epsilon=1, delta=1e-6, bounds=(0, 99), classes=[False, True],
...                            records=2000).fit(X, y)
>>> bool(model.predict([[90]])[0])
True
>>> round(model.epsilon_, 3)
1.0

The plan, the charge, the noise and the statement are those of `sordino fit`. What a model has to
know of the data is declared: bounds of numbers, categories, classes; nothing of it is learned from
the records.
"""
from sordino.sklearn._linear import LinearRegression, LinearSVC, LogisticRegression
from sordino.sklearn._mlp import MLPClassifier, MLPRegressor

__all__ = ['LinearRegression', 'LinearSVC', 'LogisticRegression', 'MLPClassifier', 'MLPRegressor']
