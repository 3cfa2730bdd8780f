// The commands that need libtorch. Users call `sordino`, which becomes this program.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "sordino/base/core_dump.h"
#include "sordino/cli/audit_command.h"
#include "sordino/cli/help_command.h"
#include "sordino/cli/help_page.h"
#include "sordino/cli/plan_command.h"
#include "sordino/cli/program.h"
#include "sordino/device/blas_kernels.h"
#include "sordino/torch_cli/bench_command.h"
#include "sordino/torch_cli/data_command.h"
#include "sordino/torch_cli/fit_command.h"
#include "sordino/torch_cli/kernel_command.h"
#include "sordino/torch_cli/learn_command.h"
#include "sordino/torch_cli/membership_command.h"
#include "sordino/torch_cli/predict_command.h"
#include "sordino/torch_cli/reconstruct_command.h"
#include "sordino/torch_cli/self_audit_command.h"
#include "sordino/torch_cli/train_command.h"
#include "sordino/torch_cli/tune_command.h"

int main(int argc, char** argv) {
  sordino::DisableCoreDumps();
  sordino::ChooseBlasKernels();
  CLI::App app("The commands of sordino that need libtorch.", "sordino");
  app.set_version_flag("--version", "sordino " SORDINO_VERSION);
  app.require_subcommand(1);
  sordino::UseHelpPages(app);
  sordino::AddAuditCommand(app);
  sordino::AddMembershipCommand(app);
  sordino::AddReconstructCommand(app);
  sordino::AddSelfAuditCommand(app);
  sordino::AddBenchCommand(app);
  sordino::AddDataCommand(app);
  sordino::AddFitCommand(app);
  sordino::AddKernelCommand(app);
  sordino::AddPlanCommand(app);
  sordino::AddLearnCommand(app);
  sordino::AddPredictCommand(app);
  sordino::AddTrainCommand(app);
  sordino::AddTuneCommand(app);
  sordino::AddHelpJsonCommand(app);
  return sordino::RunCommandLine(app,
                                 std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
