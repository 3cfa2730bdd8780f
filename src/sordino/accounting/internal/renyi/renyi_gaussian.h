// Renyi divergences of Gaussians below samplers, by quadrature.
//
// For Gaussians the trapezoid rule on u = x / sigma converges like exp(-2 pi d / h), where d is
// the distance of the nearest singularity from the real line: pi sigma for the zeros of the
// mixture's density. Orders reach 1e9, so only stretches around the peaks of the integrand are
// visited. All classes keep their nodes between calls; none is for more than one thread.
#ifndef SORDINO_ACCOUNTING_INTERNAL_RENYI_GAUSSIAN_H_
#define SORDINO_ACCOUNTING_INTERNAL_RENYI_GAUSSIAN_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/renyi/renyi_moments.h"

namespace sordino {

// The Poisson-sampled Gaussian ((1-q) N(0,s^2) + q N(1,s^2), N(0,s^2)), whose direction is the
// larger one at every order (Mironov, Talwar and Zhang 2019, arXiv 1908.10530, theorem 5).
// q in (0, 1), sigma in (0, inf). grid_step 0 is the continuous Gaussian; a positive step is the
// spacing of a lattice in units of the noise (1 / sigma for the discrete Gaussian on the
// integers).
class SampledGaussian {
 public:
  SampledGaussian(double q, double sigma, double grid_step = 0);
  // D_alpha, relative accuracy about 1e-12; order >= 1. Caches nodes, so it is not const.
  double Renyi(double order);

 private:
  LossNode NodeAt(std::int64_t j) const;
  const LossNode& Cached(std::int64_t j);
  double LossAt(double u) const;
  double Slope(double u, double order) const;
  void AppendPeaks(double order, std::vector<double>* peaks) const;

  double q_;
  double sigma_;
  double step_;
  double log_unit_;    // log of step * density normaliser
  double transition_;  // where both parts of the mixture weigh the same
  std::int64_t first_ = 0;
  std::vector<LossNode> cache_;
  LossNode scratch_{};
};

// A stretch of quadrature nodes, filled when first needed; its middle tells whether it counts.
struct NodePanel {
  double log_weight;
  double loss;
  std::vector<LossNode> nodes;
};

// Poisson sampling under replace-one: ((1-q) N(0) + q N(1), (1-q) N(0) + q N(-1)). grid_step is
// that of SampledGaussian; on a lattice the divergence of the pair is a sum, which is taken as it
// is.
class ReplacedGaussian {
 public:
  ReplacedGaussian(double q, double sigma, double grid_step = 0);
  double Renyi(double order);

 private:
  LossNode NodeAt(double j) const;
  double FirstNode(std::size_t index) const;
  const std::vector<LossNode>& NodesOf(std::size_t index);

  double q_;
  double sigma_;
  double step_;
  double log_unit_;  // log of step * density normaliser
  double nodes_in_panel_ = 16;
  std::vector<NodePanel> panels_;  // to the right and to the left of 0 in turn
};

// The Gaussian below a sampler with the half profile (see HalfProfileNodes), by Gauss-Legendre
// panels on the half line where the loss is positive.
class HalfProfileGaussian {
 public:
  HalfProfileGaussian(double q, double sigma);
  double Renyi(double order);

 private:
  void Extend(std::size_t count);
  const std::vector<LossNode>& NodesOf(std::size_t index);

  double q_;
  double sigma_;
  double width_;
  double transition_;
  std::vector<NodePanel> panels_;  // forward and reverse nodes alternate
};

// A mixture sum p_i N(s_i, s^2) against N(0, s^2), the larger direction. Shifts in units of 1.
class MixtureGaussianMoments {
 public:
  MixtureGaussianMoments(double sigma, std::vector<std::pair<double, double>> parts);
  double Renyi(double order);

 private:
  // Makes the nodes of the first `count` points, 0, 1, -1, 2, -2, ... times the step. They are
  // kept, because a mixture has many parts and the nodes do not depend on the order.
  void Extend(std::size_t count);

  double sigma_;
  double step_;
  double largest_ = 0;
  std::vector<std::pair<double, double>> parts_;
  std::vector<LossNode> forward_;
  std::vector<LossNode> reverse_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_RENYI_GAUSSIAN_H_
