// The moments of a family along a line: ListFamily::MultiplyInto.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "sordino/accounting/internal/atoms/list_family.h"
#include "sordino/accounting/internal/rounding.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

// Frequencies that are multiplied at once.
constexpr std::size_t kLineBlock = 64;
// A product of this many ratios is turned into a logarithm, or sooner where it gets small.
constexpr std::size_t kMaxFactors = 64;
constexpr std::size_t kFactorsBetweenLooks = 8;
constexpr double kSmallSquare = 1e-60;
// A line whose modulus is lost to rounding has this value and an error above it.
constexpr double kLogNothing = -690;
// What the expansion of logarithms may leave out of the sum over all lists.
constexpr double kMaxRest = 1e-8;

using Block = std::array<double, kLineBlock>;

// log of the product of ratios M_i(s) / M_i(c) at one frequency, and how far it may be off,
// relative to what was multiplied.
struct LogProduct {
  double log_modulus = 0;
  double phase = 0;
  double rounding = 0;
  double least = 0;  // the smallest |M_i(s)|, or less
  double most = 0;   // the largest |M_i(s) / M_i(c)|, or more
};

// The product of ratios at some frequencies.
class BlockProduct {
 public:
  explicit BlockProduct(std::size_t nodes) : nodes_(nodes) {
    re_.fill(1);
    im_.fill(0);
    least_square_.fill(kInfinity);
    most_square_.fill(0);
  }

  void Multiply(const Block& re, const Block& im, double count) {
    for (std::size_t k = 0; k < kLineBlock; ++k) {
      const double square = re[k] * re[k] + im[k] * im[k];
      least_square_[k] = std::min(least_square_[k], square);
      most_square_[k] = std::max(most_square_[k], square);
    }
    if (count != 1) {
      for (std::size_t k = 0; k < nodes_; ++k) AddLogarithm(re[k], im[k], count, sums_[k]);
      return;
    }
    for (std::size_t k = 0; k < kLineBlock; ++k) {
      const double turned = re_[k] * re[k] - im_[k] * im[k];
      im_[k] = re_[k] * im[k] + im_[k] * re[k];
      re_[k] = turned;
    }
    ++factors_;
    if (factors_ % kFactorsBetweenLooks != 0) return;
    double least = kInfinity;
    for (std::size_t k = 0; k < nodes_; ++k) {
      least = std::min(least, re_[k] * re_[k] + im_[k] * im_[k]);
    }
    if (factors_ >= kMaxFactors || least < kSmallSquare) Flush();
  }

  // `least_real` is the smallest M_i(c).
  LogProduct Take(std::size_t k, double least_real) {
    if (factors_ > 0) Flush();
    sums_[k].least = std::sqrt(least_square_[k]) * least_real;
    sums_[k].most = std::sqrt(most_square_[k]);
    return sums_[k];
  }

 private:
  void Flush() {
    for (std::size_t k = 0; k < nodes_; ++k) AddLogarithm(re_[k], im_[k], 1, sums_[k]);
    re_.fill(1);
    im_.fill(0);
    factors_ = 0;
  }

  static void AddLogarithm(double re, double im, double count, LogProduct& sum) {
    const double log_one = std::max(0.5 * std::log(re * re + im * im), kLogNothing);
    const double angle = std::atan2(im, re);
    sum.log_modulus += count * log_one;
    sum.phase += std::remainder(count * angle, 2 * std::numbers::pi);
    // Beyond the rounding of the logarithms themselves, the sums so far are rounded again.
    sum.rounding += kUnitRoundoff * (4 * count * (1 + std::abs(log_one) + std::abs(angle)) +
                                     std::abs(sum.log_modulus) + std::abs(sum.phase));
  }

  std::size_t nodes_;
  std::size_t factors_ = 0;
  Block re_;
  Block im_;
  Block least_square_;
  Block most_square_;
  std::array<LogProduct, kLineBlock> sums_;
};

}  // namespace

class ListFamily::Line {
 public:
  Line(const ListFamily& family, double c, double step, std::size_t nodes)
      : family_(family),
        rank_(family.basis_.size()),
        padded_((nodes + kLineBlock - 1) / kLineBlock * kLineBlock),
        real_(family.MomentsAt(c)),
        re_(rank_ * padded_, 0.0),
        im_(rank_ * padded_, 0.0),
        error_(nodes, 0.0) {
    const double u = kUnitRoundoff * (static_cast<double>(rank_) + 8);
    std::vector<std::complex<double>> excess(nodes);
    std::vector<double> of_basis(nodes);
    for (std::size_t r = 0; r < rank_; ++r) {
      family.basis_[r].Line(c, step, excess, of_basis);
      for (std::size_t k = 0; k < nodes; ++k) {
        re_[r * padded_ + k] = excess[k].real();
        im_[r * padded_ + k] = excess[k].imag();
        error_[k] += family.weight_[r] * (of_basis[k] + u * std::abs(excess[k]));
      }
    }
    for (std::size_t i = 0; i < family.count_.size(); ++i) {
      log_real_ += family.count_[i] * std::log1p(real_.excess[i]);
    }
  }

  const RealMoments& real() const { return real_; }
  // The sum over all lists of what the combinations of basis vectors may be off.
  double Error(std::size_t k) const { return error_[k]; }

  std::vector<LogProduct> Products(std::size_t first, std::size_t count) const {
    std::vector<LogProduct> products;
    for (std::size_t k = first; k < first + count; ++k) {
      products.push_back(Expanded(k));
      if (!(products.back().rounding < 2 * kMaxRest)) return Multiplied(first, count);
    }
    return products;
  }

 private:
  std::complex<double> Of(std::size_t r, std::size_t k) const {
    return {re_[r * padded_ + k], im_[r * padded_ + k]};
  }

  // By two terms of the logarithm.
  LogProduct Expanded(std::size_t k) const {
    std::complex<double> mean = 0;
    for (std::size_t r = 0; r < rank_; ++r) mean += family_.mean_[r] * Of(r, k);
    const std::complex<double> d = 1.0 + mean;
    const double modulus = std::abs(d);
    std::complex<double> squares = 0;
    double absolute = 0;
    double largest = 0;
    double first = 0;     // what rounding leaves of the sum of x_i
    double diagonal = 0;  // the square root of a bound on the sum of |x_i|^2
    for (std::size_t r = 0; r < rank_; ++r) {
      std::complex<double> row = 0;
      double size = 0;
      for (std::size_t q = 0; q < rank_; ++q) {
        row += family_.covariance_[r * rank_ + q] * Of(q, k);
        size += std::abs(family_.covariance_[r * rank_ + q]) * std::abs(Of(q, k));
      }
      squares += row * Of(r, k);
      absolute += size * std::abs(Of(r, k));
      largest += family_.largest_[r] * std::abs(Of(r, k));
      first += family_.weight_[r] * std::abs(Of(r, k));
      diagonal += std::sqrt(family_.covariance_[r * rank_ + r]) * std::abs(Of(r, k));
    }
    squares /= d * d;
    absolute /= modulus * modulus;
    largest /= modulus;
    diagonal /= modulus;
    const double n = family_.total_count_;
    const double log_one =
        0.5 * std::log1p(mean.real() * (2 + mean.real()) + mean.imag() * mean.imag());
    const double angle = std::atan2(mean.imag(), 1 + mean.real());
    LogProduct product;
    product.log_modulus = n * log_one - 0.5 * squares.real() - log_real_;
    product.phase = std::remainder(n * angle, 2 * std::numbers::pi) - 0.5 * squares.imag();
    product.least = modulus * (1 - largest);
    product.most = modulus * (1 + largest) / real_.least;
    const double lists = static_cast<double>(family_.count_.size()) + 16;
    product.rounding = kUnitRoundoff * (4 * n * (std::abs(log_one) + std::abs(angle)) +
                                        lists * diagonal * diagonal + lists * std::abs(log_real_) +
                                        lists * first / modulus);
    product.rounding +=
        largest < 0.5 ? largest * absolute / (3 * (1 - largest)) * (1 + 1e-9) : kInfinity;
    return product;
  }

  // One list after the other.
  std::vector<LogProduct> Multiplied(std::size_t first, std::size_t count) const {
    BlockProduct product(count);
    Block re;
    Block im;
    for (std::size_t i = 0; i < family_.count_.size(); ++i) {
      re.fill(1);
      im.fill(0);
      for (std::size_t r = 0; r < rank_; ++r) {
        const double a = family_.coefficient_[i * family_.stride_ + r];
        const double* from_re = re_.data() + r * padded_ + first;
        const double* from_im = im_.data() + r * padded_ + first;
        for (std::size_t k = 0; k < kLineBlock; ++k) {
          re[k] += a * from_re[k];
          im[k] += a * from_im[k];
        }
      }
      const double inverse = 1 / (1 + real_.excess[i]);
      for (std::size_t k = 0; k < kLineBlock; ++k) {
        re[k] *= inverse;
        im[k] *= inverse;
      }
      product.Multiply(re, im, family_.count_[i]);
    }
    std::vector<LogProduct> products;
    for (std::size_t k = 0; k < count; ++k) {
      products.push_back(product.Take(k, real_.least));
      // Of scaling and of the multiplications.
      products.back().rounding += kUnitRoundoff * 24 * family_.total_count_;
    }
    return products;
  }

  const ListFamily& family_;
  std::size_t rank_;
  std::size_t padded_;
  RealMoments real_;
  double log_real_ = 0;
  std::vector<double> re_;
  std::vector<double> im_;
  std::vector<double> error_;
};

void ListFamily::MultiplyInto(double c, double step, MomentLine& line) const {
  const std::size_t nodes = line.phase.size();
  const Line lists(*this, c, step, nodes);
  const RealMoments& real = lists.real();
  const double log_moment = LogMoment(c);
  const LeftOut left_out(*this, c, std::hypot(c, step * static_cast<double>(nodes)));
  for (std::size_t first = 0; first < nodes; first += kLineBlock) {
    const std::vector<LogProduct> products =
        lists.Products(first, std::min(kLineBlock, nodes - first));
    for (std::size_t j = 0; j < products.size(); ++j) {
      const std::size_t k = first + j;
      const LogProduct& product = products[j];
      const double y = step * static_cast<double>(k);
      // |M_i - what was multiplied|, summed over all lists.
      const double absolute = lists.Error(k) + left_out.At(std::hypot(c, y));
      const double relative = absolute / product.least + product.rounding;
      double log_modulus = product.log_modulus;
      double log_largest = log_modulus + relative;
      if (!(product.least > 0 && relative < 0.5)) {
        // |M_i(s)| is at most the largest of them and its error, the product of all at most the
        // power of their mean, and each at most M_i(c).
        log_largest =
            total_count_ * std::log(product.most + absolute / (real.least * total_count_));
        log_largest = std::max(std::min(log_largest, real.error / real.least), kLogNothing);
        log_modulus = 2 * kLogNothing;
      }
      const double turned =
          y * offset_size_ * kUnitRoundoff * (static_cast<double>(count_.size()) + 4);
      line.log_modulus[k] += log_moment + log_modulus;
      line.log_largest[k] += log_moment + log_largest + turned;
      line.phase[k] += product.phase + y * offset_sum_;
    }
  }
}

}  // namespace sordino
