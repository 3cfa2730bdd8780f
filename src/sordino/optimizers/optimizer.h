// Optimizers on noised gradients.
//
// An optimizer sees NoisedGradients and nothing else of the data: what it does with them is
// post-processing and costs no privacy. The algorithms are components (optimizer_component.h).
#ifndef SORDINO_OPTIMIZERS_OPTIMIZER_H_
#define SORDINO_OPTIMIZERS_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/schedules/schedule.h"

namespace sordino {

struct Descent;

struct OptimizerOptions {
  // Which one, with its own options: {"sgd", {{"momentum", 0.9}}}. Its step is r times a direction.
  Choice algorithm = "sgd";
  double learning_rate = 0.5;  // r
  Schedule schedule = {};      // of the learning rate
  // After each step the parameters, as one vector, are projected onto the ball of this radius
  // around 0 (projected gradient descent); 0: no projection.
  double projection_radius = 0;
  // Decay of the exponential moving average of the weights, in [0, 1); 0: no average. Early steps
  // use min(decay, (1 + step) / (10 + step)).
  double average_decay = 0;
};

class Optimizer {
  struct State;

 public:
  // Frozen parameters are left out, and a tied weight counts once, under its first name. `steps` is
  // the length of the run, for the schedule. Throws Error for options out of range or that the
  // algorithm does not have.
  Optimizer(std::vector<NamedParameter> parameters, const OptimizerOptions& options,
            std::int64_t steps);
  // For parameters whose steps are computed elsewhere, in parts (training/trainer.h, several
  // processes): counts the steps, projects and averages, and keeps nothing of the algorithm.
  static Optimizer Follower(std::vector<NamedParameter> parameters, const OptimizerOptions& options,
                            std::int64_t steps);
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  // One step; the gradients are the means over the declared batch size, one for each parameter
  // that is trained, in its shape, of any floating-point type and on any device. What is in grad()
  // of a parameter is not read, and is gone afterwards. Throws Error when the gradients do not fit
  // the parameters, when the run has had all its steps, and while averaged weights are in use.
  void Step(const NoisedGradients& gradients);
  // The baseline without privacy.
  void StepNonPrivate(const std::vector<at::Tensor>& gradients);

  // Of a follower: the parameters have just got the values of the next step.
  void Follow();

  std::int64_t steps_done() const;

  // Everything beside the parameters that a later step depends on, copied to the CPU:
  //
  //   optimizer.<parameter>.<tensor>   what the algorithm keeps: "momentum", "sum", ...
  //   optimizer.<parameter>.step       where it counts its steps
  //   average.<parameter>              where there is an average
  //
  // Nothing of the first two before the first step. Throws Error while averaged weights are in
  // use, and where two parameters have one name.
  NamedTensors SaveState() const;
  // Resumes after `steps_done` steps: with the parameters of that time, every later step is bit
  // for bit the one that the saved optimizer makes. Throws Error, and changes nothing, when names,
  // shapes or types are not those of this optimizer, or the run has fewer steps.
  void RestoreState(const NamedTensors& state, std::int64_t steps_done);

  // The weights to evaluate and to save: the average where there is one, else the parameters
  // themselves. While the guard lives, the parameters hold the averages; the optimizer has to live
  // longer. Throws Error where another guard of this optimizer lives.
  class AveragedWeights {
   public:
    explicit AveragedWeights(Optimizer& optimizer);
    ~AveragedWeights();
    AveragedWeights(const AveragedWeights&) = delete;
    AveragedWeights& operator=(const AveragedWeights&) = delete;

   private:
    State& state_;
  };

 private:
  friend class NoisedUpdate;  // training/noised_update.h

  // A step by gradients that `descend` makes and uses in one launch. Returns false, without a step,
  // if it cannot do that or the algorithm is not a descent: then call Step.
  bool StepBy(const std::function<bool(const Descent&)>& descend);

  Optimizer(std::vector<NamedParameter> parameters, const OptimizerOptions& options,
            std::int64_t steps, bool follows);
  std::unique_ptr<State> state_;
};

}  // namespace sordino

#endif  // SORDINO_OPTIMIZERS_OPTIMIZER_H_
