#include "sordino/torch_cli/self_audit_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/audit/self_audit.h"
#include "sordino/base/progress.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/torch_cli/reported_errors.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kProgressSteps = 1000;

struct SelfAuditFlags {
  bool quick = false;
  bool list = false;
  bool json = false;
  std::vector<std::string> only;
};

void PrintSelfAuditJson(const std::vector<SelfAuditFinding>& findings, bool contradicts) {
  Json json = NewReport();
  json["confidence"] = kSelfAuditConfidence;
  json["contradiction"] = contradicts;
  json["cases"] = Json::array();
  for (const SelfAuditFinding& finding : findings) {
    json["cases"].push_back({{"name", finding.name},
                             {"what", finding.what},
                             {"scores", finding.scores},
                             {"delta", finding.delta},
                             {"epsilon_claimed", NumberJson(finding.claim)},
                             {"epsilon_lower", NumberJson(finding.lower)},
                             {"by", finding.by_mu ? "gdp" : "clopper-pearson"},
                             {"contradiction", finding.contradicts},
                             {"seconds", finding.seconds}});
  }
  PrintReport(json);
}

void PrintSelfAudit(const std::vector<SelfAuditFinding>& findings) {
  std::vector<std::vector<std::string>> rows = {
      {"case", "proven", "claimed", "delta", "scores", "what"}};
  for (const SelfAuditFinding& finding : findings) {
    rows.push_back({finding.name, fmt::format("{:.3f}", finding.lower),
                    fmt::format("{:.3f}", finding.claim), fmt::format("{:g}", finding.delta),
                    fmt::format("{}", finding.scores),
                    finding.what + (finding.contradicts ? "  CONTRADICTS THE CLAIM" : "")});
  }
  std::cout << AlignedTable(rows, 5)
            << fmt::format(
                   "\nproven: epsilon is at least this at delta, with a confidence of {:g} % for "
                   "each case\n",
                   100 * kSelfAuditConfidence);
}

void RunSelfAudit(const SelfAuditFlags& flags) {
  if (flags.list) {
    for (const std::string& name : SelfAuditNames()) std::cout << name << '\n';
    return;
  }
  std::optional<Progress> progress;  // from the first case on: what is refused has none
  const std::vector<SelfAuditFinding> findings =
      AuditSelf({.quick = flags.quick,
                 .only = flags.only,
                 .seed = std::nullopt,
                 .progress = [&](const std::string& name, double share) {
                   if (!progress) progress.emplace("Audit", kProgressSteps);
                   progress->Update(static_cast<std::uint64_t>(kProgressSteps * share), name);
                 }});
  if (progress) progress->Finish();
  const bool contradicts = std::any_of(findings.begin(), findings.end(),
                                       [](const auto& finding) { return finding.contradicts; });
  if (flags.json) {
    PrintSelfAuditJson(findings, contradicts);
  } else {
    PrintSelfAudit(findings);
  }
  if (!contradicts) return;
  std::cerr
      << "sordino: the audit contradicts a claim of privacy; do not release what this program "
         "makes, and report the case.\n";
  throw EndWith{kFailure};
}

}  // namespace

void AddSelfAuditCommand(CLI::App& app) {
  CLI::App* command =
      app.get_subcommand("audit")->add_subcommand("self", TorchCommandSummary("audit self"));
  const auto flags = std::make_shared<SelfAuditFlags>();
  command->add_flag("--quick", flags->quick, "A tenth of the scores");
  command
      ->add_option("--only", flags->only,
                   "Cases by name, or by the word that their names begin with: fit, release")
      ->type_name("NAME")
      ->delimiter(',');
  command->add_flag("--list", flags->list, "Print the names of the cases");
  command->add_flag("--json", flags->json, "One JSON object on standard output");
  command->footer("Examples:\n  sordino audit self --quick\n  sordino audit self --only poisson");
  command->callback([flags] { ReportErrors(false, [&] { RunSelfAudit(*flags); }); });
}

}  // namespace sordino
