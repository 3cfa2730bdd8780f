#include "sordino/cli/private_details.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "sordino/tables/data_error.h"

namespace sordino {

void AddShowPrivate(CLI::App& command, bool& show_private) {
  command.add_flag("--show-private", show_private,
                   "Say on standard error which line or value of the data was refused; that is not "
                   "private");
}

void ReportPrivateDetails(bool show_private, const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    if (show_private) {
      std::cerr << fmt::format(
          "sordino: {}; this is about the private data, keep it to yourself.\n", error.detail());
    }
    throw;
  }
}

}  // namespace sordino
