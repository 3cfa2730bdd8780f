// --curator and --use of a command that writes a deployment record.
#ifndef SORDINO_CLI_PURPOSE_FLAGS_H_
#define SORDINO_CLI_PURPOSE_FLAGS_H_

#include "sordino/report/deployment_record.h"

namespace CLI {
class App;
}

namespace sordino {

void AddPurposeFlags(CLI::App& command, ReleasePurpose& purpose);

}  // namespace sordino

#endif  // SORDINO_CLI_PURPOSE_FLAGS_H_
