// What a run does with a classifier, or with a model of a number: its losses, its fixed features,
// its accuracy or its error.
#ifndef SORDINO_TRAINING_CLASSIFICATION_H_
#define SORDINO_TRAINING_CLASSIFICATION_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/models/model.h"

namespace sordino {

std::vector<NamedParameter> ParametersOf(const Model& model);

// The shape of what Forward() takes, of one example. Datasets hold features as rows of numbers.
using FeatureShape = std::vector<std::int64_t>;

// Logits of inputs as the loader gives them: records, or rows of their features where the model has
// some.
at::Tensor Logits(const Model& model, const at::Tensor& inputs, const FeatureShape& features);

// Cross entropy of each example of {inputs, labels}. With copies > 1 the inputs are [n, copies,
// ...] and the loss of an example is the mean of those of its copies. The loss of an example is
// multiplied by the weight of its class, where weights are given: declared numbers, on the device
// of the model. The model must outlive it.
LossFunction CrossEntropy(const Model& model, std::int64_t copies, FeatureShape features,
                          const at::Tensor& class_weights = {});

// Half the square of output - target, both in the units of the scaled target (data/dataset.h).
LossFunction SquaredLoss(const Model& model, std::int64_t copies, FeatureShape features);

// The one that the declaration asks for.
LossFunction LossOf(const DatasetDeclaration& declaration, const Model& model, std::int64_t copies,
                    FeatureShape features, const at::Tensor& class_weights = {});

// Made-up records of the declared shape, as the model's Forward() takes them.
Batch MadeUpBatch(const DatasetDeclaration& declaration, const Model& model, std::int64_t examples,
                  std::int64_t copies, c10::Device device);

// The same records with Features() of the model in the place of the inputs, as rows of numbers.
// `progress` is told the share that is done after each part; it may throw to stop.
Dataset WithFeatures(const Dataset& data, const Model& model, c10::Device device,
                     FeatureShape* features, const std::function<void(double)>& progress);

// Of predicted numbers, in the units of the target.
struct PredictionError {
  double mean_squared = 0;
  double mean_absolute = 0;
};

struct TestMetrics {
  std::optional<double> accuracy;        // of classes, in [0, 1]
  std::optional<PredictionError> error;  // of a number
  double loss = 0;                       // the mean of what LossOf gives, without class weights
};
// On records that are public.
TestMetrics Evaluate(const Model& model, const Dataset& test, c10::Device device,
                     const FeatureShape& features);

}  // namespace sordino

#endif  // SORDINO_TRAINING_CLASSIFICATION_H_
