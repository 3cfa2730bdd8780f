#include "sordino/training/internal/made_up_records.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino::internal {
namespace {

TEST(MadeUpRecords, DependOnTheDeclarationAlone) {
  Dataset one = RandomFeatures(30, 5, 1);
  Dataset other = RandomFeatures(7, 5, 2);
  const Batch batch = MadeUpRecords(one, {});
  at::manual_seed(99);
  const Batch again = MadeUpRecords(other, {});
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_TRUE(at::equal(batch[0], again[0]));
  EXPECT_TRUE(at::equal(batch[1], again[1]));
  EXPECT_EQ(batch[0].size(1), 5);
  EXPECT_LT(batch[1].max().item<std::int64_t>(),
            std::max<std::int64_t>(one.declaration.classes, 1));
}

TEST(MadeUpRecords, TextsAreNeverOfPaddingAlone) {
  Dataset data;
  data.declaration.name = "texts";
  data.declaration.kind = InputKind::kTokens;
  data.declaration.shape = {9};
  data.declaration.classes = 2;
  data.declaration.vocabulary = 30;
  data.inputs = at::zeros({4, 9}, at::kLong);
  data.labels = at::zeros({4}, at::kLong);
  const Batch batch = MadeUpRecords(data, {});
  EXPECT_TRUE((batch[0].select(1, 0) > 0).all().item<bool>());
  EXPECT_LT(batch[0].max().item<std::int64_t>(), 30);
  EXPECT_TRUE((batch[0].select(1, 8) == 0).any().item<bool>());
}

// Charges, errors and weights of a run whose last record makes the loss throw, or is not there.
TEST(MadeUpRecords, ARunShowsNothingOfARecordThatFails) {
  constexpr std::int64_t kRecords = 8;
  const auto train = [](bool with_record) {
    Dataset data = RandomFeatures(kRecords, 3, 1);
    data.inputs[kRecords - 1][0] = 50;
    if (!with_record) data = FirstRecords(data, kRecords - 1);
    const Weights weights(3);
    const LossFunction loss = [&](const Batch& batch) {
      // Fails for entries above 40.
      const at::Tensor place = (batch[0].select(1, 0) > 40).to(at::kLong) * 7;
      const at::Tensor known = at::index_select(at::ones({2}), 0, place);
      return at::matmul(batch[0], weights.value) * known;
    };
    std::vector<double> result;
    TrainerOptions options;
    options.insecure_seed = 4;
    options.charge = [&](std::int64_t, const Event&) { result.push_back(-1); };
    const PrivacyPlan plan(FullBatch(kRecords, 3), NoiseMultiplier(1e-3), Delta(1e-5));
    Trainer trainer(plan, weights.Named(), loss, data, {.learning_rate = 0.1}, options);
    trainer.Run();
    for (std::int64_t k = 0; k < 3; ++k) result.push_back(weights.value[k].item<double>());
    return result;
  };
  const std::vector<double> with = train(true);
  const std::vector<double> without = train(false);
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t k = 0; k < with.size(); ++k) EXPECT_NEAR(with[k], without[k], 1e-5) << k;
}

}  // namespace
}  // namespace sordino::internal
