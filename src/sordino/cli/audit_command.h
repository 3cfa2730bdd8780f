// `sordino audit bound` and `sordino audit scores`: what the outcome of an attack proves about
// epsilon.
#ifndef SORDINO_CLI_AUDIT_COMMAND_H_
#define SORDINO_CLI_AUDIT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

void AddAuditCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_AUDIT_COMMAND_H_
