// A data format in one file, for the test DataFormat: a line holds two numbers and a label.
#include <ATen/Functions.h>

#include <fstream>
#include <vector>

#include "sordino/data/internal/data_format.h"

namespace sordino::internal {
namespace {

Dataset ReadDummy(const SplitFiles& files, const DatasetDeclaration& declaration,
                  const ReadOptions&) {
  std::ifstream in(files.inputs.front());
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  float x = 0;
  float y = 0;
  for (std::int64_t label = 0; in >> x >> y >> label;) {
    inputs.insert(inputs.end(), {x, y});
    labels.push_back(label);
  }
  return {declaration, at::tensor(inputs).view({-1, 2}), at::tensor(labels, at::kLong)};
}

}  // namespace

const DataFormat& DummyFormat() {
  static const DataFormat format = {
      .name = "dummy",
      .help = "two numbers and a label on each line",
      .endings = {".dummy"},
      .takes = {"classes"},
      .open = [](const DataRequest&, DatasetDeclaration& declaration) -> DatasetReader {
        declaration.kind = InputKind::kFeatures;
        declaration.shape = {2};
        return ReadDummy;
      }};
  return format;
}

}  // namespace sordino::internal
