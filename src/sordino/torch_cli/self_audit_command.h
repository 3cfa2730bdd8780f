// `sordino audit self`: the implementation under attack (audit/self_audit.h).
#ifndef SORDINO_TORCH_CLI_SELF_AUDIT_COMMAND_H_
#define SORDINO_TORCH_CLI_SELF_AUDIT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below the command `audit`, which must be there.
void AddSelfAuditCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_SELF_AUDIT_COMMAND_H_
