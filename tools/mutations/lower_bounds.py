"""Mutations of the bounds of audits: tools/mutate lower_bounds."""
from mutation import Mutation

PROGRAM = "lower_bounds_test"

MUTATIONS = [
    Mutation("guesses at delta are not paid for", "lower_bounds/one_run.cc",
             "if (delta.value() > 0) {", "if (delta.value() > 2) {",
             "OneRun.*"),
    Mutation("a p-value counts one right guess too many", "lower_bounds/one_run.cc",
             "const double beta = BinomialTail(run.guesses, run.correct, q);",
             "const double beta = BinomialTail(run.guesses, run.correct + 1, q);",
             "OneRun.*"),
    Mutation("guessing is easier than it is", "lower_bounds/one_run.cc",
             "return 1 / (1 + std::exp(-epsilon));", "return 1 / (1 + std::exp(-0.9 * epsilon));",
             "OneRun.*"),
    Mutation("the trade-off of a Gaussian moves by half of mu", "lower_bounds/one_run.cc",
             "UpperTail(UpperQuantile(std::min(r, 1.0)) + mu);",
             "UpperTail(UpperQuantile(std::min(r, 1.0)) + 0.5 * mu);",
             "OneRun.*"),
    Mutation("thresholds that were looked at are not paid for", "lower_bounds/two_worlds.cc",
             "significance / (4 * static_cast<double>(looked_at.size()));", "significance;",
             "TwoWorlds.*"),
    Mutation("the sample of one world is taken for the truth", "lower_bounds/two_worlds.cc",
             "take({ClopperPearsonLower(members, above, each), ClopperPearsonUpper(others, rank - 1, "
             "each)});",
             "take({static_cast<double>(above) / static_cast<double>(members), "
             "ClopperPearsonUpper(others, rank - 1, each)});",
             "TwoWorlds.*"),
    Mutation("all members that are equal to a threshold are above it", "lower_bounds/two_worlds.cc",
             "return above + internal::AboveInMostOrders(equal_members, equal_others, place, kOrders);",
             "return above + equal_members;",
             "TwoWorlds.*"),
    Mutation("a tenth of the orders of equal scores is enough", "lower_bounds/two_worlds.cc",
             "return above + internal::AboveInMostOrders(equal_members, equal_others, place, kOrders);",
             "return above + internal::AboveInMostOrders(equal_members, equal_others, place, 1 - "
             "kOrders);",
             "TwoWorlds.*"),
    Mutation("one member more than most orders reach is above", "lower_bounds/internal/equal_scores.cc",
             "if (below > left_out) return k;", "if (below > left_out) return k + 1;",
             "EqualScores.*"),
    Mutation("the orders that are left out are not paid for", "lower_bounds/two_worlds.cc",
             "const double each = kOrders * significance /", "const double each = significance /",
             "TwoWorlds.*"),
    Mutation("equal scores count as wins", "lower_bounds/two_worlds.cc",
             "0.5 * (static_cast<double>(MembersAbove(score)) + "
             "static_cast<double>(MembersFrom(score)));",
             "static_cast<double>(MembersFrom(score));",
             "TwoWorlds.*"),
]
