// The random streams of a run: one for each purpose of each step.
#ifndef SORDINO_RANDOM_RANDOM_SOURCE_H_
#define SORDINO_RANDOM_RANDOM_SOURCE_H_

#include <cstdint>
#include <memory>
#include <variant>

#include "sordino/random/generator.h"

namespace sordino {

class RandomSource {
 public:
  RandomSource();                                      // of the operating system
  explicit RandomSource(const SharedSecret& shared);   // the same on all ranks, and private
  explicit RandomSource(std::uint64_t insecure_seed);  // reproducible, not private

  std::unique_ptr<Generator> Stream(const StreamKey& key);
  bool IsPrivate() const;

 private:
  std::variant<SecureGenerator, InsecureSeededGenerator> generator_;
};

// What the tensor of a StreamKey means. Below 2^31 it is a block of the noise
// (noise/gradient_noise.h).
inline constexpr std::uint32_t kSamplingStream = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kCountStream = kSamplingStream + 1;
inline constexpr std::uint32_t kModelStream = kSamplingStream + 2;
inline constexpr std::uint32_t kAllocationStream = kSamplingStream + 3;  // its step is an epoch
inline constexpr std::uint32_t kCanaryStream = kSamplingStream + 4;      // training/canaries.h
// 5 and 6 are those of training/internal/held_out_records.h, 9 is that of training/trainer.cc.
inline constexpr std::uint32_t kDeviceNoiseStream = kSamplingStream + 7;  // noise/device_noise.h
inline constexpr std::uint32_t kGroupStream = kSamplingStream + 8;        // sampling/cyclic.cc
// Directions of estimated norms (clipping/norms_jl.cc), and how many a step may have.
inline constexpr std::uint32_t kDirectionStream = std::uint32_t{3} << 30;
inline constexpr std::int64_t kMaxDirectionStreams = std::int64_t{1} << 30;

}  // namespace sordino

#endif  // SORDINO_RANDOM_RANDOM_SOURCE_H_
