// Private descent on two problems whose constants are known, to measure what theory bounds: the
// excess risk after the best number of steps, for the same noise in all steps and for the best
// schedule, with and without momentum, and the influence of the noise of each step. Nothing here is
// private: data and noise are drawn from a seed.
#ifndef SORDINO_THEORY_PRIVATE_DESCENT_H_
#define SORDINO_THEORY_PRIVATE_DESCENT_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "sordino/theory/convergence.h"
#include "sordino/theory/momentum.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {

using DescentPoint = std::vector<double>;

class DescentProblem {
 public:
  virtual ~DescentProblem() = default;
  virtual std::size_t dimension() const = 0;
  virtual double records() const = 0;
  virtual double smoothness() const = 0;
  virtual double strong_convexity() const = 0;
  virtual double Loss(const DescentPoint& at) const = 0;
  virtual DescentPoint Gradient(const DescentPoint& at) const = 0;
  virtual DescentPoint Start() const = 0;
};

// 1/2 sum_j w_j (x_j - 1)^2 with w from 0.1 to 1; clipping norm 1.
class QuadraticDescent : public DescentProblem {
 public:
  explicit QuadraticDescent(double records) : records_(records) {}
  std::size_t dimension() const override { return 10; }
  double records() const override { return records_; }
  double smoothness() const override { return 1; }
  double strong_convexity() const override { return 0.1; }
  double Loss(const DescentPoint& at) const override {
    double loss = 0;
    for (std::size_t j = 0; j < at.size(); ++j) {
      loss += 0.5 * Weight(j) * (at[j] - 1) * (at[j] - 1);
    }
    return loss;
  }
  DescentPoint Gradient(const DescentPoint& at) const override {
    DescentPoint gradient(at.size());
    for (std::size_t j = 0; j < at.size(); ++j) gradient[j] = Weight(j) * (at[j] - 1);
    return gradient;
  }
  DescentPoint Start() const override { return DescentPoint(dimension(), 0); }

 private:
  static double Weight(std::size_t j) { return 0.1 + 0.1 * static_cast<double>(j); }
  double records_;
};

// Logistic regression on drawn records of norm 1 with an L2 penalty: gradients of records are at
// most 1, and the penalty is public.
class LogisticDescent : public DescentProblem {
 public:
  LogisticDescent(std::int64_t records, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    DescentPoint truth(dimension());
    for (double& entry : truth) entry = 3 * normal(random);
    for (std::int64_t i = 0; i < records; ++i) {
      DescentPoint x(dimension());
      double norm = 0;
      for (double& entry : x) {
        entry = normal(random);
        norm += entry * entry;
      }
      double score = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        x[j] /= std::sqrt(norm);
        score += x[j] * truth[j];
      }
      const double p = 1 / (1 + std::exp(-score));
      const double sign = std::uniform_real_distribution<double>(0, 1)(random) < p ? 1 : -1;
      for (const double entry : x) signed_.push_back(sign * entry);
    }
    records_ = static_cast<double>(records);
  }
  std::size_t dimension() const override { return 5; }
  double records() const override { return records_; }
  double smoothness() const override { return 0.25 + kPenalty; }
  double strong_convexity() const override { return kPenalty; }
  double Loss(const DescentPoint& at) const override {
    double loss = 0;
    ForEach(at, [&](double margin, std::size_t) { loss += std::log1p(std::exp(-margin)); });
    double square = 0;
    for (const double entry : at) square += entry * entry;
    return loss / records_ + 0.5 * kPenalty * square;
  }
  DescentPoint Gradient(const DescentPoint& at) const override {
    DescentPoint gradient(at.size());
    ForEach(at, [&](double margin, std::size_t begin) {
      const double slope = -1 / (1 + std::exp(margin));
      for (std::size_t j = 0; j < at.size(); ++j) gradient[j] += slope * signed_[begin + j];
    });
    for (std::size_t j = 0; j < at.size(); ++j) {
      gradient[j] = gradient[j] / records_ + kPenalty * at[j];
    }
    return gradient;
  }
  DescentPoint Start() const override { return DescentPoint(dimension(), 0); }

 private:
  static constexpr double kPenalty = 0.05;
  template <typename Visit>
  void ForEach(const DescentPoint& at, const Visit& visit) const {
    for (std::size_t begin = 0; begin < signed_.size(); begin += at.size()) {
      double margin = 0;
      for (std::size_t j = 0; j < at.size(); ++j) margin += signed_[begin + j] * at[j];
      visit(margin, begin);
    }
  }
  std::vector<double> signed_;  // label times record, one after the other
  double records_ = 0;
};

inline constexpr std::array<std::string_view, 2> kDescentProblemNames = {"quadratic", "logistic"};
inline constexpr double kMaxDescentRecords = 1e7;
// By the place of its name. Throws Error for less than 1 record, and for more than there can be.
std::unique_ptr<DescentProblem> MakeDescentProblem(std::size_t name, double records);

// Steps of length 1 / smoothness with noise of standard deviation noise_t / records.
DescentPoint Descend(const DescentProblem& problem, const std::vector<double>& noise,
                     std::mt19937_64& random);
// The same with debiased momentum (momentum.h), and steps of length step / smoothness.
DescentPoint DescendWithMomentum(const DescentProblem& problem, const std::vector<double>& noise,
                                 double beta, double step, std::mt19937_64& random);

struct MeasuredRisk {
  double uniform = 0;  // mean excess risk over the initial one
  double dynamic = 0;
  std::int64_t uniform_steps = 0;
  std::int64_t dynamic_steps = 0;
  double uniform_bound = 0;  // by theory
  double dynamic_bound = 0;
};

// Means over runs with the seeds 1 ... seeds. Throws Error where the best number of steps is 0.
MeasuredRisk MeasureRisk(const DescentProblem& problem, double budget, int seeds);
MeasuredRisk MeasureMomentumRisk(const DescentProblem& problem, double budget, double beta,
                                 int seeds);

// What noise of multiplier 1 in step t alone adds to the excess risk, over the initial one, for
// each step of a run of the best length: predicted by theory, which bounds it, and measured.
struct MeasuredInfluence {
  std::vector<double> predicted;
  std::vector<double> measured;
};
MeasuredInfluence MeasureInfluence(const DescentProblem& problem, double budget, int seeds);

// The slope of log y against log x by least squares.
inline double LogSlope(const std::vector<double>& x, const std::vector<double>& y) {
  double mx = 0;
  double my = 0;
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    mx += std::log(x[i]) / n;
    my += std::log(y[i]) / n;
  }
  double xy = 0;
  double xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (std::log(x[i]) - mx) * (std::log(y[i]) - my);
    xx += (std::log(x[i]) - mx) * (std::log(x[i]) - mx);
  }
  return xy / xx;
}

}  // namespace sordino

#endif  // SORDINO_THEORY_PRIVATE_DESCENT_H_
