// Canaries that are records: inputs and labels that anybody can make again, and that are not in the
// data.
//
//   mislabelled   records of the public test set, evenly spaced, each with a class that is not its
//                 own. The test set is measured without them.
//   random-input  uniform pixels or words with uniform classes, from a fixed seed.
//
// They must not come from the data: a canary that is a copy of a record with another label would
// let that record into the run twice, and the guarantee counts it once. All of them are constants;
// what is secret of a canary is only its coin (internal/data_canaries.h).
#ifndef SORDINO_TRAINING_CANARY_RECORDS_H_
#define SORDINO_TRAINING_CANARY_RECORDS_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sordino/data/dataset.h"

namespace sordino {

// The first is that of canaries.h.
inline constexpr std::array<std::string_view, 3> kCanaryKinds = {"dirac", "mislabelled",
                                                                 "random-input"};

// False for "dirac"; throws Error for a name that is none of the kinds.
bool AreRecords(std::string_view canary_kind);

struct CanaryRecords {
  Dataset records;          // with the declaration of the data
  at::Tensor other_labels;  // what those that are out have under replace-one, never their own
};

// Throws Error for a kind that the data do not allow: what is known before they are read.
void CheckCanaryKind(std::string_view kind, const DatasetDeclaration& declaration, bool has_test);

// Takes those of the test set out of it. Throws Error where it has too few.
CanaryRecords MakeCanaryRecords(std::string_view kind, std::int64_t count,
                                const DatasetDeclaration& declaration,
                                std::optional<Dataset>& test);

}  // namespace sordino

#endif  // SORDINO_TRAINING_CANARY_RECORDS_H_
