#include "sordino/torch_cli/reported_errors.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sordino/cli/private_details.h"

namespace sordino {
namespace {

std::string FirstLine(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  text.resize(std::min(text.find('\n'), text.size()));
  while (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

void ReportErrors(bool show_private, const std::function<void()>& action) {
  try {
    ReportPrivateDetails(show_private, action);
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
