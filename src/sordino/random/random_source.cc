#include "sordino/random/random_source.h"

#include <utility>

namespace sordino {

RandomSource::RandomSource() : generator_(std::in_place_type<SecureGenerator>) {}

RandomSource::RandomSource(const SharedSecret& shared)
    : generator_(std::in_place_type<SecureGenerator>, shared) {}

RandomSource::RandomSource(std::uint64_t insecure_seed)
    : generator_(std::in_place_type<InsecureSeededGenerator>, insecure_seed) {}

std::unique_ptr<Generator> RandomSource::Stream(const StreamKey& key) {
  return std::visit(
      [&](auto& generator) -> std::unique_ptr<Generator> {
        using Kind = std::decay_t<decltype(generator)>;
        return std::make_unique<Kind>(generator.SubStream(key));
      },
      generator_);
}

bool RandomSource::IsPrivate() const {
  return std::visit([](const auto& generator) { return generator.IsPrivate(); }, generator_);
}

}  // namespace sordino
