// Gradient flows of small drawn problems under each way to clip: does the loss fall all the time,
// and does it reach 0?
//
// A problem has n examples with outputs f_i(theta), the loss sum_i (f_i - y_i)^2 / (2 n) and
// weights theta in layers r. With residuals l_i = f_i - y_i and J_ir = df_i / dtheta_r the flow is
//
//     dtheta_r / dt = -(1 / n) sum_i c_ir l_i J_ir,
//     dloss / dt    = -(1 / n^2) l^T M l,     M = sum_r H_r C_r,   H_r = J_r J_r^T
//
// (Bu, Wang, Long, Shen, arXiv 2106.07830; clipping/clipped_kernel.h has the same kernel for models
// of libtorch). The factors c_ir of g_ir = l_i J_ir, for the clipping norm C:
//
//   none               1
//   local-flat         min(1, C / |g_i|)
//   local-layerwise    min(1, C_r / |g_ir|), C_r = C / sqrt(layers)
//   global-flat        min(1, C / max_j |g_j|), the same for all examples
//   global-layerwise   min(1, C_r / max_j |g_jr|), the same for all examples in each layer
//   global-declared    C / Z for |g_i| <= Z, else 0: what a private run can have in the place of
//                      global-flat, because the largest norm of a batch is private
//
// What is known where H is positive definite and constant: c H, and sum_r c_r H_r, are symmetric
// and positive, so the loss falls all the time, to 0. Local flat clipping descends sum_i h(l_i),
// with Huber's loss h of each example, so the loss reaches 0 and may rise on the way. Local
// layerwise clipping descends no function: the clipped gradients of a layer may cancel while the
// residuals are large, and the flow stops there.
//
// Flows are integrated in double by an adaptive Runge-Kutta method of order 5 (Dormand and Prince)
// to an error of 1e-9 a step; whether the loss falls is told from dloss / dt itself. "Reaches 0":
// the loss is below kZeroShare of its start. "Stops": the length of dtheta / dt is below kStopSpeed
// C at the end. Kernels are looked at in all times that are shown.
#ifndef SORDINO_THEORY_CLIPPED_FLOW_H_
#define SORDINO_THEORY_CLIPPED_FLOW_H_

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace sordino {

// The six names above, in their order.
std::span<const std::string_view> FlowClippings();

// Residuals and derivatives at a point, [examples] and [examples][weights].
struct FlowPoint {
  std::vector<double> residuals;
  std::vector<std::vector<double>> derivatives;
};

class FlowProblem {
 public:
  // `layers` is the layer of each weight, from 0.
  explicit FlowProblem(std::vector<std::size_t> layers) : layers_(std::move(layers)) {}
  virtual ~FlowProblem() = default;
  FlowProblem(const FlowProblem&) = delete;
  FlowProblem& operator=(const FlowProblem&) = delete;

  const std::vector<std::size_t>& layers() const { return layers_; }
  std::size_t layer_count() const;
  virtual std::vector<double> Start() const = 0;
  virtual FlowPoint At(std::span<const double> weights) const = 0;

 private:
  std::vector<std::size_t> layers_;
};

// Outputs that are linear in the weights, from weights 0: the kernel is constant. Throws Error
// where the rows, the layers and the targets do not fit together.
std::unique_ptr<FlowProblem> FixedKernelProblem(std::vector<std::vector<double>> rows,
                                                std::vector<std::size_t> layers,
                                                std::vector<double> targets);

// "fixed-kernel": 4 examples and 4 weights, each a layer of its own. "network": 5 examples, 3
// inputs, 6 units of tanh and one output, in two layers. All numbers are standard normal, targets
// `scale` times that; inputs of a network lie near each other. Drawn again until the least
// eigenvalue of the kernel at the start is at least kLeastEigenvalue of the largest.
std::span<const std::string_view> FlowProblemNames();
std::unique_ptr<FlowProblem> DrawFlowProblem(std::string_view name, double scale,
                                             std::mt19937_64& random);

struct FlowClipping {
  std::string_view name;  // one of FlowClippings()
  double clip = 0.5;      // C, above 0
  double threshold = 5;   // Z of global-declared, at least C
};

struct FlowOutcome {
  std::vector<double> losses;  // over that of the start, at the times that were asked for
  double largest_rise = 0;     // over the loss of the start: how far it was above an earlier one
  double asymmetry = 0;        // largest |M - M^T| over the largest |M|
  double least_form = 0;       // least eigenvalue of (M + M^T) / 2 over the largest
  double end_speed = 0;        // |dtheta / dt| over C
  bool rises = false;          // dloss / dt > 0 somewhere

  static constexpr double kZeroShare = 1e-8;
  static constexpr double kStopSpeed = 1e-6;
  static constexpr double kTolerance = 1e-9;
  bool IsSymmetric() const { return asymmetry <= kTolerance; }
  bool HasPositiveForm() const { return least_form >= -kTolerance; }
  bool ReachesZero() const { return losses.back() <= kZeroShare; }
  bool Stops() const { return !ReachesZero() && end_speed <= kStopSpeed; }
};

inline constexpr double kLeastEigenvalue = 0.05;

// `times` increase from 0; the flow ends at the last. Throws Error for settings out of range.
FlowOutcome FollowFlow(const FlowProblem& problem, const FlowClipping& clipping,
                       std::span<const double> times);

}  // namespace sordino

#endif  // SORDINO_THEORY_CLIPPED_FLOW_H_
