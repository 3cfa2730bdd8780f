// Clipped sums of which a process computes some chunks (fixed_point_sum.h).
//
// What a chunk adds up to depends on its examples, the parameters and the number of libtorch's
// threads alone: not on other chunks, and not on what was computed or measured before. (An
// exception are models that need GradientOptions::fallback for some batches and not for others.)
#ifndef SORDINO_GRADIENTS_CHUNKED_CLIPPER_H_
#define SORDINO_GRADIENTS_CHUNKED_CLIPPER_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sordino/gradients/chunks.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

class JlDirections;
struct JlOptions;

class ChunkedClipper {
 public:
  // options.physical_batch: examples of a chunk; 0 for the usual number.
  explicit ChunkedClipper(std::vector<NamedParameter> parameters, GradientOptions options = {},
                          SumOptions sum = {});
  // By estimated norms (jl_clipping.h). The failure probability is that of a step.
  ChunkedClipper(std::vector<NamedParameter> parameters, const JlOptions& options);
  ~ChunkedClipper();
  ChunkedClipper(ChunkedClipper&&) noexcept;
  ChunkedClipper& operator=(ChunkedClipper&&) noexcept;

  // How batches are cut.
  const ChunkOptions& chunks() const;

  // Of every sum under this policy. Throws Error where none is proven.
  L2Sensitivity Sensitivity(const ClippingPolicy& policy) const;

  // The sum of the chunks that `next` returns, until it returns none; empty ones add nothing. All
  // processes together sum the chunks of a batch of so many examples, as chunks() and
  // sum.largest_batch cut it (chunks.h). Estimated norms need directions, the same in all
  // processes.
  FixedPointSum Sum(const LossFunction& loss, std::int64_t examples,
                    const std::function<std::optional<Batch>()>& next, const ClippingPolicy& policy,
                    const JlDirections* directions = nullptr);

  // TrainedParameters of those that were given.
  const std::vector<NamedParameter>& parameters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_CHUNKED_CLIPPER_H_
