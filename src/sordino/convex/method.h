// Private minimisation of an empirical risk: methods, plans and fits.
//
// The objective is a sum, sum_i l(theta; x_i, y_i) + (lambda / 2) |theta|^2, so that it does not
// name the number of rows. A FitPlan is made from declared numbers alone; it holds the noise and
// the event that a ledger is charged, and nothing about the data changes it. Fit then looks at the
// data once.
//
// Users with several rows. Where neighbours add or remove a user with at most k rows, every proof
// of this module holds for the sum of the user's losses in the place of a row's loss. For it, with
// |grad l| <= L and a Hessian of rank at most m and trace at most beta for a row: the gradient has
// at most the norm k L, in k m dimensions that the user's rows decide; the Hessian is positive
// semidefinite of rank at most k m and trace at most k beta; the sum of the user's x x^T has at
// most the Frobenius norm k R^2, and that of x y at most k R B (the triangle inequality each time).
// That is all that the proofs use of a record. So sensitivities are multiplied by k
// (internal::NeighbourFactor), and objective perturbation has k L, k beta and k m. Whoever makes
// the table keeps at most k rows of a user, whatever others do (tables/rows_per_user.h). Under the
// other adjacencies the number of rows is public, and replacing a user would change it: they are
// refused.
//
// A new method is a file that defines a class derived from FitMethod and a function that returns
// it, and a line in method_list.inc. Its file has the theorem that bounds its sensitivity.
#ifndef SORDINO_CONVEX_METHOD_H_
#define SORDINO_CONVEX_METHOD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/component.h"
#include "sordino/base/quantity.h"
#include "sordino/convex/problem.h"
#include "sordino/random/random_source.h"

namespace sordino {

// The norm of the weights of one score that predictions assume of the best model, in units of 1 /
// R: scores between -20 and 20. It decides how well a plan does, never how private it is.
inline constexpr double kDefaultWeightNorm = 20;

struct FitQuestion {
  TableShape table;
  // Declared. Under replace-one and zero-out it is public and Fit holds the table to it; under
  // add-remove it is a guess that only decides how well the plan does.
  std::int64_t records = 0;
  Epsilon epsilon{1};
  Delta delta{0};  // 0: pure epsilon, for the methods that have it
  Adjacency adjacency = Adjacency::kAddRemove;
  std::optional<double> lambda = std::nullopt;  // chosen by theory where it is not given
  double weight_norm = kDefaultWeightNorm;
  std::int64_t rows_per_user = 1;  // k, of one that is added or removed
};
inline constexpr std::int64_t kMaxFitRowsPerUser = 10'000;

// A noise of a plan, for people: {"on the coefficients", 0.01}.
struct PlannedNoise {
  std::string where;
  double deviation = 0;
};

struct FitPlan {
  Choice method{"gradient"};
  FitQuestion question;
  double lambda = 0;
  std::vector<PlannedNoise> noises;
  // What the ledger is charged, and how far in total variation the noise is from it at most
  // (accounting/failures.h). Together they spend at most epsilon at delta.
  Event event = Event::None();
  double failure = 0;
  // Predicted mean excess empirical risk (a mean loss, not regularised) over that of weights of the
  // assumed norm.
  double excess_risk = kInfinity;
  // The numbers of the method, for its Run.
  std::int64_t steps = 0;           // gradient, newton, and output by descent
  std::int64_t proximal_steps = 1;  // output
  double step_size = 0;             // of the sum of the gradients
  double sampling_rate = 1;         // gradient
  double clip = 0;                  // gradient, newton: bound on the norm of a row's gradient
  double multiplier = 0;            // noise over its sensitivity, of the first noise
  double second_multiplier = 0;     // of the second noise
  double sigma = 0;                 // objective, minima: deviation or scale of b
  double gradient_norm_limit = 0;   // what the certificate has to reach
  bool is_laplace = false;          // else Gaussian
};

// A method with its plan, or with the sentence why it has none.
struct PlannedFit {
  std::string method;
  std::optional<FitPlan> plan = std::nullopt;
  std::string refusal = {};
};

struct FitResult {
  at::Tensor coefficients = {};  // [d, K], float64
  // The certified upper bound on the norm of the gradient where the method needs a minimum; 0 for
  // methods without one. It is the limit of the plan: what was reached below it is private.
  double gradient_norm = 0;
  // Standard deviation of the noise on each coefficient where noise on the exact minimum is the
  // only private randomness: [d, K], undefined otherwise.
  at::Tensor deviation = {};
  // Where the noises on the coefficients of the only score depend on each other: a matrix A, [d,
  // m], such that they are A times independent standard normal numbers. Undefined: independent.
  at::Tensor noise_factor = {};
  // False where the randomness was seeded.
  bool is_private = true;
};

// The standard deviation of the noise on sum_j weights_j theta_j of each score, [K]. The result has
// deviations.
at::Tensor NoiseOfSum(const FitResult& result, const at::Tensor& weights);

// Called with the share of the work that is done, from 0 to 1; may throw.
using FitProgress = std::function<void(double share)>;

// What a ledger's filter counts for a plan. It holds as the plan's own event does; the method may
// have a profile of which that event is one point.
struct CountedFit {
  Event event = Event::None();
  double failure = 0;
};

class FitMethod : public Component {
 public:
  using Component::Component;

  // A method that does not apply returns the sentence why not; a question that is wrong for every
  // method throws Error.
  virtual PlannedFit Plan(const FitQuestion& question, const OptionValues& options) const = 0;
  // Where approximate events may have a delta of at most `loss` (ledger/release_costs.h).
  virtual CountedFit Counted(const FitPlan& plan, Delta loss) const;
  virtual FitResult Run(const FitPlan& plan, const Problem& problem, RandomSource& source,
                        const FitProgress& progress) const = 0;
};

const Registry<FitMethod>& FitMethods();
// That of its method.
CountedFit CountedBy(const FitPlan& plan, Delta loss);

// Throws Error for a number outside its range.
void CheckQuestion(const FitQuestion& question);

// One for each method, in the order of the list, with default options.
std::vector<PlannedFit> PlanFits(const FitQuestion& question);
// One method with its options; throws Error where it does not apply.
FitPlan PlanFit(const FitQuestion& question, const Choice& method);
// That of the least predicted risk; throws Error where none applies. Looks at no data.
FitPlan ChooseMethod(const std::vector<PlannedFit>& plans);

// Throws Error where the table is not that of the question (its shape and, under replace-one and
// zero-out, its number of rows). Everything else was checked by the plan.
FitResult Fit(const FitPlan& plan, const Problem& problem, RandomSource& source,
              const FitProgress& progress = {});

// For public data, and to compare with: the minimum without noise. The plan has no event, because
// nothing is protected; the budget of the question is not used. Where lambda is not given it is p /
// rho^2, that of weights drawn from a Gaussian distribution of the assumed norm rho.
FitPlan PlanWithoutPrivacy(const FitQuestion& question);
FitResult FitWithoutPrivacy(const FitPlan& plan, const Problem& problem,
                            const FitProgress& progress = {});

}  // namespace sordino

#endif  // SORDINO_CONVEX_METHOD_H_
