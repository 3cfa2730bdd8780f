// How the norms of a training run are found: exactly, or estimated with a probability to fail that
// the plan pays for.
//
// A new way is a file that defines a class derived from NormsComponent and a function that returns
// it, and a line in norms_list.inc.
#ifndef SORDINO_CLIPPING_NORMS_COMPONENT_H_
#define SORDINO_CLIPPING_NORMS_COMPONENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/chunked_clipper.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/random/random_source.h"

namespace sordino {

// The clipped sums of a run.
class StepClipper {
 public:
  virtual ~StepClipper() = default;

  virtual BoundedSum Sum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                         std::int64_t step, RandomSource& random) = 0;
  // TrainedParameters of those that it was made for.
  virtual const std::vector<NamedParameter>& parameters() const = 0;
  // Whether what it measured in a batch decides how it computes later ones.
  virtual bool LearnsFromBatches() const = 0;
};

// Those of several processes, each of which sums some chunks of a batch.
class StepChunks {
 public:
  explicit StepChunks(ChunkedClipper clipper) : clipper_(std::move(clipper)) {}
  virtual ~StepChunks() = default;

  // As that of ChunkedClipper. Every process calls it once in a step, with or without chunks, and
  // `random` is one that all of them share.
  virtual FixedPointSum Sum(const LossFunction& loss, std::int64_t examples,
                            const std::function<std::optional<Batch>()>& next,
                            const ClippingPolicy& policy, std::int64_t step,
                            RandomSource& random) = 0;
  const ChunkOptions& chunks() const { return clipper_.chunks(); }
  const std::vector<NamedParameter>& parameters() const { return clipper_.parameters(); }
  L2Sensitivity Sensitivity(const ClippingPolicy& policy) const {
    return clipper_.Sensitivity(policy);
  }

 protected:
  ChunkedClipper& clipper() { return clipper_; }

 private:
  ChunkedClipper clipper_;
};

class NormsComponent : public Component {
 public:
  using Component::Component;

  virtual bool AreExact() const { return true; }
  // Probability (accounting/failures.h) that in one of so many steps the sensitivity of a sum does
  // not hold for one of the `rows` of a user, in a model of up to `parameters`.
  virtual double Failure(double steps, double rows, double parameters,
                         const OptionValues& options) const;
  // Throws Error where the sensitivity is not proven.
  virtual void CheckMicroBatch(std::int64_t micro_batch) const;

  virtual std::unique_ptr<StepClipper> Start(std::vector<NamedParameter> parameters,
                                             const GradientOptions& gradients,
                                             const SumOptions& sum,
                                             const OptionValues& options) const = 0;

  // The same for batches that several processes sum.
  virtual std::unique_ptr<StepChunks> StartChunks(const std::vector<NamedParameter>& parameters,
                                                  const GradientOptions& gradients,
                                                  const SumOptions& sum,
                                                  const OptionValues& options) const = 0;

  // For the description of a plan: "norms estimated from 64 directions"; empty where norms are
  // exact.
  virtual std::string Description(const OptionValues& options) const;
  // What is assumed and not proven, a sentence for the statement of a run; empty for nothing.
  virtual std::string Assumption() const;
};

const Registry<NormsComponent>& NormMethods();

}  // namespace sordino

#endif  // SORDINO_CLIPPING_NORMS_COMPONENT_H_
