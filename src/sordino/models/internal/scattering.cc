#include "sordino/models/internal/scattering.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

using at::Tensor;

constexpr double kPi = std::numbers::pi;
constexpr double kSigma = 0.8;                 // of the finest wavelet's envelope, in pixels
constexpr double kFrequency = 0.75 * kPi;      // of the finest wavelet
constexpr double kGaussSigma = 1.6;            // of phi: 0.8 * 2^(J-1)
constexpr std::int64_t kReduction = 4;         // 2^J
constexpr std::int64_t kScatteringChunk = 64;  // images at a time
constexpr int kWraps = 2;  // filters are wrapped around this many times on each side

std::int64_t PaddedSide(std::int64_t side) {
  return ((side + kReduction) / kReduction + 1) * kReduction;
}

// A Gabor function on the torus: a Gaussian of deviation sigma along `angle` and sigma / slant
// across it, times a wave of the given frequency along `angle`. [height, width], complex128.
Tensor Gabor(std::int64_t height, std::int64_t width, double sigma, double angle, double frequency,
             double slant) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  const double across = slant * slant;
  const double scale = 1 / (2 * sigma * sigma);
  const double xx = (c * c + across * s * s) * scale;
  const double xy = (2 * c * s * (1 - across)) * scale;
  const double yy = (s * s + across * c * c) * scale;
  Tensor gabor = at::zeros({height, width}, at::kComplexDouble);
  auto* out = static_cast<std::complex<double>*>(gabor.data_ptr());
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      std::complex<double> sum = 0;
      for (int i = -kWraps; i <= kWraps; ++i) {
        for (int j = -kWraps; j <= kWraps; ++j) {
          const auto x = static_cast<double>(row + i * height);
          const auto y = static_cast<double>(column + j * width);
          sum += std::polar(std::exp(-(xx * x * x + xy * x * y + yy * y * y)),
                            frequency * (x * c + y * s));
        }
      }
      out[row * width + column] = sum / (2 * kPi * sigma * sigma / slant);
    }
  }
  return gabor;
}

// A Gabor function less that multiple of its envelope that makes its mean zero, in the Fourier
// domain, where it is real.
Tensor MorletSpectrum(std::int64_t height, std::int64_t width, double sigma, double angle,
                      double frequency, double slant) {
  const Tensor wave = Gabor(height, width, sigma, angle, frequency, slant);
  const Tensor envelope = Gabor(height, width, sigma, angle, 0, slant);
  const Tensor morlet = wave - envelope * (wave.sum() / envelope.sum());
  return at::real(at::fft_fft2(morlet)).contiguous();
}

// The spectrum of phi along one direction.
Tensor GaussSpectrum(std::int64_t side) {
  std::vector<double> values(static_cast<std::size_t>(side), 0.0);
  for (std::int64_t i = 0; i < side; ++i) {
    for (int wrap = -kWraps; wrap <= kWraps; ++wrap) {
      const double x = static_cast<double>(i + wrap * side) / kGaussSigma;
      values[static_cast<std::size_t>(i)] +=
          std::exp(-x * x / 2) / (std::sqrt(2 * kPi) * kGaussSigma);
    }
  }
  return at::real(at::fft_fft(at::tensor(values, at::kDouble))).contiguous();
}

// Takes a map of `side` numbers, at full resolution (reduction 4) or at half of it (reduction 2),
// to every reduction-th number of its convolution with phi, without the first and the last.
Tensor LowPassMatrix(const Tensor& spectrum, std::int64_t reduction) {
  Tensor filter = spectrum;
  if (reduction == 2) {
    // The spectrum at half resolution; the middle is left out before it is folded.
    const std::int64_t side = spectrum.size(0);
    filter = spectrum.clone();
    filter.slice(0, side / 4, side / 4 + side / 2).zero_();
    filter = filter.view({2, side / 2}).sum(0);
  }
  const std::int64_t side = filter.size(0);
  const Tensor kernel = at::real(at::fft_ifft(filter)).contiguous();
  const Tensor place = at::arange(1, side / reduction - 1).unsqueeze(1) * reduction;
  const Tensor distance = (place - at::arange(side).unsqueeze(0)).remainder(side);
  return kernel.index_select(0, distance.flatten()).view(distance.sizes()).to(at::kFloat);
}

Tensor Modulus(const Tensor& complex) { return at::abs(complex); }

class ScatternetLinear : public Network {
 public:
  explicit ScatternetLinear(const ModelShape& shape)
      : size_(ImagesFor("scatternet-linear", shape, Scattering2d::kMinSide)),
        to_pixels_(shape),
        scattering_(size_.height, size_.width),
        classifier_(register_module(
            "classifier", torch::nn::Linear(size_.channels * Scattering2d::kChannels *
                                                scattering_.out_height() * scattering_.out_width(),
                                            shape.classes))) {}

  bool HasFeatures() const override { return true; }
  Tensor Features(const Tensor& inputs) override {
    constexpr std::int64_t kGroups = 27;
    const Tensor scattered = scattering_(to_pixels_(inputs)).flatten(1, 2);
    return scattered.size(0) == 0 ? scattered : at::group_norm(scattered, kGroups);
  }
  Tensor Forward(const Tensor& features) override { return classifier_(features.flatten(1)); }

 private:
  ImageSize size_;
  ToPixels to_pixels_;
  Scattering2d scattering_;
  torch::nn::Linear classifier_;
};

}  // namespace

Scattering2d::Scattering2d(std::int64_t height, std::int64_t width)
    : height_(height),
      width_(width),
      padded_height_(PaddedSide(height)),
      padded_width_(PaddedSide(width)) {
  if (std::min(height, width) < kMinSide) {
    throw Error(
        fmt::format("scattering takes images of at least {}x{} pixels and {}x{} were given.",
                    kMinSide, kMinSide, height, width));
  }
  std::vector<Tensor> filters;
  for (int j = 0; j < kScales; ++j) {
    for (std::int64_t t = 0; t < kOrientations; ++t) {
      const double angle = (static_cast<double>(kOrientations) / 2 - 1 - static_cast<double>(t)) *
                           kPi / static_cast<double>(kOrientations);
      filters.push_back(MorletSpectrum(padded_height_, padded_width_, std::ldexp(kSigma, j), angle,
                                       std::ldexp(kFrequency, -j), 4.0 / kOrientations));
    }
  }
  psi_ = at::stack(filters).view({kScales, kOrientations, padded_height_, padded_width_});
  const Tensor rows = GaussSpectrum(padded_height_);
  const Tensor columns = GaussSpectrum(padded_width_);
  phi_ = at::outer(rows, columns);

  fine_ = psi_[0].to(at::kFloat).unsqueeze(-1).expand({-1, -1, -1, 2}).contiguous();
  const Tensor coarse = (psi_[1] / 4)
                            .to(at::kFloat)
                            .view({kOrientations, 2, padded_height_ / 2, 2, padded_width_ / 2});
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      coarse_quadrants_.push_back(coarse.select(3, b)
                                      .select(1, a)
                                      .unsqueeze(-1)
                                      .expand({-1, -1, -1, 2})
                                      .reshape({kOrientations, -1}));
    }
  }
  for (const std::int64_t reduction : {4, 2}) {
    low_rows_.push_back(LowPassMatrix(rows, reduction));
    low_columns_.push_back(LowPassMatrix(columns, reduction));
  }
}

// Wavelets of scale 1 on [..., height, width] spectra: [..., 8, height / 2, width / 2] moduli. To
// keep every second pixel is to add the four quadrants of a spectrum.
Tensor Scattering2d::HalfResolution(const Tensor& spectra) const {
  const std::int64_t maps = spectra.numel() / (padded_height_ * padded_width_);
  const std::int64_t height = padded_height_ / 2;
  const std::int64_t width = padded_width_ / 2;
  const Tensor parts = at::view_as_real(spectra).reshape({maps, 2, height, 2, width, 2});
  Tensor sum;
  for (std::int64_t a = 0; a < 2; ++a) {
    for (std::int64_t b = 0; b < 2; ++b) {
      const Tensor quadrant = parts.select(3, b).select(1, a).reshape({maps, 1, -1});
      const Tensor& filter =
          coarse_quadrants_[static_cast<std::size_t>(2 * a + b)].to(spectra.device());
      if (sum.defined()) {
        sum.addcmul_(quadrant, filter);
      } else {
        sum = quadrant * filter;
      }
    }
  }
  const Tensor folded = at::view_as_complex(sum.view({maps, kOrientations, height, width, 2}));
  std::vector<std::int64_t> sizes(spectra.sizes().begin(), spectra.sizes().end() - 2);
  sizes.insert(sizes.end(), {kOrientations, height, width});
  return Modulus(at::fft_ifft2(folded)).view(sizes);
}

Tensor Scattering2d::LowPass(const Tensor& maps, std::size_t level) const {
  const Tensor columns = low_columns_[level].to(maps.device()).t();
  const Tensor rows = low_rows_[level].to(maps.device()).t();
  const Tensor narrow = at::matmul(maps, columns).transpose(-1, -2);
  return at::matmul(narrow.contiguous(), rows).transpose(-1, -2);
}

// [n, height, width] to [n, 81, out_height, out_width].
Tensor Scattering2d::Transform(const Tensor& images) const {
  const std::int64_t n = images.size(0);
  const std::int64_t rows = padded_height_ - height_;
  const std::int64_t columns = padded_width_ - width_;
  const Tensor x =
      at::reflection_pad2d(images, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
  const Tensor spectrum = at::fft_fft2(x);
  const Tensor fine_products = at::view_as_real(spectrum).unsqueeze(1) * fine_.to(x.device());
  const Tensor fine = Modulus(at::fft_ifft2(at::view_as_complex(fine_products)));
  const Tensor coarse = HalfResolution(spectrum);
  const Tensor second = HalfResolution(at::fft_fft2(fine));
  return at::cat({LowPass(x, 0).unsqueeze(1), LowPass(fine, 0), LowPass(coarse, 1),
                  LowPass(second, 1).reshape({n, -1, out_height(), out_width()})},
                 1);
}

Tensor Scattering2d::operator()(const Tensor& images) const {
  std::vector<std::int64_t> sizes(images.sizes().begin(), images.sizes().end() - 2);
  sizes.insert(sizes.end(), {kChannels, out_height(), out_width()});
  const Tensor flat = images.reshape({-1, height_, width_});
  Tensor result = at::empty({flat.size(0), kChannels, out_height(), out_width()}, flat.options());
  for (std::int64_t begin = 0; begin < flat.size(0); begin += kScatteringChunk) {
    const std::int64_t end = std::min(begin + kScatteringChunk, flat.size(0));
    result.slice(0, begin, end).copy_(Transform(flat.slice(0, begin, end)));
  }
  return result.view(sizes);
}

NetworkPointer MakeScatternetLinear(const ModelShape& shape, const ModelOptions& /*options*/) {
  return std::make_shared<ScatternetLinear>(shape);
}

}  // namespace sordino::internal
