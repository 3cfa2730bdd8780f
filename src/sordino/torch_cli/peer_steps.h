// Steps of the benchmark models in other libraries, timed by their Python in the same run.
#ifndef SORDINO_TORCH_CLI_PEER_STEPS_H_
#define SORDINO_TORCH_CLI_PEER_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sordino {

struct PeerStep {
  std::string name;         // "jax jit vmap"
  double milliseconds = 0;  // the median of a step, by the rules of step_comparison.h
  std::string problem;      // of a library that is not there or cannot do the model; else empty
};

struct PeerQuestion {
  std::string python;  // an interpreter with torch, opacus or jax
  std::string model;
  std::int64_t batch = 0;
  std::string device;
  double seconds = 0;
  int threads = 1;  // of a processor
};

// Throws Error for what is not a Python interpreter.
void CheckPeers(const std::string& python);

// The scripts are those of bench/peers, which the program carries.
std::vector<PeerStep> TimePeers(const PeerQuestion& question);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_PEER_STEPS_H_
