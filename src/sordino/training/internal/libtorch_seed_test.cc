#include "sordino/training/internal/libtorch_seed.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "sordino/training/testing/distributed_cases.h"
#include "sordino/training/testing/takes_turns.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

at::Tensor DrawsAfter(std::uint64_t seed) {
  InsecureSeededGenerator generator(seed);
  SeedLibtorch(generator);
  return at::rand({4096});
}

TEST(SeedLibtorch, GivesTheSameNumbersForTheSameStream) {
  EXPECT_TRUE(DrawsAfter(3).equal(DrawsAfter(3)));
  EXPECT_FALSE(DrawsAfter(3).equal(DrawsAfter(4)));
}

// A seed of libtorch's CPU generator would be told by its low 32 bits: here no seed of that kind
// gives the numbers, and the state differs in most words.
TEST(SeedLibtorch, FillsTheWholeState) {
  InsecureSeededGenerator generator(5);
  SeedLibtorch(generator);
  const at::Tensor state = at::globalContext().defaultGenerator(at::kCPU).get_state();
  at::manual_seed(InsecureSeededGenerator(5).Next64());
  const at::Tensor of_seed = at::globalContext().defaultGenerator(at::kCPU).get_state();
  EXPECT_GT(state.ne(of_seed).sum().item<std::int64_t>(), 2000);
}

// Five standard deviations: a false alarm in 1.7 million runs.
TEST(SeedLibtorch, LeavesUniformNumbers) {
  const at::Tensor draws = DrawsAfter(6).to(at::kDouble);
  EXPECT_NEAR(draws.mean().item<double>(), 0.5, 5 / std::sqrt(12.0 * 4096));
  EXPECT_NEAR(draws.square().mean().item<double>(), 1.0 / 3, 5 * std::sqrt(4.0 / 45 / 4096));
}

at::Tensor StateOfGenerator() { return at::globalContext().defaultGenerator(at::kCPU).get_state(); }

// Whether some thousand draws lead from one state to the other. The words stay for 624 draws, and
// then all are mixed.
bool LeadsTo(const at::Tensor& state, const at::Tensor& later) {
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_state(state);
  for (int mixes = 0; mixes < 8; ++mixes) {
    if (generator.get_state().ne(later).sum().item<std::int64_t>() < 200) return true;
    static_cast<void>(at::rand({624}, generator, at::kFloat));
  }
  return false;
}

// What is shown between two steps may be computed back to the state of the generator. It must not
// be the one that a step before it or after it draws from.
void ExpectStepsDrawFromStatesOfTheirOwn(Communicator* communicator, bool seeded) {
  const Weights weights(6);
  std::vector<at::Tensor> in_step;  // at the passes of the step in hand
  const LossFunction losses = [&](const Batch& batch) {
    in_step.push_back(StateOfGenerator());
    return at::matmul(at::dropout(batch[0], 0.5, /*train=*/true), weights.value);
  };
  TrainerOptions options;
  options.communicator = communicator;
  if (seeded) options.insecure_seed = 3;
  const PrivacyPlan plan(FullBatch(40, 3), NoiseMultiplier(1), Delta(1e-5));
  Trainer trainer(plan, weights.Named(), losses, RandomFeatures(40, 6, 1), {}, options);
  if (communicator != nullptr && !communicator->IsFirst()) return trainer.Serve();
  at::Tensor shown;  // from before the step, where there is one
  while (trainer.steps_done() < plan.steps()) {
    in_step.clear();
    trainer.Step();
    ASSERT_FALSE(in_step.empty());
    if (shown.defined()) {
      EXPECT_FALSE(LeadsTo(shown, in_step.front()));
    }
    shown = StateOfGenerator();
    EXPECT_FALSE(LeadsTo(in_step.front(), shown));
    EXPECT_FALSE(LeadsTo(in_step.back(), shown));
    static_cast<void>(at::rand({2}));
    EXPECT_TRUE(LeadsTo(shown, StateOfGenerator()));
  }
}

TEST(SeedLibtorch, GivesStepsNumbersThatWhatRunsBetweenThemDoesNotShow) {
  for (const bool seeded : {false, true}) {
    SCOPED_TRACE(seeded);
    ExpectStepsDrawFromStatesOfTheirOwn(nullptr, seeded);
    RunRanks(3, [&](Communicator& all) {
      TakesTurns communicator(all);
      ExpectStepsDrawFromStatesOfTheirOwn(&communicator, seeded);
    });
  }
}

}  // namespace
}  // namespace sordino
