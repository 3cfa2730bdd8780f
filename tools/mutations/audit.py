"""Mutations of the privacy core that the audit of the implementation notices by attacking it:
tools/mutate audit. No other test has a say."""
from mutation import Mutation

PROGRAM = "audit_test"


def case(*names: str) -> str:
    return ":".join(f"Cases/SelfAudit.ProvesNoMoreThanTheClaim/{name}" for name in names)


MUTATIONS = [
    Mutation("noise 20 % too small", "noise/gradient_noise.cc",
             "RoundedSteps(draws[i], step.finer_bits), step));",
             "RoundedSteps(draws[i] / 5 * 4, step.finer_bits), step));",
             case("full")),
    Mutation("the first example is not clipped", "gradients/internal/part_clipper.cc",
             "  at::Tensor factors = policy.Factors(norms);\n",
             "  at::Tensor factors = policy.Factors(norms);\n"
             "  if (factors.size(1) > 0) factors.select(1, 0).fill_(1);\n",
             case("one_record")),
    Mutation("the last example is not clipped", "gradients/internal/part_clipper.cc",
             "  at::Tensor factors = policy.Factors(norms);\n",
             "  at::Tensor factors = policy.Factors(norms);\n"
             "  if (factors.size(1) > 0) factors.select(1, factors.size(1) - 1).fill_(1);\n",
             case("one_record")),
    Mutation("a Poisson sampler repeats its batch", "sampling/poisson.cc",
             ("    return SamplePoisson(stream, sampler_.Rate(plan_, step), records_);\n",
              "  SamplingPlan plan_;\n  std::uint64_t records_;\n"),
             ("    if (step == 0) first_ = SamplePoisson(stream, sampler_.Rate(plan_, step), "
              "records_);\n    return first_;\n",
              "  SamplingPlan plan_;\n  std::uint64_t records_;\n"
              "  std::vector<std::uint64_t> first_;\n"),
             case("poisson")),
    Mutation("batches are drawn at twice the rate", "sampling/poisson.cc",
             "return SamplePoisson(stream, sampler_.Rate(plan_, step), records_);",
             "return SamplePoisson(stream, SamplingRate(2 * sampler_.Rate(plan_, step).value()), "
             "records_);",
             case("poisson")),
    Mutation("half the rate is accounted", "sampling/poisson.cc",
             "return Event::Poisson(Rate(plan, step), release);",
             "return Event::Poisson(SamplingRate(Rate(plan, step).value() / 2), release);",
             case("poisson")),
    Mutation("the counts of adaptive clipping are not charged",
             "clipping/adaptive.cc",
             "return GradientNoiseMultiplier(total, L2Sensitivity(unit), CountNoise(terms, options, "
             "groups));",
             "static_cast<void>(unit);\n  return total;",
             case("clipping_adaptive", "clipping_adaptive_layerwise")),
    Mutation("replace-one is accounted as add-remove",
             "gradients/internal/rounding/sum_sensitivity.cc",
             "const bool replaced = adjacency == Adjacency::kReplaceOne || micro_batch > 1;",
             "const bool replaced = false;",
             case("full_replace_one")),
    Mutation("micro-batches have the sensitivity of an example",
             "gradients/internal/rounding/sum_sensitivity.cc",
             "const double exact = replaced ? 2 * norm : norm;",
             "const double exact = replaced ? 2 * norm / static_cast<double>(micro_batch) : norm;",
             case("micro_batch")),
    Mutation("a user has one row less", "sampling/poisson.cc",
             "const auto k = static_cast<double>(plan.rows_per_user);",
             "const auto k = static_cast<double>(plan.rows_per_user) - 1;",
             case("users")),
    Mutation("half of the steps are accounted", "noise/independent_noise.cc",
             "const std::int64_t events = (last - 1) / unit - first / unit + 1;",
             "const std::int64_t events = ((last - 1) / unit - first / unit + 2) / 2;",
             case("poisson")),
    Mutation("Laplace noise on gradients has the scale of one number", "noise/laplace.cc",
             "double UnitOfDistance(double coordinates) const override { return "
             "std::sqrt(coordinates); }",
             "double UnitOfDistance(double) const override { return 0.5; }",
             case("noise_laplace")),
    Mutation("the sensitivity of a matrix is that of independent noise",
             "noise/internal/correlation.cc",
             "found.sensitivity = strategy->Sensitivity(of_event);", "found.sensitivity = 1;",
             case("correlated_run")),
]
