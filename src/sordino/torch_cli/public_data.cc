#include "sordino/torch_cli/public_data.h"

#include <fmt/format.h>

#include "sordino/base/error.h"
#include "sordino/ledger/data_description.h"

namespace sordino {

void CheckPublicData(const DataRequest& data, bool declared_public, std::string_view what) {
  for (const DataFile& file : FilesOf(data)) {
    if (file.is_public) continue;
    if (const auto ledger = LedgerOfData(file.path)) {
      throw Error(fmt::format(
          "the data '{}' are private: they have the ledger '{}', and {} computed without noise; "
          "give public data.",
          file.path, ledger->string(), what));
    }
  }
  if (!IsDatasetName(data.source) && !declared_public) {
    throw Error(fmt::format(
        "{} computed from records without noise; give --public-data to say that these data are "
        "public, or a dataset by name.",
        what));
  }
}

}  // namespace sordino
