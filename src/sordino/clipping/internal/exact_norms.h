// Norms of the gradients themselves (gradients/clipper.h); the ways differ in speed only.
#ifndef SORDINO_CLIPPING_INTERNAL_EXACT_NORMS_H_
#define SORDINO_CLIPPING_INTERNAL_EXACT_NORMS_H_

#include <string_view>
#include <utility>

#include "sordino/clipping/norms_component.h"

namespace sordino {

class ExactStepClipper : public StepClipper {
 public:
  ExactStepClipper(std::vector<NamedParameter> parameters, const GradientOptions& gradients,
                   const SumOptions& sum)
      : clipper_(std::move(parameters), gradients, sum) {}

  BoundedSum Sum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                 std::int64_t /*step*/, RandomSource& /*random*/) override {
    return clipper_.ClippedSum(loss, batch, policy);
  }
  const std::vector<NamedParameter>& parameters() const override { return clipper_.parameters(); }
  bool LearnsFromBatches() const override { return true; }

 private:
  Clipper clipper_;
};

class ExactStepChunks : public StepChunks {
 public:
  using StepChunks::StepChunks;

  FixedPointSum Sum(const LossFunction& loss, std::int64_t examples,
                    const std::function<std::optional<Batch>()>& next, const ClippingPolicy& policy,
                    std::int64_t /*step*/, RandomSource& /*random*/) override {
    return clipper().Sum(loss, examples, next, policy);
  }
};

class ExactNorms : public NormsComponent {
 public:
  ExactNorms(std::string_view name, std::string_view help, NormMethod method)
      : NormsComponent({.name = name, .help = help}), method_(method) {}

  std::unique_ptr<StepClipper> Start(std::vector<NamedParameter> parameters,
                                     const GradientOptions& gradients, const SumOptions& sum,
                                     const OptionValues& /*options*/) const override {
    return std::make_unique<ExactStepClipper>(std::move(parameters), Own(gradients), sum);
  }

  std::unique_ptr<StepChunks> StartChunks(const std::vector<NamedParameter>& parameters,
                                          const GradientOptions& gradients, const SumOptions& sum,
                                          const OptionValues& /*options*/) const override {
    return std::make_unique<ExactStepChunks>(ChunkedClipper(parameters, Own(gradients), sum));
  }

 private:
  GradientOptions Own(GradientOptions gradients) const {
    // The automatic choice leaves what a caller of the trainer chose.
    if (method_ != NormMethod::kAutomatic) gradients.norms = method_;
    return gradients;
  }

  NormMethod method_;
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_INTERNAL_EXACT_NORMS_H_
