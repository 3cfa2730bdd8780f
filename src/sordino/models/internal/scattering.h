// Wavelet scattering in two dimensions (Bruna and Mallat, arXiv 1203.1513), and a linear classifier
// on it.
//
// A scattering transform of an image x with Morlet wavelets psi of L orientations at scales 2^j and
// a Gaussian phi of scale 2^J:
//
//   S0 = x * phi,   S1(j, t) = |x * psi(j,t)| * phi,
//   S2(j, t, j', t') = ||x * psi(j,t)| * psi(j',t')| * phi   for j < j',
//
// sampled every 2^J pixels. With J = 2 and L = 8 that is 1 + 16 + 64 = 81 channels of a quarter of
// the height and width. Filters, padding and order of the channels are those of kymatio's
// Scattering2D (arXiv 1812.11214), so that numbers can be compared (up to its 3.1415 for pi);
// nothing is trained and every image is looked at by itself.
#ifndef SORDINO_MODELS_INTERNAL_SCATTERING_H_
#define SORDINO_MODELS_INTERNAL_SCATTERING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/models/internal/network.h"

namespace sordino::internal {

class Scattering2d {
 public:
  static constexpr std::int64_t kScales = 2;        // J
  static constexpr std::int64_t kOrientations = 8;  // L
  static constexpr std::int64_t kChannels = 81;     // for each channel of the image
  static constexpr std::int64_t kMinSide = 8;

  // Throws Error for images of fewer than kMinSide pixels on a side. Filters are made on the
  // CPU and follow the images to their device.
  Scattering2d(std::int64_t height, std::int64_t width);

  std::int64_t out_height() const { return padded_height_ / 4 - 2; }
  std::int64_t out_width() const { return padded_width_ / 4 - 2; }

  // [..., height, width] float32 to [..., 81, out_height, out_width]. Images go through in chunks,
  // so that memory beyond the result stays below 64 MB at 40x40 pixels.
  at::Tensor operator()(const at::Tensor& images) const;

  // The filters in the Fourier domain at the padded size, for tests: both are real there, float64,
  // psi [2, 8, height, width] and phi [height, width].
  const at::Tensor& psi() const { return psi_; }
  const at::Tensor& phi() const { return phi_; }
  std::int64_t padded_height() const { return padded_height_; }
  std::int64_t padded_width() const { return padded_width_; }

 private:
  at::Tensor Transform(const at::Tensor& images) const;
  at::Tensor HalfResolution(const at::Tensor& spectra) const;
  at::Tensor LowPass(const at::Tensor& maps, std::size_t level) const;

  std::int64_t height_;
  std::int64_t width_;
  std::int64_t padded_height_;
  std::int64_t padded_width_;
  at::Tensor psi_;
  at::Tensor phi_;
  // What the transform multiplies by, float32: the wavelets of scale 0, and a quarter of each
  // quadrant of those of scale 1, [8, 1, height * width / 4 * 2], every number twice (for the real
  // and for the imaginary part).
  at::Tensor fine_;
  std::vector<at::Tensor> coarse_quadrants_;
  // Convolution with phi, sampling and removal of the border as a matrix for each direction, for
  // maps at full and at half resolution: phi is a product of two functions.
  std::vector<at::Tensor> low_rows_;
  std::vector<at::Tensor> low_columns_;
};

// scatternet-linear: pixels in [0, 1], scattering, group norm over 27 groups without parameters
// (Tramer and Boneh, 2011.11660) as features; Linear.
NetworkPointer MakeScatternetLinear(const ModelShape& shape, const ModelOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_SCATTERING_H_
