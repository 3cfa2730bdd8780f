#include "sordino/training/canary_records.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/random/random_source.h"

namespace sordino {
namespace {

constexpr std::uint64_t kInputSeed = 19;  // any: the inputs are public
constexpr std::string_view kMislabelled = kCanaryKinds[1];
constexpr std::string_view kRandomInput = kCanaryKinds[2];

// Classes behind those that are given: by 1, 2, ..., never by a whole turn.
at::Tensor OtherClasses(const at::Tensor& labels, std::int64_t classes) {
  const at::Tensor turns = at::arange(labels.numel(), at::kLong).remainder(classes - 1).add(1);
  return labels.add(turns).remainder(classes);
}

Dataset PartOf(const Dataset& data, const at::Tensor& places) {
  Dataset part = data;
  part.ids.clear();
  part.inputs = data.inputs.index_select(0, places);
  part.labels = data.labels.index_select(0, places);
  return part;
}

CanaryRecords Mislabelled(std::int64_t count, std::optional<Dataset>& test) {
  const std::int64_t have = test ? test->size() : 0;
  if (count >= have) {
    throw Error(
        fmt::format("{} mislabelled canaries were asked for, and they are taken from the test set, "
                    "which has {} "
                    "records; give fewer canaries, or a larger test set.",
                    count, have));
  }
  at::Tensor taken = at::zeros({have}, at::TensorOptions().dtype(at::kBool));
  for (std::int64_t i = 0; i < count; ++i) taken.mutable_data_ptr<bool>()[i * have / count] = true;
  CanaryRecords canaries;
  canaries.records = PartOf(*test, taken.nonzero().squeeze(1));
  canaries.other_labels = canaries.records.labels;
  canaries.records.labels = OtherClasses(canaries.other_labels, test->declaration.classes);
  test = PartOf(*test, taken.logical_not().nonzero().squeeze(1));
  return canaries;
}

at::Tensor RandomWholes(at::IntArrayRef sizes, std::int64_t low, std::int64_t high,
                        Generator& stream) {
  at::Tensor wholes = at::empty(sizes, at::kLong);
  for (std::int64_t i = 0; i < wholes.numel(); ++i) {
    wholes.mutable_data_ptr<std::int64_t>()[i] =
        low + static_cast<std::int64_t>(stream.Next64() % static_cast<std::uint64_t>(high - low));
  }
  return wholes;
}

CanaryRecords RandomInputs(std::int64_t count, const DatasetDeclaration& declaration) {
  RandomSource random(kInputSeed);
  const auto stream = random.Stream({.step = 0, .rank = 0, .tensor = kCanaryStream});
  std::vector<std::int64_t> sizes = {count};
  sizes.insert(sizes.end(), declaration.shape.begin(), declaration.shape.end());
  CanaryRecords canaries;
  canaries.records.declaration = declaration;
  const bool is_text = declaration.kind == InputKind::kTokens;  // 0 is padding
  canaries.records.inputs = is_text ? RandomWholes(sizes, 1, declaration.vocabulary, *stream)
                                    : RandomWholes(sizes, 0, 256, *stream).to(at::kByte);
  canaries.records.labels = RandomWholes({count}, 0, declaration.classes, *stream);
  canaries.other_labels = OtherClasses(canaries.records.labels, declaration.classes);
  return canaries;
}

}  // namespace

bool AreRecords(std::string_view canary_kind) {
  return IndexOfName("--canary-kind", canary_kind, kCanaryKinds) > 0;
}

void CheckCanaryKind(std::string_view kind, const DatasetDeclaration& declaration, bool has_test) {
  if (!AreRecords(kind)) return;
  if (declaration.target || declaration.classes < 2) {
    throw Error(fmt::format(
        "--canary-kind {} gives records a class at random, and the data do not have two classes; "
        "give --canary-kind dirac.",
        kind));
  }
  if (kind == kMislabelled && !has_test) {
    throw Error(
        "--canary-kind mislabelled takes records of the public test set, and there is none; give "
        "--test, or another kind.");
  }
  if (kind == kRandomInput && declaration.kind == InputKind::kFeatures) {
    throw Error(
        "--canary-kind random-input makes images or texts, and the data are rows of features, "
        "whose columns depend on each other; give --canary-kind mislabelled or dirac.");
  }
  if (kind == kRandomInput && declaration.kind == InputKind::kTokens &&
      declaration.vocabulary < 2) {
    throw Error(
        "--canary-kind random-input makes texts of random words, and the vocabulary has none; give "
        "--canary-kind mislabelled or dirac.");
  }
}

CanaryRecords MakeCanaryRecords(std::string_view kind, std::int64_t count,
                                const DatasetDeclaration& declaration,
                                std::optional<Dataset>& test) {
  SORDINO_CHECK(AreRecords(kind), "canaries that are no records were to be made as records");
  CheckCanaryKind(kind, declaration, test.has_value());
  return kind == kMislabelled ? Mislabelled(count, test) : RandomInputs(count, declaration);
}

}  // namespace sordino
