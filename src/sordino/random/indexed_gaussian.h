// The discrete Gaussian of discrete_gaussian.h by index: tables for devices, and the same values on
// the processor. indexed_draw.h has the algorithm and the proofs.
#ifndef SORDINO_RANDOM_INDEXED_GAUSSIAN_H_
#define SORDINO_RANDOM_INDEXED_GAUSSIAN_H_

#include <cstdint>
#include <memory>
#include <span>

#include "sordino/random/chacha20.h"
#include "sordino/random/generator.h"
#include "sordino/random/indexed_draw.h"

namespace sordino {

// A key of its own from a generator.
ChaChaKey DrawChaChaKey(Generator& generator);
// Overwrites a key that is not needed any more.
void ForgetKey(ChaChaKey& key);

// Immutable once built (some 15 microseconds); copies share the table.
class IndexedGaussian {
 public:
  // Throws Error when sigma is outside [0.5, 2^40].
  explicit IndexedGaussian(double sigma);

  double sigma() const { return sigma_; }
  // Lives as long as the last copy of this object.
  const IndexedTable& table() const& { return *table_; }
  const IndexedTable& table() && = delete;

  // The values of the coordinates from `first` on (below 2^50) of a draw.
  void Fill(const ChaChaKey& key, std::uint64_t draw, std::uint64_t first,
            std::span<std::int64_t> out) const;

  // Distance in total variation between one draw and the discrete Gaussian.
  static constexpr double TotalVariationBound() { return 0x1p-120; }

 private:
  double sigma_;
  std::shared_ptr<const IndexedTable> table_;
};

}  // namespace sordino

#endif  // SORDINO_RANDOM_INDEXED_GAUSSIAN_H_
