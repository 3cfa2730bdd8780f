// Dominating pairs of distributions: what one release can give away.
//
// A mechanism is dominated by a pair (P, Q) when for every epsilon its privacy profile is at most
//   delta(epsilon) = E_P[(1 - e^{epsilon - L})_+],   L = log dP/dQ   (the privacy loss).
// Profiles of adaptive compositions are dominated by the product of the pairs (Zhu, Dong, Wang,
// "Optimal accounting of differential privacy via characteristic function", arXiv 2106.08567),
// so everything that the accountants need of a release is the distribution of L under P.
//
// A pair is given by atoms (a loss and its probability under P, mass at infinity included) and by
// continuous pieces: Gaussian mixture ratios or the middle of a (sampled) Laplace mechanism. Losses
// of a continuous piece increase strictly with its coordinate x.
#ifndef SORDINO_ACCOUNTING_LOSS_PAIR_H_
#define SORDINO_ACCOUNTING_LOSS_PAIR_H_

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace sordino {

// One value of the loss and its probability under P.
struct LossAtom {
  double loss;
  double mass;
};

// The continuous part of a pair, parametrised by x in (low, high): P has the density
// exp(LogDensity(x)) and the loss there is Loss(x), strictly increasing in x.
class LossDensity {
 public:
  virtual ~LossDensity() = default;
  virtual double low() const = 0;
  virtual double high() const = 0;
  virtual double LogDensity(double x) const = 0;
  virtual double Loss(double x) const = 0;
  // Both at once; what is null is not wanted.
  virtual void At(double x, double* log_density, double* loss) const {
    if (log_density != nullptr) *log_density = LogDensity(x);
    if (loss != nullptr) *loss = Loss(x);
  }
  // The supremum of the loss; may be infinite.
  virtual double LargestLoss() const = 0;
  // A length on which the density and the loss change smoothly: the width of quadrature panels.
  virtual double Scale() const = 0;
  // The same near x: longer where the ratio is a pure exponential, shorter in a steep tail, where
  // the density changes by at most e^6 along it.
  virtual double SmoothLength(double /*x*/) const { return Scale(); }
  // The coordinate of a given loss (clamped to [low, high]).
  virtual double CoordinateOf(double loss) const = 0;
  // Bounds on the P-mass left of and right of x: what a truncation there leaves out.
  virtual double MassBelow(double x) const = 0;
  virtual double MassAbove(double x) const = 0;
  // The same for Q, exact; zero where the coordinate ends.
  virtual double OtherMassBelow(double /*x*/) const { return 0; }
  virtual double OtherMassAbove(double /*x*/) const { return 0; }
  // The P-mass between two coordinates, and the log of it over the Q-mass there; false where they
  // have no closed form.
  virtual bool Integrate(double /*a*/, double /*b*/, double* /*mass*/, double* /*loss*/) const {
    return false;
  }
};

// N(0, sigma^2) reweighted: P = num(x) N(0, sigma^2), Q = den(x) N(0, sigma^2), where
//   num(x) = sum_i p_i exp(s_i (2x - s_i) / (2 sigma^2)),  all s_i >= 0,
//   den(x) = likewise with all s_i <= 0.
// Each (shift, probability) list is a Gaussian mixture. Poisson sampling of the Gaussian
// mechanism with rate q: "remove" has num = {(0, 1-q), (1, q)} and den = {(0, 1)}; "add" has
// num = {(0, 1)} and den = {(0, 1-q), (-1, q)} (mirrored, so that the loss increases);
// replace-one has num = {(0, 1-q), (1, q)} and den = {(0, 1-q), (-1, q)}.
class GaussianMixtureDensity final : public LossDensity {
 public:
  using Parts = std::vector<std::pair<double, double>>;  // (shift, probability)
  GaussianMixtureDensity(double sigma, Parts numerator, Parts denominator);

  double low() const override;
  double high() const override;
  double LogDensity(double x) const override;
  double Loss(double x) const override;
  double LargestLoss() const override;
  double Scale() const override;
  double SmoothLength(double x) const override;
  double CoordinateOf(double loss) const override;
  double MassBelow(double x) const override;
  double MassAbove(double x) const override;
  double OtherMassBelow(double x) const override;
  double OtherMassAbove(double x) const override;
  void At(double x, double* log_density, double* loss) const override;

  double sigma() const { return sigma_; }
  const Parts& numerator() const { return numerator_; }
  const Parts& denominator() const { return denominator_; }
  // log of one side of the ratio, and what its posterior says: the mean of the shift, which is
  // sigma^2 d/dx of the log and increases with x, and the probability that the shift is not zero.
  struct Side {
    double log_ratio;
    double shift;
    double hit;
  };
  Side Numerator(double x) const { return Evaluate(numerator_, x); }
  Side Denominator(double x) const { return Evaluate(denominator_, x); }
  // The probability that the shift of either side is not zero, the larger of both.
  double HitProbability() const;
  // MassAbove less OtherMassAbove, as a sum of non-negative terms.
  double ExcessAbove(double x) const;
  double max_numerator_shift() const { return max_numerator_shift_; }
  double max_denominator_shift() const { return max_denominator_shift_; }  // absolute value

 private:
  double LogRatio(const Parts& parts, double x) const;
  Side Evaluate(const Parts& parts, double x) const;

  double sigma_;
  double half_precision_;  // 1 / (2 sigma^2)
  Parts numerator_;
  Parts denominator_;
  double max_numerator_shift_ = 0;
  double max_denominator_shift_ = 0;
};

// The middle piece of the Laplace mechanism with scale b (sensitivity 1), sampled with rate q.
// P = (1-q) Lap(0) + q Lap(1), Q = Lap(0) ("remove") or the other way round ("add"); between the
// two centres the loss moves from one end of its range to the other, outside it is constant
// (those two values are atoms of the pair). Coordinates are mirrored for "add".
class LaplaceDensity final : public LossDensity {
 public:
  enum class Direction { kRemove, kAdd };
  LaplaceDensity(double scale, double rate, Direction direction);

  double low() const override { return 0; }
  double high() const override { return 1; }
  double LogDensity(double x) const override;
  double Loss(double x) const override;
  double LargestLoss() const override;
  double Scale() const override;
  double CoordinateOf(double loss) const override;
  double MassBelow(double x) const override;
  double MassAbove(double x) const override;
  // The ratio of the two Laplace masses of a cell is that of the densities at its middle.
  bool Integrate(double a, double b, double* mass, double* loss) const override;

  // The two constant values of the loss with their P-masses.
  std::vector<LossAtom> Ends() const;

 private:
  double LogMix(double x) const;  // log((1-q) + q e^{(2x-1)/b})
  double scale_;
  double rate_;
  Direction direction_;
};

// Another density with all losses moved by a constant.
class ShiftedDensity final : public LossDensity {
 public:
  ShiftedDensity(std::shared_ptr<const LossDensity> base, double shift)
      : base_(std::move(base)), shift_(shift) {}

  double low() const override { return base_->low(); }
  double high() const override { return base_->high(); }
  double LogDensity(double x) const override { return base_->LogDensity(x); }
  double Loss(double x) const override { return base_->Loss(x) + shift_; }
  double LargestLoss() const override { return base_->LargestLoss() + shift_; }
  double Scale() const override { return base_->Scale(); }
  double SmoothLength(double x) const override { return base_->SmoothLength(x); }
  double CoordinateOf(double loss) const override { return base_->CoordinateOf(loss - shift_); }
  double MassBelow(double x) const override { return base_->MassBelow(x); }
  double MassAbove(double x) const override { return base_->MassAbove(x); }
  double OtherMassBelow(double x) const override {
    return base_->OtherMassBelow(x) * std::exp(-shift_);
  }
  double OtherMassAbove(double x) const override {
    return base_->OtherMassAbove(x) * std::exp(-shift_);
  }
  bool Integrate(double a, double b, double* mass, double* loss) const override {
    const bool known = base_->Integrate(a, b, mass, loss);
    if (known) *loss += shift_;
    return known;
  }

 private:
  std::shared_ptr<const LossDensity> base_;
  double shift_;
};

// A continuous part of a pair: `weight` times the density, restricted to losses in
// (clip_low, clip_high). Several pieces arise where the neighbouring outputs are mixtures over a
// public event (truncated batches) or where two pairs are glued together (fixed-size sampling).
struct DensityPiece {
  std::shared_ptr<const LossDensity> density;
  double weight = 1;
  double clip_low = -1e308;
  double clip_high = 1e308;
  // The coordinates that a discretisation represents; chosen by ChooseRange (discretise.h).
  double low_x = 0;
  double high_x = 0;
};

// One dominating pair.
struct LossPair {
  std::vector<LossAtom> atoms;
  std::vector<DensityPiece> pieces;
  double infinite_mass = 0;   // P-mass where Q vanishes
  double absent_q = 0;        // Q-mass where P vanishes
  double missing_p = 0;       // 1 - P-mass, where masses were rounded or dropped
  double q_rounding = 0;      // how far Q-masses may be from a sum of one, beyond their rounding
  bool on_lattice = false;    // the losses are equally spaced, so that a grid can keep them
  bool given_losses = false;  // the losses are numbers of the event, not computed from them
  // A Gaussian mechanism with mean shift mu has the closed form E_P[e^{sL}] = e^{mu^2 s(s+1)/2};
  // such a pair has no atoms and no pieces.
  double gaussian_mu = 0;
};

// Both directions of an adjacency.
using TwoPairs = std::pair<LossPair, LossPair>;

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_LOSS_PAIR_H_
