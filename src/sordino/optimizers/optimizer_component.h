// What an algorithm for optimization is: a component with its options, its steps and its memory.
//
// A new one is a file that defines a class derived from OptimizerComponent and a function that
// returns it, and a line in optimizer_list.inc.
#ifndef SORDINO_OPTIMIZERS_OPTIMIZER_COMPONENT_H_
#define SORDINO_OPTIMIZERS_OPTIMIZER_COMPONENT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/device/descent.h"

namespace sordino {

// The largest learning rate and weight decay. libtorch refuses what is beyond single precision only
// at the first step, and what is near it gives infinite weights (train_config.cc has the other
// factors of a step).
inline constexpr double kMaxStepFactor = 1e9;

// What an algorithm keeps for one parameter.
struct KeptState {
  std::vector<at::Tensor> tensors;  // in the order of KeptTensors(), in the shape of the parameter
  std::int64_t step = 0;            // where steps are counted
};

// An algorithm on its parameters.
class OptimizerAlgorithm {
 public:
  virtual ~OptimizerAlgorithm() = default;

  // One step by the gradients in grad() of the parameters; gradients are off.
  virtual void Step(double learning_rate) = 0;

  // The next step as a formula of the gradients, where it is one (device/descent.h). Whoever asks
  // makes this step, or one by Step.
  virtual std::optional<Descent> AsDescent(double learning_rate) {
    static_cast<void>(learning_rate);
    return std::nullopt;
  }

  // Names of the tensors that are kept for each parameter, as they stand in checkpoints.
  virtual std::vector<std::string_view> KeptTensors() const = 0;
  virtual bool CountsSteps() const = 0;
  // Of parameter i, after at least one step. Asked for only where tensors are kept.
  virtual KeptState Kept(std::size_t i) const = 0;
  // Before the first step.
  virtual void Restore(std::size_t i, const KeptState& state) = 0;
};

class OptimizerComponent : public Component {
 public:
  using Component::Component;

  // What `sordino train` takes where none is given.
  virtual double LearningRate() const = 0;
  // Its momentum, for schedules that follow from it; nullopt where it has none.
  virtual std::optional<double> Momentum(const OptionValues& options) const {
    static_cast<void>(options);
    return std::nullopt;
  }
  // `parameters` are leaves that require gradients; options were checked.
  virtual std::unique_ptr<OptimizerAlgorithm> Make(const std::vector<at::Tensor>& parameters,
                                                   const OptionValues& options) const = 0;
};

const Registry<OptimizerComponent>& Optimizers();

}  // namespace sordino

#endif  // SORDINO_OPTIMIZERS_OPTIMIZER_COMPONENT_H_
