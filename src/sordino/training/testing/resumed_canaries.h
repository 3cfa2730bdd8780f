// A run with canaries that is stopped and resumed.
#ifndef SORDINO_TRAINING_TESTING_RESUMED_CANARIES_H_
#define SORDINO_TRAINING_TESTING_RESUMED_CANARIES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {

// make(weights) is a seeded trainer of `size` weights with more than three steps. Stopped after the
// third and resumed, it has the coins and scores of one that is left alone.
inline void ExpectCanariesAreResumed(std::int64_t size,
                                     const std::function<Trainer(Weights&)>& make) {
  Weights whole(size);
  Trainer left_alone = make(whole);
  left_alone.Run();
  Weights first(size);
  Trainer stopped = make(first);
  stopped.Run([](std::int64_t steps) { return steps < 3; });
  Weights second(size);
  Trainer resumed = make(second);
  resumed.RestoreState(stopped.SaveState(), 3);
  resumed.Run();
  EXPECT_EQ(resumed.canary_scores().is_in, left_alone.canary_scores().is_in);
  EXPECT_EQ(resumed.canary_scores().every_update, left_alone.canary_scores().every_update);
  EXPECT_EQ(resumed.canary_scores().last_model, left_alone.canary_scores().last_model);
}

}  // namespace sordino

#endif  // SORDINO_TRAINING_TESTING_RESUMED_CANARIES_H_
