"""Mutations of the noise step: tools/mutate noise."""
from mutation import Mutation

PROGRAM = "noise_test"

MUTATIONS = [
    Mutation("every rank adds all canaries", "noise/gradient_noise.cc",
             "if (canary.coordinate < range.begin || canary.coordinate >= range.end) continue;\n"
             "    out[canary.coordinate - range.begin]",
             "out[canary.coordinate % (range.end - range.begin)]",
             "ShardNoise.HasTheCanariesOfTheWholeSum"),
    Mutation("sigma 1 % too small", "noise/gradient_noise.cc",
             "grid.scale = (exact + z * moved * grid.granularity) * (1 + 0x1p-40);",
             "grid.scale = (exact + z * moved * grid.granularity) * 0.99;",
             "GradientNoise.IsNotOnePercentTooSmallNorTooLarge"),
    Mutation("rounding to the grid is not paid for", "noise/gradient_noise.cc",
             "grid.scale = (exact + z * moved * grid.granularity) * (1 + 0x1p-40);",
             "grid.scale = exact * (1 + 0x1p-40);",
             "GradientNoise.GridKeepsItsRangeAndNeverMakesNoiseSmaller"),
    Mutation("values are not rounded to the grid", "noise/gradient_noise.cc",
             "value = value.nan_to_num_(0, kSaturation, -kSaturation).round_();",
             "value = value.nan_to_num_(0, kSaturation, -kSaturation);",
             "GradientNoise.EveryValueIsAMultipleOfThePublicGranularity"),
    Mutation("one tensor is left without noise", "noise/gradient_noise.cc",
             "    value.add_(steps.narrow(0, begin, count).view(gradient.sizes()));",
             "    if (begin > 0) value.add_(steps.narrow(0, begin, count).view(gradient.sizes()));",
             "GradientNoise.IsNotOnePercentTooSmallNorTooLarge"),
    Mutation("a float64 sum keeps its type", "noise/gradient_noise.cc",
             ".to(sum.noised_types[k]));", ".to(gradient.scalar_type()));",
             "GradientNoise.IsAddedBeforeASumIsRoundedToTheTypeOfItsParameter"),
    Mutation("the same noise in every step", "noise/gradient_noise.cc",
             "source.Stream({.step = static_cast<std::uint64_t>(step),\n"
             "                                     .rank = 0,",
             "source.Stream({.step = static_cast<std::uint64_t>(step * 0),\n"
             "                                     .rank = 0,",
             "GradientNoise.StepsAndBlocksHaveStreamsOfTheirOwn"),
    Mutation("the same noise in every block", "noise/gradient_noise.cc",
             ".tensor = static_cast<std::uint32_t>(block)}",
             ".tensor = static_cast<std::uint32_t>(block * 0)}",
             "GradientNoise.StepsAndBlocksHaveStreamsOfTheirOwn"),
    Mutation("a seeded source calls itself private", "random/random_source.cc",
             "return std::visit([](const auto& generator) { return generator.IsPrivate(); }, "
             "generator_);",
             "return true;",
             "GradientNoise.SeedRepeatsItAndTheOperatingSystemDoesNot"),
    Mutation("shards begin with the first block of the noise", "noise/gradient_noise.cc",
             "const std::int64_t first_block = range.begin / kNoiseBlock;",
             "const std::int64_t first_block = 0 * range.begin;",
             "ShardNoise.IsThatOfTheWholeSumWhateverTheNumberOfShards"),
    Mutation("a shard is not rounded to the grid of the noise to the nearest",
             "noise/gradient_noise.cc",
             "return at::bitwise_right_shift(steps.add(half), shift)",
             "return at::bitwise_right_shift(steps.add(0 * half), shift)",
             "ShardNoise.SumIsMovedByHalfAStepAtMost"),
]
