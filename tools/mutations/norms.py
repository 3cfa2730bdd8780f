"""Mutations of estimated norms: tools/mutate norms."""
from mutation import Mutation

PROGRAM = "clipping_test"

MUTATIONS = [
    Mutation("parts of a batch have directions of their own", "clipping/norms_jl.cc",
             "    RandomSource source(*secret_);\n",
             "    RandomSource source;\n",
             "EstimatedNorms.HaveTheSameDirectionsInAllPartsOfABatch"),
]
