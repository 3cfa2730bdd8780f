// sordino audit membership: how well members of a run are distinguished from others.
#ifndef SORDINO_TORCH_CLI_MEMBERSHIP_COMMAND_H_
#define SORDINO_TORCH_CLI_MEMBERSHIP_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below the command `audit` that is there.
void AddMembershipCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_MEMBERSHIP_COMMAND_H_
