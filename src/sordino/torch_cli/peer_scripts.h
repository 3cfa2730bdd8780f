// The files of bench/peers that peer_steps.h runs.
#ifndef SORDINO_TORCH_CLI_PEER_SCRIPTS_H_
#define SORDINO_TORCH_CLI_PEER_SCRIPTS_H_

#include <array>
#include <span>
#include <string_view>

namespace sordino {

struct PeerScript {
  std::string_view file;
  std::string_view text;
};

std::span<const PeerScript> PeerScripts();

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_PEER_SCRIPTS_H_
