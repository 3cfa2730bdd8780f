#include "sordino/sampling/sampler.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/random/bernoulli.h"

namespace sordino {
namespace {

// How far one over a rate may be from a whole number of batches, relatively: rates such as 1 / 3
// are written with a few digits.
constexpr double kWholeBatches = 1e-9;

// Uniform on 0 ... bound - 1, exactly: the 2^64 mod bound largest words are drawn again, and each
// remainder has as many words as the others. Taking the remainder alone would favour small ones.
std::uint64_t UniformBelow(Generator& generator, std::uint64_t bound) {
  const std::uint64_t surplus = -bound % bound;  // 2^64 mod bound
  const std::uint64_t last = ~std::uint64_t{0} - surplus;
  std::uint64_t word = generator.Next64();
  while (word > last) word = generator.Next64();
  return word % bound;
}

// The numbers 0 ... n - 1 in an order that starts as they are. Only places that changed take
// memory, so that a small batch of many records costs no pass over all of them.
class SparseOrder {
 public:
  explicit SparseOrder(std::uint64_t batch) { moved_.reserve(batch); }

  // What stands at `place`, where `with` stands from now on.
  std::uint64_t Replace(std::uint64_t place, std::uint64_t with) {
    const auto [found, is_new] = moved_.try_emplace(place, with);
    return is_new ? place : std::exchange(found->second, with);
  }
  std::uint64_t At(std::uint64_t place) const {
    const auto found = moved_.find(place);
    return found == moved_.end() ? place : found->second;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> moved_;
};

// The same, for batches of a good part of the records.
class DenseOrder {
 public:
  explicit DenseOrder(std::uint64_t records) : order_(records) {
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
  }
  std::uint64_t Replace(std::uint64_t place, std::uint64_t with) {
    return std::exchange(order_[place], with);
  }
  std::uint64_t At(std::uint64_t place) const { return order_[place]; }

 private:
  std::vector<std::uint64_t> order_;
};

// The first steps of a shuffle by Fisher and Yates (Durstenfeld, 1964): what comes to place i is
// uniform among the records that are not in the batch yet, so each of the n (n - 1) ... ordered
// selections has the same probability.
template <typename Order>
std::vector<std::uint64_t> FirstOfShuffle(Generator& generator, std::uint64_t batch,
                                          std::uint64_t records, Order order) {
  std::vector<std::uint64_t> selected(batch);
  for (std::uint64_t i = 0; i < batch; ++i) {
    const std::uint64_t place = i + UniformBelow(generator, records - i);
    selected[i] = order.Replace(place, order.At(i));
  }
  return selected;
}

}  // namespace

std::vector<std::uint64_t> SamplePoisson(Generator& generator, SamplingRate rate,
                                         std::uint64_t records) {
  std::vector<std::uint64_t> selected;
  PoissonSample(generator, rate, records, selected);
  return selected;
}

std::vector<std::uint64_t> SampleFixedSize(Generator& generator, std::uint64_t batch,
                                           std::uint64_t records) {
  if (batch > records) {
    throw Error(fmt::format(
        "a batch of {} records was to be drawn without replacement out of {}; give a batch of at "
        "most {}.",
        batch, records, records));
  }
  // An entry of the sparse order takes some 40 bytes.
  if (batch > records / 8) return FirstOfShuffle(generator, batch, records, DenseOrder(records));
  return FirstOfShuffle(generator, batch, records, SparseOrder(batch));
}

std::int64_t AllocationBatches(SamplingRate rate) {
  const double batches = rate.value() > 0 ? std::round(1 / rate.value()) : 0;
  if (batches < 1 || batches > 0x1p53 || std::abs(batches * rate.value() - 1) > kWholeBatches) {
    throw Error(fmt::format(
        "the sampling rate {:g} is not one over a whole number of batches; random allocation puts "
        "each record into one of them, so give a rate such as 0.01, which is 100 batches.",
        rate.value()));
  }
  return static_cast<std::int64_t>(batches);
}

std::vector<std::vector<std::uint64_t>> SampleAllocation(Generator& generator,
                                                         std::uint64_t batches,
                                                         std::uint64_t records) {
  if (batches == 0) {
    throw Error("records were to be allocated to 0 batches; give at least one.");
  }
  std::vector<std::vector<std::uint64_t>> allocated(batches);
  for (std::uint64_t i = 0; i < records; ++i) {
    allocated[UniformBelow(generator, batches)].push_back(i);
  }
  return allocated;
}

}  // namespace sordino
