// Which settings the data of a request take.
#ifndef SORDINO_DATA_FORMAT_SETTINGS_H_
#define SORDINO_DATA_FORMAT_SETTINGS_H_

#include <string_view>

#include "sordino/data/catalog.h"

namespace sordino {

// Whether the format of the data takes a setting, by its key: "shape", "columns". Throws Error for
// data that are not there or whose format is not known.
bool TakesSetting(const DataRequest& request, std::string_view key);

}  // namespace sordino

#endif  // SORDINO_DATA_FORMAT_SETTINGS_H_
