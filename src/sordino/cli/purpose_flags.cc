#include "sordino/cli/purpose_flags.h"
#include "sordino/cli/value_flag.h"

#include <CLI/CLI.hpp>

namespace sordino {

void AddPurposeFlags(CLI::App& command, ReleasePurpose& purpose) {
  command
      .add_option("--curator", purpose.curator,
                  "Who keeps the data and answers for the release, for its record")
      ->type_name("TEXT");
  AddValue(command, "--use", purpose.use, "TEXT", "What the release is for, likewise");
}

}  // namespace sordino
