// The bounds on the excess risk that the literature gives for ten private algorithms, as numbers.
//
// They are the table of Hong, Wang and Zhou (arXiv 2101.07413) for strongly convex losses, in their
// order. Each is O(...) with unknown constants: here every constant is 1, so that the rows can be
// compared in how they scale, not in what a run will reach. In probability bounds the failure
// probability is kPublishedFailure and the exponent c of [7] is 0; momentum rows are for more steps
// than their threshold, which is the larger case, with c = 1.
//
// So is the table's column of noise variances sigma_t^2, for the first and the last of T steps with
// gamma = 1 - 1 / kappa. The row of the dynamic schedule with momentum has the constants c_1 = c_2
// = 1 and the exponent as it is printed, (T - t) / 2, with which the noise rises; that of the best
// schedule falls (momentum.h), as in the row without momentum.
#ifndef SORDINO_THEORY_PUBLISHED_BOUNDS_H_
#define SORDINO_THEORY_PUBLISHED_BOUNDS_H_

#include <optional>
#include <string_view>
#include <vector>

namespace sordino {

struct PublishedBound {
  std::string_view algorithm;
  std::string_view order;                // "D ln N / (N^2 R)"
  std::optional<double> bound;           // nullopt where a quantity that it needs was not given
  std::string_view schedule;             // sigma_t^2: "T / R"
  std::optional<double> first_variance;  // likewise nullopt
  std::optional<double> last_variance;
};

struct PublishedQuestion {
  double records = 0;                                   // N
  double dimension = 0;                                 // D
  double budget = 0;                                    // R
  std::optional<double> epsilon = std::nullopt;         // of the budget, which one row needs
  std::optional<double> delta = std::nullopt;           // likewise, for two schedules
  std::optional<double> steps = std::nullopt;           // T, for schedules
  std::optional<double> gamma = std::nullopt;           // of the problem, for dynamic schedules
  std::optional<double> momentum_gamma = std::nullopt;  // with momentum; left out, the same
};

inline constexpr double kPublishedFailure = 0.05;

// Ten rows; without a question (alpha alone was given) none has a number. Throws Error for a
// quantity that is not positive and finite.
std::vector<PublishedBound> PublishedBounds(const std::optional<PublishedQuestion>& question);

}  // namespace sordino

#endif  // SORDINO_THEORY_PUBLISHED_BOUNDS_H_
