// The program: the commands that need no libtorch, and the way to those that do.
#include <CLI/CLI.hpp>

#include "sordino/cli/account_command.h"
#include "sordino/cli/audit_command.h"
#include "sordino/cli/calibrate_command.h"
#include "sordino/cli/ledger_command.h"
#include "sordino/cli/plan_command.h"
#include "sordino/cli/program.h"
#include "sordino/cli/release_command.h"
#include "sordino/cli/torch_program.h"

int main(int argc, char** argv) {
  if (argc > 1 && sordino::IsTorchCommand(argv[1])) return sordino::BecomeTorchProgram(argv);

  CLI::App app("Differentially private statistics and learning.", "sordino");
  app.set_version_flag("--version", "sordino " SORDINO_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  sordino::AddAccountCommand(app);
  sordino::AddAuditCommand(app);
  sordino::AddCalibrateCommand(app);
  sordino::AddPlanCommand(app);
  sordino::AddReleaseCommand(app);
  sordino::AddLedgerCommand(app);
  sordino::ListTorchCommands(app);
  app.footer("Every command has --help with an example, and --json for programs.");
  return sordino::RunCommandLine(app, argc, argv);
}
