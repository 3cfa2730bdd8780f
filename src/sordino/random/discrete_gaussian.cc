#include "sordino/random/discrete_gaussian.h"

#include "sordino/base/quantity.h"
#include "sordino/random/internal/envelope.h"

namespace sordino {
namespace {

double CheckedSigma(double sigma) {
  CheckRange("sigma of the discrete Gaussian", sigma, DiscreteGaussian::kMinSigma, false,
             DiscreteGaussian::kMaxSigma, false);
  return sigma;
}

}  // namespace

DiscreteGaussian::DiscreteGaussian(double sigma)
    : sigma_(CheckedSigma(sigma)),
      sampler_(std::make_shared<internal::EnvelopeSampler>(internal::EnvelopeShape::kGaussian,
                                                           sigma, internal::kGaussianReach)) {}

std::int64_t DiscreteGaussian::operator()(Generator& generator) const {
  std::int64_t value = 0;
  Fill(generator, {&value, 1});
  return value;
}

void DiscreteGaussian::Fill(Generator& generator, std::span<std::int64_t> out) const {
  sampler_->Fill(generator, out);
}

std::int64_t DiscreteGaussian::LargestMagnitude() const { return sampler_->Period() - 1; }

}  // namespace sordino
