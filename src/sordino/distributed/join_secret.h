// What the ranks of one launch know and nobody else does: with it they recognise each other, and
// what they send to each other is encrypted.
//
// Ranks of --processes inherit a descriptor (SORDINO_JOIN_DESCRIPTOR) with a secret that is new in
// each launch. Those of torchrun, mpirun, srun or a shell have it in SORDINO_JOIN_SECRET, or in the
// file that SORDINO_JOIN_SECRET_FILE names.
//
// It is never an argument of a command: every user of a machine can read those.
#ifndef SORDINO_DISTRIBUTED_JOIN_SECRET_H_
#define SORDINO_DISTRIBUTED_JOIN_SECRET_H_

#include <cstddef>
#include <string>

#include "sordino/distributed/launch_environment.h"

namespace sordino {

inline constexpr const char* kJoinSecret = "SORDINO_JOIN_SECRET";
inline constexpr const char* kJoinSecretFile = "SORDINO_JOIN_SECRET_FILE";
inline constexpr const char* kJoinDescriptor = "SORDINO_JOIN_DESCRIPTOR";

// In characters; 32 hex digits have 128 bits.
inline constexpr std::size_t kShortestJoinSecret = 32;
inline constexpr std::size_t kLongestJoinSecret = 4096;

// 64 hex digits from the operating system.
std::string NewJoinSecret();

// Throws Error, one sentence without the secret, where there is none, where two are given, where it
// is too short or too long, and where others can read its file.
std::string ReadJoinSecret(const ReadVariable& read);
// That of this process.
std::string ReadJoinSecret();

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_JOIN_SECRET_H_
