// How the commands that read data report what went wrong.
#ifndef SORDINO_TORCH_CLI_REPORTED_ERRORS_H_
#define SORDINO_TORCH_CLI_REPORTED_ERRORS_H_

#include <functional>

#include "sordino/cli/private_details.h"

namespace sordino {

// Runs `action`. The detail of a DataError is printed on standard error if it was asked for.
// libtorch's errors, which are thirty lines with addresses, become their first sentence.
void ReportErrors(bool show_private, const std::function<void()>& action);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_REPORTED_ERRORS_H_
