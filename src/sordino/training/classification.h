// What a run does with a classifier: its losses, its fixed features, its accuracy.
#ifndef SORDINO_TRAINING_CLASSIFICATION_H_
#define SORDINO_TRAINING_CLASSIFICATION_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
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

// Made-up records of the declared shape, as the model's Forward() takes them.
Batch MadeUpBatch(const DatasetDeclaration& declaration, const Model& model, std::int64_t examples,
                  std::int64_t copies, c10::Device device);

// The same records with Features() of the model in the place of the inputs, as rows of numbers.
// `progress` is told the share that is done after each part; it may throw to stop.
Dataset WithFeatures(const Dataset& data, const Model& model, c10::Device device,
                     FeatureShape* features, const std::function<void(double)>& progress);

struct TestMetrics {
  double accuracy = 0;  // in [0, 1]
  double loss = 0;      // mean cross entropy
};
// On records that are public.
TestMetrics Evaluate(const Model& model, const Dataset& test, c10::Device device,
                     const FeatureShape& features);

}  // namespace sordino

#endif  // SORDINO_TRAINING_CLASSIFICATION_H_
