// The records that a trainer holds out, and what it counts of them (adaptive_noise.h).
#ifndef SORDINO_TRAINING_INTERNAL_HELD_OUT_RECORDS_H_
#define SORDINO_TRAINING_INTERNAL_HELD_OUT_RECORDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/data/batch_loader.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/private_value.h"
#include "sordino/random/random_source.h"

namespace sordino {

// Streams of held-out records: who they are, and the noise on their counts. Those of
// random_source.h end before.
inline constexpr std::uint32_t kHoldOutStream = kCanaryStream + 1;
inline constexpr std::uint32_t kHeldOutNoiseStream = kCanaryStream + 2;

class HeldOutRecords {
 public:
  // Holds out a share of the records of the data, each by a coin of its own from `coins`.
  HeldOutRecords(const Dataset& data, c10::Device device, double share, Generator& coins);

  std::uint64_t trained() const { return trained_.size(); }
  // From places among the records that are trained on to places in the data.
  void FindRecords(std::vector<std::uint64_t>& indices) const;
  // Held-out records for which `indicator` gives more than 1/2 (gradients/example_count.h), of
  // those that process `rank` of `ranks` looks at; which examples it sees beside each other does
  // not depend on the number of processes.
  PrivateValue<std::int64_t> Count(const LossFunction& indicator, bool one_by_one, int rank = 0,
                                   int ranks = 1);

 private:
  std::vector<std::uint64_t> held_out_;  // rising
  std::vector<std::uint64_t> trained_;   // the others
  std::unique_ptr<BatchLoader> loader_;
};

// A count with Gaussian noise of this standard deviation.
double NoisedCount(const PrivateValue<std::int64_t>& count, NoiseMultiplier noise,
                   Generator& stream);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_HELD_OUT_RECORDS_H_
