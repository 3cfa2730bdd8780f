// Small models for tests of the Clipper, and the comparison of its results with the loop that runs
// example by example.
//
// A model is written once for every floating-point type and every batch size: a function that asks
// for its parameters and returns what a batch goes through.
//
//   ExpectAgreesWithLoop("linear", [](ModelMaker& m) {
//     const at::Tensor w = m.Parameter("l.weight", {3, 4});
//     m.Input({5, 4});
//     return [=](const Batch& b) { return LossOf(at::linear(b[0], w)); };
//   });
#ifndef SORDINO_GRADIENTS_TESTING_GRADIENTS_TEST_SUPPORT_H_
#define SORDINO_GRADIENTS_TESTING_GRADIENTS_TEST_SUPPORT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// Gives out parameters and remembers what the inputs of the model are.
class ModelMaker {
 public:
  explicit ModelMaker(at::ScalarType type) : type_(type) {}

  at::ScalarType type() const { return type_; }
  at::TensorOptions options() const { return at::TensorOptions().dtype(type_); }

  // Normal values of standard deviation `scale` around `mean`.
  at::Tensor Parameter(const std::string& name, at::IntArrayRef sizes, double scale = 0.6,
                       double mean = 0);
  at::Tensor Frozen(const std::string& name, at::IntArrayRef sizes);
  // A tensor that is no parameter: a mask, a buffer.
  at::Tensor Constant(at::IntArrayRef sizes, double scale = 1) const;
  // Takes over the parameters of a module that was made elsewhere.
  void Adopt(std::vector<NamedParameter> parameters);

  // The sizes of one example of an input: normal values, or integers in [0, below).
  void Input(std::vector<std::int64_t> sizes);
  void Tokens(std::int64_t below, std::vector<std::int64_t> sizes);

  Batch MakeBatch(std::int64_t examples) const;
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

 private:
  struct InputKind {
    std::vector<std::int64_t> sizes;
    std::int64_t below = 0;  // 0: normal values
  };

  at::ScalarType type_;
  std::vector<NamedParameter> parameters_;
  std::vector<InputKind> inputs_;
};

using ModelFunction = std::function<LossFunction(ModelMaker&)>;

struct TestModel {
  std::vector<NamedParameter> parameters;
  LossFunction loss;
  std::function<Batch(std::int64_t)> batch;
};

// Seeds libtorch's generator, so that a model is the same wherever it is made.
TestModel MakeModel(const ModelFunction& function, at::ScalarType type, std::uint64_t seed = 1);

// One loss for each example from an output whose dimension `batch_dim` runs over the examples: a
// curved function that treats no two entries alike.
at::Tensor LossOf(const at::Tensor& output, std::int64_t batch_dim = 0);

// Distance of two lists of tensors over the norm of the second.
double RelativeError(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected);
double Distance(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second);
double NormOf(const std::vector<at::Tensor>& tensors);

// A policy that clips about half of the examples of the batch, and in layers.
std::unique_ptr<ClippingPolicy> HalfClippedFlat(const TestModel& model, const Batch& batch);
std::unique_ptr<ClippingPolicy> HalfClippedLayers(const TestModel& model, const Batch& batch);

struct Tolerance {
  double norms = 0;
  double sums = 0;
};
Tolerance ToleranceOf(at::ScalarType type);

// Adds failures to the test when sums, norms or the number of clipped examples differ from the
// loop's: of the whole and of every parameter.
void ExpectSameAsLoop(const BoundedSum& sum, const at::Tensor& norms, const LoopResult& loop,
                      const std::vector<NamedParameter>& parameters, Tolerance tolerance,
                      const std::string& what);

struct LoopComparison {
  std::vector<std::int64_t> batches = {0, 1, 5};
  std::vector<at::ScalarType> types = {at::kDouble, at::kFloat};
  GradientOptions options = {.checked_examples = 0};
};

// All norm methods, flat and layerwise, each first with the ownership probe and then from memory.
void ExpectAgreesWithLoop(const std::string& what, const ModelFunction& function,
                          const LoopComparison& comparison = {});

// The sentence of the error that the model is refused with; a failure when it is not.
std::string Refusal(const TestModel& model, const Batch& batch, GradientOptions options = {});

// Parameters of modules of torch::nn, by what ModelMaker::Adopt takes, with their forward passes:
// kept here because torch/torch.h is slow to compile.
ModelFunction TransformerModel(bool batch_first_input);
ModelFunction MultiHeadAttentionModel(bool separate_inputs, bool bias_kv);
ModelFunction RecurrentModel(const std::string& kind, bool batch_first, std::int64_t layers,
                             bool bidirectional);
ModelFunction RecurrentCellModel(const std::string& kind);
ModelFunction ConvolutionalModel();

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_GRADIENTS_TEST_SUPPORT_H_
