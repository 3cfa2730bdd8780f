// Clipped sums of parts of one size, recorded once and replayed (device/recorded_graph.h).
//
// A recording holds for one loss function, one policy, one size of a part and the memory of the
// parameters; a part that differs in any of them is computed one operation at a time, or recorded
// anew. Which examples of a part are padding is said by a mask in the memory of the device, so that
// one recording serves parts of any number of examples up to its size.
#ifndef SORDINO_GRADIENTS_INTERNAL_RECORDED_SUMS_H_
#define SORDINO_GRADIENTS_INTERNAL_RECORDED_SUMS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/device/recorded_graph.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/internal/part_clipper.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

class RecordedSums {
 public:
  using Recorder = std::function<std::unique_ptr<RecordedGraph>(const c10::Device& device,
                                                                const std::function<void()>&)>;

  // `parts` lives longer.
  explicit RecordedSums(PartClipper& parts, Recorder recorder = RecordGraph);
  ~RecordedSums();

  // The totals of a part that is padded to `size` examples, by a replay. Nothing where such a part
  // was not computed before, or cannot be recorded: then it is for PartClipper::Sum at this size.
  //
  // With `may_lend` the totals lie where a replay writes them, and nothing is copied. They are the
  // caller's all the same: where they are still held when the next sum is asked for, that one is
  // not replayed, and from then on totals are copies.
  std::optional<Totals> Sum(const LossFunction& loss, const Batch& batch,
                            const ClippingPolicy& policy, std::int64_t size, bool may_lend = false);

  // Whether what a policy clips by is the same in every step.
  static bool Takes(const ClippingPolicy& policy);

  // Why sums are not recorded, as a sentence; empty while they are or may be.
  const std::string& problem() const { return problem_; }
  bool has_replayed() const { return has_replayed_; }

 private:
  struct Recording;

  Recording* Find(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                  std::int64_t size);
  void Record(Recording& recording, const LossFunction& loss, const Batch& batch,
              const ClippingPolicy& policy);
  // The part is computed one operation at a time, and after some failures all are.
  void Failed(const std::exception& error);

  PartClipper& parts_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Recording>> recordings_;
  std::string problem_;
  int failures_ = 0;
  bool lends_ = true;
  bool has_replayed_ = false;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_RECORDED_SUMS_H_
