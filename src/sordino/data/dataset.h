// Examples in memory, and what was declared about them before they were read.
//
// A declaration is public: it is written down by whoever knows the data before anyone looks at
// them, and nothing in it may come from the private records unless that was paid for. So the shape
// of an example, the number of classes, the bounds and the constants of normalisation are declared,
// and a file that does not keep to its declaration is refused.
#ifndef SORDINO_DATA_DATASET_H_
#define SORDINO_DATA_DATASET_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sordino {

enum class InputKind : std::uint8_t {
  kImage,     // uint8 [records, channels, height, width]
  kFeatures,  // float32 [records, features], within the declared bounds
  kTokens,    // int64 [records, length], 0 is padding
};

// Images: (pixel / 255 - mean) / deviation for each channel. Features: (x - mean) / deviation for
// each column. Empty: pixels are divided by 255 and nothing else is done.
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> deviation;  // positive
  std::string source;             // "declared", "published for MNIST", ...
};

// Of a number that a model predicts. Labels hold it scaled from the bounds to [-1, 1].
struct TargetBounds {
  std::string name;  // of the column
  double low = 0;
  double high = 1;

  double Scaled(double value) const;                // clamped to the bounds
  double Unscaled(double value) const;              // the inverse, not clamped
  double Unit() const { return (high - low) / 2; }  // what 1 means
};

struct DatasetDeclaration {
  std::string name;
  InputKind kind = InputKind::kImage;
  std::vector<std::int64_t> shape;  // of one example: {1, 28, 28}, {13}, {64}
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // empty: the labels are 0 ... classes - 1
  // Instead of classes, which are 0 then.
  std::optional<TargetBounds> target = {};
  // Number of training records as a public constant; 0 when it was not declared and is private.
  std::int64_t records = 0;
  std::int64_t vocabulary = 0;    // kTokens: ids are 0 ... vocabulary - 1
  std::string vocabulary_source;  // kTokens: the public text that the words come from
  // At most this many records belong to one user, when there is a user column; 0 without one.
  std::int64_t rows_per_user = 0;
  Normalisation normalisation;

  // Numbers that a model gives for an example: a logit for each class, or the target.
  std::int64_t Outputs() const { return target ? 1 : classes; }
};

struct Dataset {
  DatasetDeclaration declaration;
  at::Tensor inputs;
  at::Tensor labels;  // int64 [records]; float32 in [-1, 1] where a target is declared
  // What the column that was asked for says of each record; empty where none was.
  std::vector<std::string> ids = {};
  // Rows of a table that were left out (DataRequest::malformed). Private.
  std::int64_t malformed = 0;

  std::int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
};

struct DataSplits {
  Dataset train;
  std::optional<Dataset> test;  // declared public
};

// Throws Error unless the declaration holds together and inputs and labels have the type, shape and
// range that were declared. Labels may be undefined (records to predict).
void CheckDeclaration(const Dataset& data);

}  // namespace sordino

#endif  // SORDINO_DATA_DATASET_H_
