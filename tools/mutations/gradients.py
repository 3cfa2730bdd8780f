"""Mutations of the per-example gradients: tools/mutate gradients."""
from mutation import Mutation

PROGRAM = "gradients_test"

MUTATIONS = [
    Mutation("drop the bias norm", "gradients/term.cc",
             """      at::Tensor gradients = SumOfRows(term);
      squared.add_(RowSquaredNorms(gradients));
""",
             """      at::Tensor gradients = SumOfRows(term);
""",
             "LinearRule.CountsTheBiasInTheNorm"),
    Mutation("skip a use", "gradients/tape.cc",
             """      tape_.uses.push_back(std::move(use));
      uses_a_parameter_.insert(node);
""",
             """      bool again = false;
      for (const ParameterUse& other : tape_.uses) {
        again = again || other.parameter == use.parameter;
      }
      if (again) return;
      tape_.uses.push_back(std::move(use));
      uses_a_parameter_.insert(node);
""",
             "SharedParameters.EveryUseOfAParameterIsCounted"),
    Mutation("forget a cross term", "gradients/parameter_plan.cc",
             ("        if (!same && !turned) continue;\n",
              "plan.entry_by_entry || Overlap(other, positions, parameter.numel());"),
             ("        if (positions.defined()) break;\n", "plan.entry_by_entry;"),
             "SharedParameters.CrossTermsOfALayerThatIsUsedTwiceAreInTheNorm"),
    Mutation("clip at 1.01 C", "gradients/flat_clipping.cc",
             "below_({BelowBound(bound.value())})",
             "below_({BelowBound(1.01 * bound.value())})",
             "FlatClipping.FactorTimesNormNeverExceedsTheBound"),
    Mutation("forget that slices overlap", "gradients/parameter_plan.cc",
             "plan.entry_by_entry || Overlap(other, positions, parameter.numel());",
             "plan.entry_by_entry;",
             "ViewsOfParameters.SlicesThatOverlapAddUp"),
    Mutation("count padding rows", "gradients/row_kernels.cc",
             "        if (entry == lookup.padding_index) return;\n", "",
             "EmbeddingRule.CountsRepeatedTokensTogetherAndPaddingNotAtAll"),
    Mutation("wrong order of a layout", "gradients/ownership.cc",
             "if (!fit.layout || accepted) fit.layout = layout;",
             "if (!fit.layout || accepted) fit.layout = ExampleLayout{inner, units, each / inner};",
             "Layouts.*"),
    Mutation("keep an example of NaN", "gradients/clipper.cc",
             "  if (!all_usable) {\n", "  if (!all_usable && factors.numel() == 0) {\n",
             "Isolation.AnExampleOfNanOrInfinityContributesExactlyZero"),
    Mutation("apply a factor twice", "gradients/clipper.cc",
             "totals.gradients = pass.WeightedSums(factors,",
             "totals.gradients = pass.WeightedSums(factors * factors,",
             "LinearRule.*"),
    Mutation("accept rows that mix examples", "gradients/ownership.cc",
             "misfit > Tolerance(type) * factor * std::abs(x[at])", "misfit > 1e300",
             "Mixing.*"),
    Mutation("do not look at the inputs", "gradients/ownership.cc",
             "    if (!owned) ThrowMixed(", "    if (!owned && owner.empty()) ThrowMixed(",
             "Mixing.InFrontOfTheFirstParameterIsRefused"),
    Mutation("do not double for micro-batches", "gradients/sum_sensitivity.cc",
             " || micro_batch > 1;", ";",
             "NeighbouringBatches.OfMicroBatchesDifferByAtMostTheSensitivity"),
    Mutation("do not double for a replaced record", "gradients/sum_sensitivity.cc",
             "adjacency == Adjacency::kReplaceOne || micro_batch > 1;", "micro_batch > 1;",
             "NeighbouringBatches.DifferByAtMostTheSensitivityForEveryPolicy"),
    Mutation("leave dimensions out of the structure", "gradients/tape.cc",
             "if (const auto found = dims.find(type); found != dims.end()) "
             "found->second(node, topology);",
             "static_cast<void>(node), static_cast<void>(type), topology.resize(topology.size());",
             "RememberedLayouts.AreNotTrustedAfterTheModelTransposesItsBatch"),
    Mutation("keep layouts that zeros left open", "gradients/ownership.cc",
             "    ownership.settled = ownership.settled && fit.unique;\n", "",
             "RememberedLayouts.OfAFirstStepWithoutGradientsAreNotKept"),
    Mutation("take any layout that zeros left open", "gradients/ownership.cc",
             "accepted = rule.Accepts(layout);", "accepted = rule.kind() == rule.kind();",
             "Layouts.ThatZerosLeaveOpenAreOnesThatTheRuleCanUse"),
    Mutation("keep the layout of an index", "gradients/tape.cc",
             "if (typeid(user) == typeid(generated::EmbeddingBackward0)) "
             "tape_.moves_rows_by_value = true;",
             "static_cast<void>(user);",
             "PermutedExamples.ByAnIndexThatChangesAreProbedEveryTime"),
    Mutation("swap the sides of where", "gradients/use_rule.cc",
             "const bool chosen = place.slot == 0;", "const bool chosen = place.slot == 1;",
             "BroadcastRules.PositionEmbeddingsAndScalesEqualTheLoop"),
    Mutation("do not subtract the mean of a layer norm", "gradients/use_rule.cc",
             "return (Wide(input) - mean) * scale;",
             "return static_cast<void>(mean), Wide(input) * scale;",
             "NormRules.EqualTheLoop"),
    Mutation("do not turn a transposed use", "gradients/per_example_pass.cc",
             "    if (cluster.transposed[k]) std::swap(term.a, term.b);\n", "",
             "SharedParameters.AMatrixAndItsTransposeEqualTheLoop"),
    Mutation("let the script executor fuse operations", "gradients/script_model.cc",
             "GraphOptimizerEnabledGuard plain_graph(false)",
             "GraphOptimizerEnabledGuard plain_graph(true)",
             "ScriptModels.FromAFileEqualTheLoopHoweverOftenTheyRan"),
    Mutation("lose the counts of a cut batch", "gradients/clipper.cc",
             "    add(counts, other.counts);\n", "",
             "CutBatches.GiveTheSumAndTheCountsOfTheWholeBatch"),
]
