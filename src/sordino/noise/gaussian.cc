// Gaussian noise: the event is gaussian(z), its unit the L2 distance of neighbouring sums. Noise
// that is correlated between steps is an option of it (internal/correlation.h).
//
// How near draws are to the Gaussian that is accounted. A draw is a discrete Gaussian of sigma >=
// 2^39 (random/discrete_gaussian.h), rounded to a coarser grid (gradient_noise.h). A continuous
// Gaussian rounded to the integers is post-processing of the Gaussian mechanism, and the two are
// close: the ratio of their probabilities at x is, up to a constant, E exp(-(2 x u + u^2) / (2
// sigma^2)) for u uniform in [-1/2, 1/2], which lies in [1 - 1 / (8 sigma^2), exp(x^2 / (24
// sigma^4))]. For |x| <= 13 sigma its logarithm varies by less than e = 7.2 / sigma^2. So n draws
// have a Kullback-Leibler divergence of at most n e^2 / 2 and by Pinsker's inequality a distance in
// total variation of at most e sqrt(n) / 2 < 2^-76 sqrt(n). What the samplers leave out, the tails
// beyond 13 sigma and what a device does not decide exactly, is below 2^-120 a draw for both of
// them (TotalVariationBound() of discrete_gaussian.h and indexed_gaussian.h); 2^-119 n is added.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "sordino/noise/internal/correlation.h"
#include "sordino/noise/noise_component.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/random/indexed_gaussian.h"

namespace sordino {
namespace {

class GaussianDraws : public NoiseDraws {
 public:
  explicit GaussianDraws(double scale) : sampler_(scale) {}
  void Fill(Generator& generator, std::span<std::int64_t> out) const override {
    sampler_.Fill(generator, out);
  }

 private:
  DiscreteGaussian sampler_;
};

constexpr OptionSpec kCorrelation{
    .key = "noise-correlation",
    .flag = "--noise-correlation",
    .value_name = "S",
    .help =
        "How noise is correlated between steps: auto, banded:B, blt:K, bisr:P, bifr:P, tree or "
        "none",
    .what = "the correlation of the noise",
    .type = OptionType::kText,
    .fallback = std::string_view("none")};
constexpr const OptionSpec* kGaussianOptions[] = {&kCorrelation};

class Gaussian : public IndependentNoise {
 public:
  Gaussian()
      : IndependentNoise({.name = "gaussian",
                          .help = "of standard deviation z C",
                          .options = kGaussianOptions}) {}

  void Check(const OptionValues& options) const override {
    internal::CheckCorrelation(options.Text(kCorrelation));
  }
  std::int64_t Bands(const OptionValues& options, std::int64_t steps) const override {
    return internal::CorrelatedBands(options.Text(kCorrelation), steps);
  }
  bool IsOpen(const OptionValues& options) const override {
    return options.Text(kCorrelation) == internal::kChosenCorrelation;
  }
  OptionValues Chosen(const OptionValues& options, const NoiseQuestion& budget) const override {
    OptionValues chosen = options;
    chosen.Set(kCorrelation.key, internal::ChooseCorrelation(budget));
    return chosen;
  }
  std::string Description(const OptionValues& options) const override {
    const std::string text = options.Text(kCorrelation);
    return text == "none" ? "gaussian" : fmt::format("correlated gaussian ({})", text);
  }

  // ---- Noise that is correlated between steps
  // ----------------------------------------------------
  void CheckTerms(const NoiseTerms& terms) const override {
    if (IsIndependent(terms.options)) return;
    internal::CheckCorrelated(terms, terms.options.Text(kCorrelation));
  }
  NoiseMemory Memory(const NoiseTerms& terms) const override {
    if (IsIndependent(terms.options)) return {};
    return internal::CorrelationOf(terms, terms.options.Text(kCorrelation)).memory;
  }
  std::int64_t StepsPerEvent(const NoiseTerms& terms) const override {
    if (IsIndependent(terms.options)) return IndependentNoise::StepsPerEvent(terms);
    return internal::CorrelationOf(terms, terms.options.Text(kCorrelation)).steps_per_event;
  }
  Event EventOf(const NoiseTerms& terms, std::int64_t first, std::int64_t last) const override {
    if (IsIndependent(terms.options)) return IndependentNoise::EventOf(terms, first, last);
    return internal::CorrelationOf(terms, terms.options.Text(kCorrelation))
        .EventOf(terms, first, last);
  }

  Event Release(NoiseMultiplier noise, Adjacency adjacency) const override {
    return Event::Gaussian(noise, adjacency);
  }
  bool IsGaussian() const override { return true; }
  double UnitOfDistance(double) const override { return 1; }
  double UnitOfRounding(double coordinates) const override { return std::sqrt(coordinates); }
  double DeviationOfScale() const override { return 1; }
  std::unique_ptr<NoiseDraws> Draws(double scale) const override {
    return std::make_unique<GaussianDraws>(scale);
  }
  bool DrawsByIndex() const override { return true; }
  double Distance(double draws) const override {
    static_assert(DiscreteGaussian::TotalVariationBound() <= 0x1p-120 &&
                  IndexedGaussian::TotalVariationBound() <= 0x1p-120);
    return std::sqrt(draws) * 0x1p-76 + draws * 0x1p-119;
  }
};

}  // namespace

const NoiseComponent& GaussianNoise() {
  static const Gaussian component;
  return component;
}

}  // namespace sordino
