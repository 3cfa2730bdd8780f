// The sensitivity of any query, by trying every neighbour.
//
// The query is an arbitrary function of a dataset to a vector; records come from a finite domain
// of candidates. The local sensitivity at a dataset of n records costs n + |domain| queries under
// add-remove and n |domain| under replace-one; the global one tries every dataset of each size and
// is for small n only. Exact for the finite domain; for a continuous one it is a lower bound,
// unless the extremes are in the domain and the query attains its maximum there.
//
// Neighbouring datasets are compared record by record in a fixed order: an added record goes to
// the end, which is general for queries that do not depend on the order.
#ifndef SORDINO_MECHANISMS_ENUMERATED_SENSITIVITY_H_
#define SORDINO_MECHANISMS_ENUMERATED_SENSITIVITY_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/mechanisms/sensitivity.h"

namespace sordino {

template <typename Record>
using Query = std::function<std::vector<double>(const std::vector<Record>&)>;

namespace internal {

// Keeps the largest distance seen; a result that is not finite, or whose length differs between
// neighbours, makes the sensitivity infinite.
class WidestDistance {
 public:
  void Add(const std::vector<double>& a, const std::vector<double>& b);
  void Add(const SensitivityAnswer& other);
  SensitivityAnswer Answer() const;

 private:
  double l1_ = 0;
  double l2_ = 0;
  std::string reason_;
};

}  // namespace internal

template <typename Record>
SensitivityAnswer EnumerateLocalSensitivity(const Query<Record>& query,
                                            const std::vector<Record>& data,
                                            std::span<const Record> domain, Adjacency adjacency) {
  internal::WidestDistance widest;
  const std::vector<double> here = query(data);
  std::vector<Record> neighbour = data;
  if (adjacency == Adjacency::kReplaceOne) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      for (const Record& candidate : domain) {
        neighbour[i] = candidate;
        widest.Add(here, query(neighbour));
      }
      neighbour[i] = data[i];
    }
    return widest.Answer();
  }
  if (adjacency == Adjacency::kZeroOut) {
    throw Error(
        "a query has no record that contributes nothing, so zero-out neighbours cannot be "
        "enumerated; use add-remove or replace-one.");
  }
  for (const Record& candidate : domain) {
    neighbour.push_back(candidate);
    widest.Add(here, query(neighbour));
    neighbour.pop_back();
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    neighbour.erase(neighbour.begin() + static_cast<std::ptrdiff_t>(i));
    widest.Add(here, query(neighbour));
    neighbour.insert(neighbour.begin() + static_cast<std::ptrdiff_t>(i), data[i]);
  }
  return widest.Answer();
}

// The maximum of the local sensitivities over all datasets of n records of the domain: |domain|^n
// of them. Under add-remove that covers the pairs of sizes (n - 1, n) and (n, n + 1).
template <typename Record>
SensitivityAnswer EnumerateGlobalSensitivity(const Query<Record>& query, std::size_t n,
                                             std::span<const Record> domain, Adjacency adjacency) {
  internal::WidestDistance widest;
  if (domain.empty()) return widest.Answer();
  std::vector<std::size_t> digits(n, 0);
  std::vector<Record> data(n, domain.front());
  while (true) {
    widest.Add(EnumerateLocalSensitivity(query, data, domain, adjacency));
    std::size_t place = 0;
    while (place < n && digits[place] + 1 == domain.size()) {
      digits[place] = 0;
      data[place] = domain.front();
      ++place;
    }
    if (place == n) return widest.Answer();
    data[place] = domain[++digits[place]];
  }
}

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_ENUMERATED_SENSITIVITY_H_
