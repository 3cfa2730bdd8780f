// Correlated noise: the strategy matrix C of a matrix mechanism, and what follows from it.
//
// A run of n steps releases G x + C^-1 w instead of G x + w: x are the sums of the steps, w
// independent draws of one deviation, and C is lower triangular with ones on its diagonal. That is
// an invertible function, row by row, of C x + w, so what is charged is one Gaussian release of
// C x (Denisov, McMahan, Rush, Smith, Thakurta, arXiv 2202.08312, which covers sums that depend on
// earlier releases). Where the draws have deviation sigma in the unit of one contribution, the
// noise multiplier of that release is sigma / Sensitivity(who may take part in which steps).
//
// Error. Descent adds up what it gets, so what counts is the noise of the prefix sums, B w with
// B = A C^-1, A the lower triangular matrix of ones. At noise multiplier 1,
//
//   Rmse     = Sensitivity * sqrt(mean over t of |row t of B|^2)
//   MaxError = Sensitivity * max over t of |row t of B|.
//
// Both are proportional to the noise multiplier. They are 'none' for C = I: sqrt(k (n + 1) / 2) and
// sqrt(k n) with k participations.
#ifndef SORDINO_CORRELATION_STRATEGY_H_
#define SORDINO_CORRELATION_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/correlation/participation.h"

namespace sordino {

// A buffer s that forgets: it is 0 before the first step, and after step t it becomes
// decay * s + w_t. What step t adds of it is weight * s, as it was before step t.
struct NoiseBuffer {
  double decay;
  double weight;
};

// The noise of a step t, row t of C^-1 w:
//
//   n_t = w_t + sum_i earlier_draws[i - 1] w_{t-i} - sum_j earlier_noise[j - 1] n_{t-j}
//             + sum over buffers of weight * s,
//
// w, n and s before step 0 being 0. A strategy uses one of the three kinds of memory: earlier
// draws (can be drawn again from their step's number, so nothing has to be kept), earlier noise
// (that many vectors are kept), or buffers (one vector each).
struct NoiseFilter {
  std::vector<double> earlier_draws = {};
  std::vector<double> earlier_noise = {};
  std::vector<NoiseBuffer> buffers = {};
};

// What is made as small as it can be where a strategy has numbers to choose.
enum class CorrelationObjective { kRmse, kMaxError };

class Strategy {
 public:
  virtual ~Strategy() = default;

  // As MakeStrategy reads it: "banded:8".
  const std::string& text() const { return text_; }
  // The pattern it was made for. Another may be asked about too.
  const Participation& participation() const { return participation_; }

  // Lower triangular Toeplitz: all columns of C are the first one, shifted. False: a tree, whose
  // filter depends on the step, and which refuses (Error) to give coefficients.
  virtual bool IsToeplitz() const { return true; }
  // How many bands C has, its diagonal included: columns so far apart do not overlap. 1 for
  // independent noise; the steps of its pattern where C is full.
  virtual std::int64_t Bands() const = 0;
  // The first column of C and of C^-1, `steps` numbers; both begin with 1.
  virtual std::vector<double> Coefficients(std::int64_t steps) const = 0;
  virtual std::vector<double> NoiseCoefficients(std::int64_t steps) const = 0;
  // What makes the noise of a step. All steps have the same one, unless it is not Toeplitz.
  virtual NoiseFilter Filter(std::int64_t step) const = 0;
  // As ARMA: the same noise from earlier draws and earlier noise alone, without buffers.
  virtual NoiseFilter ArmaFilter(std::int64_t step) const { return Filter(step); }

  // The largest |C x| over all x whose contributions are vectors of norm 1 in the steps of a
  // pattern and 0 elsewhere: exact, or an upper bound that is proven where it is computed
  // (sensitivity.h), rounded up. Patterns with fewer steps than the strategy was made for are the
  // first rows of a run that stopped. Throws Error where neither is known.
  virtual double Sensitivity(const Participation& participation) const = 0;
  double Sensitivity() const { return Sensitivity(participation_); }
  // |row t of B|^2 for t < steps.
  virtual std::vector<double> SquaredErrors(std::int64_t steps) const = 0;
  double Rmse(const Participation& participation) const;
  double MaxError(const Participation& participation) const;
  double Rmse() const { return Rmse(participation_); }
  double MaxError() const { return MaxError(participation_); }

 protected:
  Strategy(std::string text, const Participation& participation);

 private:
  std::string text_;
  Participation participation_;
};

// A kind of strategy: a file in strategies/ and a line in strategies/strategy_list.inc.
class StrategyKind : public Component {
 public:
  using Component::Component;

  // "banded:B"; the name alone where there is no number.
  std::string Usage() const override { return std::string(name()) + std::string(suffix()); }
  virtual std::string_view suffix() const { return ""; }
  bool HasSize() const { return !suffix().empty(); }
  // The size where none is written: "banded" alone.
  virtual std::int64_t DefaultSize(const Participation& participation) const = 0;
  // How many bands C has in a run of so many steps, before anything is optimised; `size` where one
  // is written.
  virtual std::int64_t BandsOf(std::optional<std::int64_t> size, std::int64_t steps) const {
    return size == 1 ? 1 : steps;
  }
  virtual std::unique_ptr<Strategy> Make(std::int64_t size, const Participation& participation,
                                         CorrelationObjective objective) const = 0;
};

const Registry<StrategyKind>& Strategies();

// StrategyKind::BandsOf of a text. Throws Error for what is none.
std::int64_t BandsOf(std::string_view text, std::int64_t steps);

// "banded:8", "blt:4", "bisr:4", "bifr:4", "tree", "none". Throws Error for another text, for a
// size outside [1, steps], and for a pattern whose sensitivity is not known.
std::unique_ptr<Strategy> MakeStrategy(
    std::string_view text, const Participation& participation,
    CorrelationObjective objective = CorrelationObjective::kRmse);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_STRATEGY_H_
