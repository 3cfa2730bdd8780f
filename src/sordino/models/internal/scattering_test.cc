#include "sordino/models/internal/scattering.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

at::Tensor Waves(std::int64_t height, std::int64_t width) {
  const at::Tensor y = at::arange(height, at::kDouble).unsqueeze(1);
  const at::Tensor x = at::arange(width, at::kDouble).unsqueeze(0);
  return (0.5 + 0.3 * (0.7 * x + 0.2 * y).sin() + 0.2 * (0.05 * x * y).cos()).to(at::kFloat);
}

double Largest(const at::Tensor& values) { return values.abs().max().item<double>(); }

struct Reference {
  std::int64_t channel;
  std::int64_t row;
  std::int64_t column;
  double value;
};

// kymatio norms a filter with 3.1415 for pi, so its numbers are larger by that for every filter
// that was applied.
double InTheUnitsOfKymatio(double value, std::int64_t channel) {
  const int filters = channel == 0 ? 1 : channel < 17 ? 2 : 3;
  return value * std::pow(std::numbers::pi / 3.1415, filters);
}

// Numbers of kymatio 0.3.0 (numpy, Scattering2D(J=2, L=8)) for Waves.
TEST(Scattering2d, GivesTheNumbersOfKymatio) {
  constexpr std::array<Reference, 12> kSquare = {{{0, 0, 0, 0.897292632},
                                                  {0, 3, 2, 0.65168246},
                                                  {1, 0, 0, 0.0279652452},
                                                  {4, 2, 3, 0.0154035511},
                                                  {8, 1, 1, 0.0426730398},
                                                  {9, 3, 0, 0.0833981807},
                                                  {13, 5, 4, 0.000635154972},
                                                  {16, 2, 2, 0.0810131592},
                                                  {17, 0, 0, 0.00372525116},
                                                  {40, 3, 3, 0.00121207425},
                                                  {63, 6, 1, 0.0018283887},
                                                  {80, 2, 4, 0.00199275366}}};
  constexpr std::array<Reference, 12> kOblong = {{{0, 0, 0, 0.897534181},
                                                  {0, 3, 2, 0.651682534},
                                                  {1, 0, 0, 0.0278410067},
                                                  {4, 2, 3, 0.0154166083},
                                                  {8, 1, 1, 0.0426765683},
                                                  {9, 3, 0, 0.0827447287},
                                                  {13, 5, 4, 0.0125789309},
                                                  {16, 2, 2, 0.0810715412},
                                                  {17, 0, 0, 0.00395477379},
                                                  {40, 3, 3, 0.00124269084},
                                                  {63, 6, 1, 0.00111087306},
                                                  {80, 2, 4, 0.001857275}}};
  const at::Tensor square = Scattering2d(28, 28)(Waves(28, 28));
  EXPECT_EQ(square.sizes(), (at::IntArrayRef{81, 7, 7}));
  for (const auto& [c, i, j, value] : kSquare) {
    EXPECT_NEAR(InTheUnitsOfKymatio(square[c][i][j].item<double>(), c), value, 2e-6) << c;
  }
  const at::Tensor oblong = Scattering2d(32, 20)(Waves(32, 20));
  EXPECT_EQ(oblong.sizes(), (at::IntArrayRef{81, 8, 5}));
  for (const auto& [c, i, j, value] : kOblong) {
    EXPECT_NEAR(InTheUnitsOfKymatio(oblong[c][i][j].item<double>(), c), value, 2e-6) << c;
  }
}

// The definition, with sums over all pixels in the place of Fourier transforms.
class DirectScattering {
 public:
  explicit DirectScattering(const Scattering2d& transform)
      : height_(transform.padded_height()), width_(transform.padded_width()) {
    psi_ = at::fft_ifft2(transform.psi().to(at::kComplexDouble));
    phi_ = at::real(at::fft_ifft2(transform.phi().to(at::kComplexDouble)));
  }

  // One value of the circular convolution of a real map with a filter.
  at::Tensor At(const at::Tensor& map, const at::Tensor& filter, std::int64_t row,
                std::int64_t column) const {
    const at::Tensor turned = filter.flip({0, 1}).roll({row + 1, column + 1}, {0, 1});
    return (map * turned).sum();
  }
  at::Tensor Modulus(const at::Tensor& map, const at::Tensor& filter) const {
    at::Tensor result = at::empty({height_, width_}, at::kDouble);
    for (std::int64_t i = 0; i < height_; ++i) {
      for (std::int64_t j = 0; j < width_; ++j) result[i][j] = At(map, filter, i, j).abs();
    }
    return result;
  }
  double FirstOrder(const at::Tensor& padded, std::int64_t j, std::int64_t t, std::int64_t row,
                    std::int64_t column) const {
    return Smooth(Modulus(padded, psi_[j][t]), row, column);
  }
  double SecondOrder(const at::Tensor& padded, std::int64_t t1, std::int64_t t2, std::int64_t row,
                     std::int64_t column) const {
    return Smooth(Modulus(Modulus(padded, psi_[0][t1]), psi_[1][t2]), row, column);
  }
  // The border that the transform takes away is one place of the result wide.
  double Smooth(const at::Tensor& map, std::int64_t row, std::int64_t column) const {
    return At(map, phi_, 4 * (row + 1), 4 * (column + 1)).item<double>();
  }

 private:
  std::int64_t height_;
  std::int64_t width_;
  at::Tensor psi_;
  at::Tensor phi_;
};

TEST(Scattering2d, EqualsTheSumsOfItsDefinition) {
  const Scattering2d transform(9, 8);
  at::manual_seed(4);
  const at::Tensor image = at::rand({9, 8});
  const at::Tensor found = transform(image);
  const DirectScattering direct(transform);
  const std::int64_t rows = transform.padded_height() - 9;
  const std::int64_t columns = transform.padded_width() - 8;
  const at::Tensor padded =
      at::reflection_pad2d(image.unsqueeze(0),
                           {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2})[0]
          .to(at::kDouble);

  EXPECT_NEAR(found[0][1][0].item<double>(), direct.Smooth(padded, 1, 0), 1e-5);
  EXPECT_NEAR(found[1 + 3][0][1].item<double>(), direct.FirstOrder(padded, 0, 3, 0, 1), 1e-5);
  // At half resolution phi is cut where half the spectrum ends, which changes the last digits.
  EXPECT_NEAR(found[1 + 8 + 5][1][1].item<double>(), direct.FirstOrder(padded, 1, 5, 1, 1), 1e-3);
  EXPECT_NEAR(found[17 + 8 * 2 + 6][0][0].item<double>(), direct.SecondOrder(padded, 2, 6, 0, 0),
              1e-3);
}

TEST(Scattering2d, KeepsAConstantInTheFirstChannelAlone) {
  const at::Tensor result = Scattering2d(28, 28)(at::full({28, 28}, 0.7));
  EXPECT_LT(Largest(result[0] - 0.7), 1e-5);
  EXPECT_LT(Largest(result.slice(0, 1)), 1e-5);
}

TEST(Scattering2d, FiltersAreAveragesAndWavesThatTogetherAddNoEnergy) {
  const Scattering2d transform(28, 28);
  EXPECT_NEAR(transform.phi()[0][0].item<double>(), 1, 1e-6);
  EXPECT_LT(Largest(transform.psi().select(2, 0).select(2, 0)), 1e-10) << "wavelets have mean 0";
  // Littlewood-Paley: |phi|^2 and half of the wavelets' energy at +w and -w.
  const at::Tensor energy = transform.psi().square().sum(at::IntArrayRef{0, 1});
  const at::Tensor mirrored = energy.flip({0, 1}).roll({1, 1}, {0, 1});
  const at::Tensor sum = transform.phi().square() + (energy + mirrored) / 2;
  EXPECT_LT(sum.max().item<double>(), 1.05);
  EXPECT_GT(sum.min().item<double>(), 0.01);
}

TEST(Scattering2d, DoesNotExpandDistances) {
  const Scattering2d transform(32, 32);
  at::manual_seed(9);
  const at::Tensor a = at::rand({10, 32, 32});
  const at::Tensor b = at::rand({10, 32, 32});
  const at::Tensor moved = (transform(a) - transform(b)).flatten(1).norm(2, {1});
  const at::Tensor distance = (a - b).flatten(1).norm(2, {1});
  // Every sixteenth pixel of a smooth map carries a sixteenth of its energy.
  EXPECT_LT((4 * moved / distance).max().item<double>(), 1.5);
}

TEST(Scattering2d, ChangesLittleWhenTheImageIsShifted) {
  at::Tensor image = at::zeros({32, 32});
  image.slice(0, 10, 20).slice(1, 12, 18) = Waves(10, 6);
  const at::Tensor shifted = image.roll({1}, {1});
  const Scattering2d transform(32, 32);
  const double pixels = ((image - shifted).norm() / image.norm()).item<double>();
  const at::Tensor s = transform(image);
  const double scattered = ((transform(shifted) - s).norm() / s.norm()).item<double>();
  EXPECT_LT(scattered, 0.67 * pixels);
}

TEST(Scattering2d, TreatsChannelsAndImagesByThemselves) {
  const Scattering2d transform(16, 20);
  at::manual_seed(2);
  const at::Tensor images = at::rand({70, 2, 16, 20});  // more than a chunk
  const at::Tensor together = transform(images);
  EXPECT_EQ(together.sizes(), (at::IntArrayRef{70, 2, 81, 4, 5}));
  for (const std::int64_t i : {0, 31, 32, 69}) {
    EXPECT_LT(Largest(transform(images[i][1]) - together[i][1]), 1e-6) << i;
  }
  EXPECT_EQ(transform(images.slice(0, 0, 0)).sizes(), (at::IntArrayRef{0, 2, 81, 4, 5}));
}

TEST(Scattering2d, RefusesImagesThatAreTooSmall) { EXPECT_THROW(Scattering2d(7, 28), Error); }

TEST(ScatternetLinear, FeaturesAreNormalisedGroupsOfTheScatteredPixels) {
  const ModelShape shape{.input = {3, 32, 32}, .classes = 10};
  const auto model = MakeModel("scatternet-linear", shape, {}, c10::kCPU);
  ASSERT_TRUE(model->HasFeatures());
  at::manual_seed(8);
  const at::Tensor pixels = at::rand({2, 3, 32, 32});
  const at::Tensor features = model->Features(pixels);
  EXPECT_EQ(features.sizes(), (at::IntArrayRef{2, 243, 8, 8}));
  const at::Tensor groups = Scattering2d(32, 32)(pixels).view({2, 27, -1});
  const at::Tensor expected =
      (groups - groups.mean(2, true)) / (groups.var(2, false).unsqueeze(2) + 1e-5).sqrt();
  EXPECT_LT(Largest(features.view({2, 27, -1}) - expected), 1e-3);
  EXPECT_EQ(model->Forward(features).sizes(), (at::IntArrayRef{2, 10}));
  EXPECT_FALSE(features.requires_grad());

  ModelShape normalised = shape;
  normalised.mean = {0.5, 0.4, 0.3};
  normalised.deviation = {0.5, 0.2, 0.1};
  const at::Tensor mean = at::tensor(normalised.mean, at::kFloat).view({3, 1, 1});
  const at::Tensor deviation = at::tensor(normalised.deviation, at::kFloat).view({3, 1, 1});
  const at::Tensor again = MakeModel("scatternet-linear", normalised, {}, c10::kCPU)
                               ->Features((pixels - mean) / deviation);
  EXPECT_LT(Largest(again - features), 1e-3);
}

TEST(ScatternetLinear, RefusesANormalisationOfOtherChannels) {
  const ModelShape shape{.input = {3, 32, 32}, .classes = 10, .mean = {0.5}, .deviation = {0.5}};
  EXPECT_THROW(MakeModel("scatternet-linear", shape, {}, c10::kCPU), Error);
}

}  // namespace
}  // namespace sordino::internal
