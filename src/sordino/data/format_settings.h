// Which settings the data of a request take.
#ifndef SORDINO_DATA_FORMAT_SETTINGS_H_
#define SORDINO_DATA_FORMAT_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/missing_setting.h"
#include "sordino/data/catalog.h"

namespace sordino {

// Whether the format of the data takes a setting, by its key: "shape", "columns". Throws Error for
// data that are not there or whose format is not known.
bool TakesSetting(const DataRequest& request, std::string_view key);

// The heading of Dataset::ids when records are opened for prediction: the column that was asked
// for, "file" for images; empty: the records have no names.
std::string RecordNames(const DataRequest& request);

// What is not declared and must be, before anything is read.
// All at once, also the data themselves. `to_train`: labels that lie in a file of their own too.
// Throws Error for data that are not there or whose format is not known.
std::vector<MissingSetting> MissingDeclarations(const DataRequest& request, bool to_train);

}  // namespace sordino

#endif  // SORDINO_DATA_FORMAT_SETTINGS_H_
