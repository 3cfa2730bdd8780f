#include "sordino/random/discrete_laplace.h"

#include "sordino/base/quantity.h"
#include "sordino/random/internal/envelope.h"

namespace sordino {
namespace {

constexpr double kLaplaceReach = 26;

double CheckedScale(double scale) {
  CheckRange("the scale of the discrete Laplace", scale, DiscreteLaplace::kMinScale, false,
             DiscreteLaplace::kMaxScale, false);
  return scale;
}

}  // namespace

DiscreteLaplace::DiscreteLaplace(double scale)
    : scale_(CheckedScale(scale)),
      sampler_(std::make_shared<internal::EnvelopeSampler>(internal::EnvelopeShape::kLaplace, scale,
                                                           kLaplaceReach)) {}

std::int64_t DiscreteLaplace::operator()(Generator& generator) const {
  std::int64_t value = 0;
  Fill(generator, {&value, 1});
  return value;
}

void DiscreteLaplace::Fill(Generator& generator, std::span<std::int64_t> out) const {
  sampler_->Fill(generator, out);
}

}  // namespace sordino
