"""A private model of the made-up census (examples/make_census.py), who earns above 50K.

    python3 examples/make_census.py census.csv test.csv
    python3 examples/python/adult_sklearn.py census.csv test.csv
"""
import pathlib
import sys

import pandas as pd

from sordino.sklearn import LogisticRegression

SCHEMA = pathlib.Path(__file__).parent.parent / 'schemas' / 'census.toml'

train, test = (pd.read_csv(file, skipinitialspace=True) for file in sys.argv[1:3])
model = LogisticRegression(epsilon=1, delta=1e-6, schema=SCHEMA, records=32561)
model.fit(train, train['income'])
print(model.guarantee_)
print(f"accuracy on the public test table: {model.score(test, test['income']):.2%}")
