// Directions of a run that is not seeded: a generator of the operating system gives no stream
// twice.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "sordino/clipping/norms_component.h"
#include "sordino/gradients/norm_clipping.h"

namespace sordino {
namespace {

// Gradients of one large coordinate and a small one of their own. Estimates from the same
// directions are equal to a percent, and so are the small coordinates of the sum; those from others
// differ.
struct Marked {
  static constexpr std::int64_t kRecords = 6;

  explicit Marked(std::int64_t size) {
    weights = at::zeros({size}).set_requires_grad(true);
    at::Tensor inputs = at::zeros({kRecords, size});
    inputs.select(1, 0).fill_(50);
    inputs.slice(1, 1, kRecords + 1).fill_diagonal_(0.1);
    batch = {inputs};
    loss = [own = weights](const Batch& rows) { return at::matmul(rows[0], own); };
  }

  // The largest small coordinate of a sum over the smallest.
  static double Spread(const at::Tensor& sum) {
    const at::Tensor own = sum.slice(0, 1, kRecords + 1).abs();
    return own.max().item<double>() / own.min().item<double>();
  }

  at::Tensor weights;
  Batch batch;
  LossFunction loss;
};

TEST(EstimatedNorms, HaveTheSameDirectionsInAllPartsOfABatch) {
  const NormsComponent& jl = NormMethods().Find("jl");
  const FlatClipping policy(ClipNorm(1));
  // 24 directions of 2^20 coordinates are more than are kept in memory.
  for (const std::int64_t size : {std::int64_t{40}, std::int64_t{1} << 20}) {
    const Marked model(size);
    const std::vector<NamedParameter> parameters = {{"weights", model.weights}};
    const OptionValues options = {{"jl-directions", std::int64_t{24}}, {"jl-failure", 1e-3}};
    const GradientOptions one_by_one{.physical_batch = 1};
    RandomSource random;
    ASSERT_TRUE(random.IsPrivate());
    const auto sums = jl.Start(parameters, one_by_one, {}, options);
    const BoundedSum whole = sums->Sum(model.loss, model.batch, policy, 0, random);
    EXPECT_LT(Marked::Spread(whole.gradients.front()), 1.05);

    const auto chunks = jl.StartChunks(parameters, one_by_one, {}, options);
    std::int64_t next = 0;
    const FixedPointSum sum = chunks->Sum(
        model.loss, Marked::kRecords,
        [&]() -> std::optional<Batch> {
          if (next == Marked::kRecords) return std::nullopt;
          ++next;
          return Slice(model.batch, next - 1, next);
        },
        policy, 0, random);
    EXPECT_LT(Marked::Spread(sum.steps().RevealForAudit().to(at::kDouble)), 1.05);
  }
}

// The same test of two steps, which have directions of their own, so that it can fail.
TEST(EstimatedNorms, HaveOtherDirectionsInEachStep) {
  const NormsComponent& jl = NormMethods().Find("jl");
  const FlatClipping policy(ClipNorm(1));
  const Marked model(40);
  const OptionValues options = {{"jl-directions", std::int64_t{24}}, {"jl-failure", 1e-3}};
  RandomSource random;
  const auto sums = jl.Start({{"weights", model.weights}}, {}, {}, options);
  const auto large = [&](std::int64_t step) {
    return sums->Sum(model.loss, model.batch, policy, step, random)
        .gradients.front()[0]
        .item<double>();
  };
  // A deviation of 14 % each: eight are not all within 2 %.
  const double first = large(0);
  bool differs = false;
  for (std::int64_t step = 1; step < 8; ++step) {
    differs = differs || std::abs(large(step) / first - 1) > 0.02;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace sordino
