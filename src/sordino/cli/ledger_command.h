// `sordino ledger`: a dataset's budget, what was spent of it, and whether the record is whole.
#ifndef SORDINO_CLI_LEDGER_COMMAND_H_
#define SORDINO_CLI_LEDGER_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

void AddLedgerCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_LEDGER_COMMAND_H_
