"""Mutations of clipped sums that the tests of clipping notice: tools/mutate clipped_sums."""
from mutation import Mutation

PROGRAM = "clipping_test"

MUTATIONS = [
    Mutation("parts of a batch have directions of their own", "clipping/norms_jl.cc",
             "    RandomSource source(*secret_);\n",
             "    RandomSource source;\n",
             "EstimatedNorms.HaveTheSameDirectionsInAllPartsOfABatch"),
    Mutation("clip scaled gradients at 1.01 C", "clipping/scaled_clipping.cc",
             "below_({BelowBound(bound_)})", "below_({BelowBound(1.01 * bound_)})",
             "PreconditionedClipping.FactorTimesNormNeverExceedsTheBound"),
    Mutation("clip scaled gradients at the bound of an earlier step",
             "clipping/scaled_clipping.cc", "  below_ = GroupColumn({BelowBound(bound_)});\n", "",
             "PreconditionedClipping.FactorTimesNormNeverExceedsTheBound"),
    Mutation("count the examples of padding", "gradients/internal/part_clipper.cc",
             "factors = at::cat({factors.narrow(1, 0, real.count), none}, 1);",
             "factors = at::cat({factors.narrow(1, 0, real.count), none + 1}, 1);",
             "CutBatches.GiveTheSumAndTheCountsOfTheWholeBatch"),
    Mutation("do not double for micro-batches", "gradients/internal/rounding/sum_sensitivity.cc",
             " || micro_batch > 1;", ";",
             "NeighbouringBatches.OfMicroBatchesDifferByAtMostTheSensitivity"),
    Mutation("do not double for a replaced record", "gradients/internal/rounding/sum_sensitivity.cc",
             "adjacency == Adjacency::kReplaceOne || micro_batch > 1;", "micro_batch > 1;",
             "NeighbouringBatches.DifferByAtMostTheSensitivityForEveryPolicy"),
    Mutation("lose the counts of a cut batch", "gradients/internal/part_clipper.cc",
             "  add(counts, other.counts);\n", "",
             "CutBatches.GiveTheSumAndTheCountsOfTheWholeBatch"),
    Mutation("a record that is not finite changes how others are clipped",
             "gradients/internal/part_clipper.cc",
             "(const NeedsLoop&) {\n    return UnitByUnit(loss, batch, policy, padded_examples);\n",
             "(const NeedsLoop&) {\n    return Loop(loss, batch, policy);\n",
             "NeighbouringBatches.OfAnOperationWithoutARuleDifferByAtMostTheSensitivity"),
    Mutation("sum a batch that is larger than declared as a small one", "gradients/clipper.cc",
             "if (Examples(batch) > s.sum.largest_batch) {", "if (Examples(batch) < 0) {",
             "NeighbouringBatches.LargerThanDeclaredDifferByTheRecordAlone"),
]
