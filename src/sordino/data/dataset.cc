#include "sordino/data/dataset.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/data/internal/declaration_check.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

// Within this many classes a mistake is more likely than a task, and counts fit everywhere.
constexpr std::int64_t kMaxClasses = 1'000'000;

void CheckNormalisation(const DatasetDeclaration& declaration) {
  const Normalisation& n = declaration.normalisation;
  if (n.mean.empty() && n.deviation.empty()) return;
  if (declaration.kind == InputKind::kTokens) {
    throw Error(
        "a mean and a deviation were declared for tokens, which are not numbers to scale; "
        "leave them out.");
  }
  const auto channels = static_cast<std::size_t>(declaration.shape[0]);
  const std::string_view unit = declaration.kind == InputKind::kImage ? "channel" : "feature";
  if (n.mean.size() != channels || n.deviation.size() != channels) {
    throw Error(
        fmt::format("{} means and {} deviations were declared; give one of each for each "
                    "{}, {} in all.",
                    n.mean.size(), n.deviation.size(), unit, channels));
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto scale = [](double value) { return std::isfinite(value) && value > 0; };
  if (!std::all_of(n.mean.begin(), n.mean.end(), finite) ||
      !std::all_of(n.deviation.begin(), n.deviation.end(), scale)) {
    throw Error(
        fmt::format("the means are {} and the deviations {}; means must be finite and "
                    "deviations positive.",
                    fmt::join(n.mean, ", "), fmt::join(n.deviation, ", ")));
  }
}

at::ScalarType TypeOf(InputKind kind) {
  switch (kind) {
    case InputKind::kImage:
      return at::kByte;
    case InputKind::kFeatures:
      return at::kFloat;
    case InputKind::kTokens:
      return at::kLong;
  }
  return at::kByte;
}

bool Within(const at::Tensor& values, std::int64_t end) {
  return values.numel() == 0 ||
         (values.min().item<std::int64_t>() >= 0 && values.max().item<std::int64_t>() < end);
}

// In parts, so that the check needs little memory of its own.
bool AllFinite(const at::Tensor& inputs) {
  constexpr std::int64_t kPart = std::int64_t{1} << 20;
  const at::Tensor flat = inputs.flatten();
  for (std::int64_t begin = 0; begin < flat.size(0); begin += kPart) {
    const at::Tensor part = flat.slice(0, begin, std::min(flat.size(0), begin + kPart));
    if (!at::isfinite(part).all().item<bool>()) return false;
  }
  return true;
}

void CheckInputs(const Dataset& data) {
  const DatasetDeclaration& declaration = data.declaration;
  if (!data.inputs.defined()) {
    throw Error(fmt::format("the dataset '{}' has no inputs; read them first.", declaration.name));
  }
  if (data.inputs.scalar_type() != TypeOf(declaration.kind)) {
    throw Error(fmt::format("the inputs of '{}' are {}; {} was declared.", declaration.name,
                            c10::toString(data.inputs.scalar_type()),
                            c10::toString(TypeOf(declaration.kind))));
  }
  std::vector<std::int64_t> shape = {data.inputs.dim() == 0 ? 0 : data.inputs.size(0)};
  shape.insert(shape.end(), declaration.shape.begin(), declaration.shape.end());
  if (data.inputs.sizes() != at::IntArrayRef(shape)) {
    throw DataError(fmt::format("the inputs of '{}' do not have the declared shape ({}).",
                                declaration.name, fmt::join(declaration.shape, ", ")),
                    fmt::format("their shape is ({})", fmt::join(data.inputs.sizes(), ", ")));
  }
  if (declaration.kind == InputKind::kFeatures && !AllFinite(data.inputs)) {
    throw Error(
        fmt::format("the inputs of '{}' hold an infinity or something that is not a "
                    "number; leave such records out or give them a value.",
                    declaration.name));
  }
  if (declaration.kind == InputKind::kTokens && !Within(data.inputs, declaration.vocabulary)) {
    throw Error(
        fmt::format("the inputs of '{}' hold a token that is not among the declared 0 to "
                    "{}; declare the whole vocabulary.",
                    declaration.name, declaration.vocabulary - 1));
  }
}

void CheckTarget(const Dataset& data) {
  const DatasetDeclaration& declaration = data.declaration;
  const at::Tensor& labels = data.labels;
  if (labels.scalar_type() != at::kFloat || labels.dim() != 1 ||
      labels.size(0) != data.inputs.size(0) || !labels.abs().le(1).all().item<bool>()) {
    throw Error(fmt::format(
        "the targets of '{}' are not one number within the declared bounds for each of its "
        "records.",
        declaration.name));
  }
}

void CheckLabels(const Dataset& data) {
  const DatasetDeclaration& declaration = data.declaration;
  if (data.labels.scalar_type() != at::kLong || data.labels.dim() != 1 ||
      data.labels.size(0) != data.inputs.size(0)) {
    throw DataError(
        fmt::format("the labels of '{}' are not one whole number for each of its "
                    "records.",
                    declaration.name),
        fmt::format("they are {} of the shape ({})", c10::toString(data.labels.scalar_type()),
                    fmt::join(data.labels.sizes(), ", ")));
  }
  if (!Within(data.labels, declaration.classes)) {
    throw Error(
        fmt::format("the labels of '{}' go beyond the declared classes 0 to {}; declare "
                    "the right number of classes, or correct the file.",
                    declaration.name, declaration.classes - 1));
  }
}

}  // namespace

void internal::CheckItself(const DatasetDeclaration& declaration) {
  const std::size_t dimensions = declaration.kind == InputKind::kImage ? 3 : 1;
  const auto positive = [](std::int64_t size) { return size > 0; };
  if (declaration.shape.size() != dimensions ||
      !std::all_of(declaration.shape.begin(), declaration.shape.end(), positive)) {
    throw Error(fmt::format(
        "the declared shape of an example is ({}); give {} above 0.",
        fmt::join(declaration.shape, ", "),
        dimensions == 3 ? "channels, height and width" : "the number of features or tokens"));
  }
  if (declaration.target && declaration.classes > 0) {
    throw Error("both classes and a target were declared; a model has one of them.");
  }
  if (!declaration.target && (declaration.classes < 2 || declaration.classes > kMaxClasses)) {
    throw Error(fmt::format("{} classes were declared; give a number from 2 to {}.",
                            declaration.classes, kMaxClasses));
  }
  if (!declaration.target && !declaration.class_names.empty() &&
      static_cast<std::int64_t>(declaration.class_names.size()) != declaration.classes) {
    throw Error(fmt::format("{} class names were declared for {} classes; give one for each.",
                            declaration.class_names.size(), declaration.classes));
  }
  if (declaration.kind == InputKind::kTokens && declaration.vocabulary < 2) {
    throw Error(
        fmt::format("a vocabulary of {} ids was declared; tokens need at least 2, for "
                    "padding and for unknown words.",
                    declaration.vocabulary));
  }
  CheckNormalisation(declaration);
}

double TargetBounds::Scaled(double value) const {
  return std::clamp((2 * (std::clamp(value, low, high) - low)) / (high - low) - 1, -1.0, 1.0);
}

double TargetBounds::Unscaled(double value) const { return low + (value + 1) * Unit(); }

void CheckDeclaration(const Dataset& data) {
  internal::CheckItself(data.declaration);
  CheckInputs(data);
  if (!data.labels.defined()) return;
  if (data.declaration.target) {
    CheckTarget(data);
  } else {
    CheckLabels(data);
  }
}

}  // namespace sordino
