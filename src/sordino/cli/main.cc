// The program: the commands that need no libtorch, and the way to those that do.
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/core_dump.h"
#include "sordino/cli/account_command.h"
#include "sordino/cli/audit_command.h"
#include "sordino/cli/calibrate_command.h"
#include "sordino/cli/experiment_command.h"
#include "sordino/cli/help_command.h"
#include "sordino/cli/help_page.h"
#include "sordino/cli/ledger_command.h"
#include "sordino/cli/plan_command.h"
#include "sordino/cli/program.h"
#include "sordino/cli/release_command.h"
#include "sordino/cli/report_command.h"
#include "sordino/cli/sensitivity_command.h"
#include "sordino/cli/torch_program.h"

int main(int argc, char** argv) {
  sordino::DisableCoreDumps();
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  CLI::App app("Differentially private statistics and learning.", "sordino");
  app.set_version_flag("--version", "sordino " SORDINO_VERSION);
  app.require_subcommand(1);
  sordino::UseHelpPages(app);
  sordino::AddAccountCommand(app);
  sordino::AddAuditCommand(app);
  sordino::AddCalibrateCommand(app);
  sordino::AddExperimentCommand(app);
  sordino::AddPlanCommand(app);
  sordino::AddReleaseCommand(app);
  sordino::AddSensitivityCommand(app);
  sordino::AddLedgerCommand(app);
  sordino::AddReportCommand(app, SORDINO_VERSION);
  sordino::ListTorchCommands(app);
  sordino::AddHelpCommands(app, SORDINO_VERSION);
  app.footer(
      "Every command has --help with what is needed first and an example, --help-all with every "
      "flag, and --json for programs.");
  words = sordino::WithoutHelpCommand(app, std::move(words));
  words = sordino::WithLearnCommand(std::move(words));
  if (sordino::IsTorchCommand(words)) {
    return sordino::BecomeTorchProgram(words);
  }
  return sordino::RunCommandLine(app, std::move(words));
}
