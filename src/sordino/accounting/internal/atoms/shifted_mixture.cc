#include "sordino/accounting/internal/atoms/shifted_mixture.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sordino {
namespace {

double HitOf(const GaussianMixtureDensity::Parts& parts) {
  double hit = 0;
  for (const auto& [shift, probability] : parts) hit += shift != 0 ? probability : 0;
  return hit;
}

NormalTail TailAt(double z) { return {0.5 * std::erfc(std::abs(z) / std::numbers::sqrt2), z >= 0}; }

// The mass of the standard normal between the places of two tails.
double Between(const NormalTail& a, const NormalTail& b) {
  if (a.above && b.above) return a.mass - b.mass;
  if (!a.above && !b.above) return b.mass - a.mass;
  return 1 - a.mass - b.mass;
}

}  // namespace

MixtureForm FormOf(const GaussianMixtureDensity& density) {
  if (density.max_denominator_shift() == 0 && HitOf(density.numerator()) < 1)
    return MixtureForm::kRemove;
  if (density.max_numerator_shift() == 0 && HitOf(density.denominator()) < 1)
    return MixtureForm::kAdd;
  return MixtureForm::kOther;
}

ShiftedMixture::ShiftedMixture(const GaussianMixtureDensity& density, bool with_offset)
    : density_(density), form_(with_offset ? FormOf(density) : MixtureForm::kOther) {
  if (form_ == MixtureForm::kOther) return;
  const GaussianMixtureDensity::Parts& parts = Parts();
  hit_ = HitOf(parts);
  log_odds_ = std::log((1 - hit_) / hit_);
  offset_ = form_ == MixtureForm::kRemove ? std::log1p(-hit_) : -std::log1p(-hit_);
  if (parts.size() == 2 && parts[0].first == 0) shift_ = std::abs(parts[1].first);
}

double ShiftedMixture::At(double x) const {
  if (form_ == MixtureForm::kOther) return density_.Loss(x);
  double sum = 0;
  for (const auto& [shift, probability] : Parts()) {
    if (shift == 0) continue;
    sum +=
        probability * std::exp(shift * (2 * x - shift) / (2 * density_.sigma() * density_.sigma()));
  }
  const double t = std::log1p(sum / (1 - hit_));
  return form_ == MixtureForm::kRemove ? t : -t;
}

double ShiftedMixture::CoordinateOf(double t, double log_growth) const {
  if (shift_ == 0) return density_.CoordinateOf(offset_ + t);
  const double z = log_growth + log_odds_;
  const double x = z * density_.sigma() * density_.sigma() / shift_ + 0.5 * shift_;
  return form_ == MixtureForm::kRemove ? x : -x;
}

MixtureMasses::MixtureMasses(const ShiftedMixture& mixture, double weight)
    : mixture_(mixture), weight_(weight) {
  Add(mixture.density().numerator(), &Part::p);
  Add(mixture.density().denominator(), &Part::q);
  const auto at_zero =
      std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.shift == 0; });
  if (at_zero == parts_.end()) {
    zero_ = parts_.size();
    parts_.push_back({0});
  } else {
    zero_ = static_cast<std::size_t>(at_zero - parts_.begin());
  }
}

void MixtureMasses::At(double x, std::vector<NormalTail>& tails) const {
  tails.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    tails[i] = TailAt((x - parts_[i].shift) / mixture_.density().sigma());
  }
}

MixtureShare MixtureMasses::Of(const std::vector<NormalTail>& a,
                               const std::vector<NormalTail>& b) const {
  MixtureShare share;
  double hit = 0;  // of the side that has moved
  // The weights of P and of Q sum to one each, so the part at zero may be subtracted.
  const double stay = std::max(0.0, Between(a[zero_], b[zero_]));
  double more = 0;  // P-mass less Q-mass
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const double mass = i == zero_ ? stay : std::max(0.0, Between(a[i], b[i]));
    share.p += parts_[i].p * mass;
    share.q += parts_[i].q * mass;
    if (i == zero_) continue;
    hit += (parts_[i].p + parts_[i].q) * mass;
    more += (parts_[i].p - parts_[i].q) * (mass - stay);
  }
  switch (mixture_.form()) {
    case MixtureForm::kRemove:
      share.loss = std::log1p(hit / ((1 - mixture_.hit()) * stay));
      break;
    case MixtureForm::kAdd:
      share.loss = -std::log1p(hit / ((1 - mixture_.hit()) * stay));
      break;
    case MixtureForm::kOther:
      share.loss = std::log1p(more / share.q);
      break;
  }
  share.p *= weight_;
  share.q *= weight_;
  return share;
}

void MixtureMasses::Add(const GaussianMixtureDensity::Parts& parts, double Part::*side) {
  for (const auto& [shift, probability] : parts) {
    const double place = shift;
    auto found = std::find_if(parts_.begin(), parts_.end(),
                              [&](const Part& part) { return part.shift == place; });
    if (found == parts_.end()) found = parts_.insert(parts_.end(), Part{shift});
    (*found).*side += probability;
  }
}

}  // namespace sordino
