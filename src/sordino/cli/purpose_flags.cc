#include "sordino/cli/purpose_flags.h"

#include <CLI/CLI.hpp>

namespace sordino {

void AddPurposeFlags(CLI::App& command, ReleasePurpose& purpose) {
  command
      .add_option("--curator", purpose.curator,
                  "Who keeps the data and answers for the release, for its record")
      ->type_name("TEXT");
  command.add_option("--use", purpose.use, "What the release is for, likewise")->type_name("TEXT");
}

}  // namespace sordino
