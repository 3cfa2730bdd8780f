// Saving an optimizer's state and going on with it.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/optimizers/testing/optimizer_cases.h"

namespace sordino {
namespace {

// Float32, and a gradient that lies in memory as its transpose: how a state is laid out may not
// show.
class SavedRun {
 public:
  static constexpr std::int64_t kSteps = 40;

  explicit SavedRun(const OptimizerOptions& options)
      : a_(at::ones({5, 7}).set_requires_grad(true)),
        b_(Parameter({1, -2, 3}, at::kFloat)),
        optimizer_({{"a", a_}, {"layer.b", b_}}, options, kSteps) {}

  void StepTo(std::int64_t last) {
    while (optimizer_.steps_done() < last) {
      std::mt19937_64 random(static_cast<std::uint64_t>(optimizer_.steps_done()));
      const Numbers a = Normal(random, 35);
      const Numbers b = Normal(random, 3);
      const auto tensor = [](const Numbers& values) {
        return at::tensor(at::ArrayRef<double>(values)).to(at::kFloat);
      };
      optimizer_.Step(Noised({tensor(a).view({7, 5}).t(), tensor(b)}));
    }
  }
  NamedTensors Save() const { return optimizer_.SaveState(); }
  void Restore(const SavedRun& other, const NamedTensors& state, std::int64_t steps) {
    const at::NoGradGuard no_grad;
    a_.copy_(other.a_);
    b_.copy_(other.b_);
    optimizer_.RestoreState(state, steps);
  }
  bool operator==(const SavedRun& other) const {
    return a_.equal(other.a_) && b_.equal(other.b_) &&
           optimizer_.steps_done() == other.optimizer_.steps_done();
  }
  Optimizer& optimizer() { return optimizer_; }

 private:
  at::Tensor a_;
  at::Tensor b_;
  Optimizer optimizer_;
};

class OptimizerState : public testing::TestWithParam<OptimizerCase> {};

TEST_P(OptimizerState, GoesOnBitForBitWhereItWasSaved) {
  for (const double radius : {0.0, 4.0}) {
    for (const double decay : {0.0, 0.9}) {
      OptimizerOptions options = GetParam().options;
      options.projection_radius = radius;
      options.average_decay = decay;
      for (const std::int64_t saved_at : {0, 1, 17, 39, 40}) {
        SavedRun whole(options);
        whole.StepTo(saved_at);
        const NamedTensors state = whole.Save();
        SavedRun restored(options);
        restored.Restore(whole, state, saved_at);
        for (std::int64_t step = saved_at; step <= SavedRun::kSteps; ++step) {
          whole.StepTo(step);
          restored.StepTo(step);
          ASSERT_TRUE(whole == restored) << "saved at " << saved_at << ", at step " << step;
        }
        const Optimizer::AveragedWeights of_whole(whole.optimizer());
        const Optimizer::AveragedWeights of_restored(restored.optimizer());
        EXPECT_TRUE(whole == restored) << "the averages";
      }
    }
  }
}

TEST_P(OptimizerState, IsACopyThatLaterStepsDoNotChange) {
  OptimizerOptions options = GetParam().options;
  options.average_decay = 0.9;
  SavedRun run(options);
  run.StepTo(5);
  const NamedTensors state = run.Save();
  NamedTensors before;
  for (const auto& [name, tensor] : state) before.emplace_back(name, tensor.clone());
  EXPECT_GE(state.size(), 2U);
  run.StepTo(9);
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(state[i].second.equal(before[i].second)) << state[i].first;
  }
  // And what was restored is not changed by the steps after it.
  SavedRun restored(options);
  restored.Restore(run, state, 5);
  restored.StepTo(9);
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(state[i].second.equal(before[i].second)) << state[i].first;
  }
}

TEST_P(OptimizerState, OfAnotherRunIsRefusedAndChangesNothing) {
  OptimizerOptions options = GetParam().options;
  options.average_decay = 0.9;
  SavedRun saved(options);
  saved.StepTo(5);
  const NamedTensors state = saved.Save();
  const auto refuses = [&](const NamedTensors& wrong, std::int64_t steps) {
    SavedRun run(options);
    const SavedRun fresh(options);
    try {
      run.optimizer().RestoreState(wrong, steps);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      const std::string sentence = error.what();
      EXPECT_EQ(sentence.back(), '.') << sentence;
      EXPECT_EQ(sentence.find(". "), std::string::npos) << sentence;
    }
    EXPECT_TRUE(run == fresh);
    const NamedTensors now = run.Save();
    const NamedTensors then = fresh.Save();
    ASSERT_EQ(now.size(), then.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
      EXPECT_TRUE(now[i].second.equal(then[i].second)) << now[i].first;
    }
  };
  refuses(state, -1);
  refuses(state, SavedRun::kSteps + 1);
  for (std::size_t i = 0; i < state.size(); ++i) {
    NamedTensors wrong = state;
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
    refuses(wrong, 5);
    wrong = state;
    wrong[i].second = at::ones({2, 2}, state[i].second.scalar_type());
    refuses(wrong, 5);
    wrong = state;
    wrong[i].second = state[i].second.to(at::kDouble);
    refuses(wrong, 5);
    wrong = state;
    wrong[i].second = at::Tensor();
    refuses(wrong, 5);
    wrong = state;
    wrong[i].first += "x";
    refuses(wrong, 5);
    wrong = state;
    wrong.push_back(state[i]);
    refuses(wrong, 5);
  }
  if (options.algorithm.name != "sgd") refuses(state, 6);
  saved.StepTo(6);
  EXPECT_THROW(saved.optimizer().RestoreState(state, 5), Error) << "it has begun";
  const Optimizer::AveragedWeights averaged(saved.optimizer());
  EXPECT_THROW(saved.Save(), Error) << "the parameters are not its own now";
}

INSTANTIATE_TEST_SUITE_P(Optimizer, OptimizerState, testing::ValuesIn(OptimizerCasesOfAllKinds()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace sordino
