#include "sordino/torch_cli/told_errors.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>

#include "sordino/data/data_error.h"

namespace sordino {
namespace {

std::string FirstLine(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  text.resize(std::min(text.find('\n'), text.size()));
  while (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

void AddShowPrivate(CLI::App& command, bool& show_private) {
  command.add_flag("--show-private", show_private,
                   "Say on standard error which line or value of the data was refused; that is not "
                   "private");
}

void TellErrors(bool show_private, const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    if (show_private) {
      std::cerr << fmt::format(
          "sordino: {}; this is about the private data, keep it to yourself.\n", error.detail());
    }
    throw;
  } catch (const c10::Error& error) {
    const std::string why = FirstLine(error);
    throw std::runtime_error(
        why.find("memory") == std::string::npos
            ? fmt::format("libtorch refused the computation: {}.", why)
            : "there is not enough memory; give a smaller --batch, --physical-batch, --copies or "
              "model.");
  }
}

}  // namespace sordino
