// What a trained model says about the test set of its run, for predictions.json
// (report/report_predictions.h).
//
// It is computed from the released model and from public records alone, so it is free. Which
// records are public is not guessed: those of a dataset that is known by name may be shown; a file
// that --test names is public by what the flag says, and is counted and not shown; a file that has
// a ledger is private, whatever the flag says, and nothing is written of it.
#ifndef SORDINO_RUNS_INTERNAL_TEST_PREDICTIONS_H_
#define SORDINO_RUNS_INTERNAL_TEST_PREDICTIONS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include "sordino/data/catalog.h"
#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/report/class_quality.h"
#include "sordino/training/classification.h"

namespace sordino::internal {

enum class TestDisclosure : std::uint8_t {
  kNothing,
  kCounts,   // how often a class was taken for another
  kRecords,  // and records with their pictures
};
// Throws Error for a file that does not exist.
TestDisclosure DisclosureOf(const DataRequest& request);

struct TestRecords {
  TestDisclosure disclosure = TestDisclosure::kNothing;
  at::Tensor pictures;  // of the records, before features took their place; undefined: none
};
// Before features take the place of the inputs.
TestRecords TestRecordsOf(const DataRequest& request, const DataSplits& data);

struct TestAnswers {
  std::string file;  // predictions.json
  ClassQuality quality;
};
// Of a model that does not train at the moment; nothing without records or classes, or with more
// than kMaxConfusionClasses of them.
std::optional<TestAnswers> TestPredictions(const Model& model, const Dataset& test,
                                           const FeatureShape& features, const TestRecords& records,
                                           c10::Device device);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_TEST_PREDICTIONS_H_
