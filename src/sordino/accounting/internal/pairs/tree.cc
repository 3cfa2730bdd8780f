#include "sordino/accounting/internal/pairs/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::int64_t kImpossible = -1;

// Best sums of a stretch of leaves with exactly k >= 1 participations, at least `head` free leaves
// before the first and at least `tail` after the last. Free stretches longer than the separation
// all behave alike, so head and tail stop there.
class Stretch {
 public:
  Stretch(std::size_t most, std::size_t separation)
      : most_(most), edge_(separation + 1), best_((most + 1) * edge_ * edge_, kImpossible) {}

  std::int64_t& At(std::size_t k, std::size_t head, std::size_t tail) {
    return best_[(k * edge_ + head) * edge_ + tail];
  }
  std::int64_t At(std::size_t k, std::size_t head, std::size_t tail) const {
    return best_[(k * edge_ + head) * edge_ + tail];
  }
  void Raise(std::size_t k, std::size_t head, std::size_t tail, std::int64_t value) {
    At(k, head, tail) = std::max(At(k, head, tail), value);
  }
  // "At least head free leaves" includes every larger head.
  void Close() {
    for (std::size_t k = 1; k <= most_; ++k) {
      for (std::size_t head = edge_; head-- > 0;) {
        for (std::size_t tail = edge_; tail-- > 0;) {
          if (head + 1 < edge_) Raise(k, head, tail, At(k, head + 1, tail));
          if (tail + 1 < edge_) Raise(k, head, tail, At(k, head, tail + 1));
        }
      }
    }
  }
  std::size_t most() const { return most_; }
  std::size_t edge() const { return edge_; }

 private:
  std::size_t most_;
  std::size_t edge_;
  std::vector<std::int64_t> best_;
};

// Two neighbouring stretches of `left_size` and `right_size` leaves; `joined` adds the square of
// the participations of a node above both.
Stretch Join(const Stretch& left, std::uint64_t left_size, const Stretch& right,
             std::uint64_t right_size, bool joined) {
  const std::size_t edge = left.edge();
  const std::size_t cap = edge - 1;
  Stretch result(left.most(), cap);
  const auto bounded = [cap](std::uint64_t free) { return std::min<std::uint64_t>(free, cap); };
  const auto total = [joined](std::int64_t sum, std::size_t k) {
    return sum + (joined ? static_cast<std::int64_t>(k * k) : 0);
  };
  for (std::size_t k = 1; k <= left.most(); ++k) {
    for (std::size_t head = 0; head < edge; ++head) {
      for (std::size_t tail = 0; tail < edge; ++tail) {
        // All participations on one side: the other side lengthens its free stretch.
        if (const std::int64_t sum = left.At(k, head, tail); sum != kImpossible) {
          result.Raise(k, head, bounded(tail + right_size), total(sum, k));
        }
        if (const std::int64_t sum = right.At(k, head, tail); sum != kImpossible) {
          result.Raise(k, bounded(head + left_size), tail, total(sum, k));
        }
        for (std::size_t first = 1; first < k; ++first) {
          for (std::size_t gap = 0; gap <= cap; ++gap) {
            const std::int64_t a = left.At(first, head, gap);
            const std::int64_t b = right.At(k - first, cap - gap, tail);
            if (a != kImpossible && b != kImpossible) {
              result.Raise(k, head, tail, total(a + b, k));
            }
          }
        }
      }
    }
  }
  result.Close();
  return result;
}

}  // namespace

int TreeHeight(std::uint64_t steps) {
  SORDINO_CHECK(steps >= 1, "a tree without steps");
  return std::bit_width(steps);
}

std::uint64_t TreeSensitivitySquared(std::uint64_t max_participation, std::uint64_t min_separation,
                                     std::uint64_t steps) {
  if (max_participation < 1 || steps < 1) {
    throw Error(
        fmt::format("a tree was given {} steps and {} participations; both must be at least 1.",
                    steps, max_participation));
  }
  const std::uint64_t separation = std::min(min_separation, steps);
  const std::uint64_t most = std::min(max_participation, (steps - 1) / (separation + 1) + 1);
  if (most == 1) return static_cast<std::uint64_t>(TreeHeight(steps));
  const double edge = static_cast<double>(separation) + 1;
  const double work = 0.5 * static_cast<double>(most) * static_cast<double>(most) * edge * edge *
                      edge * 2 * TreeHeight(steps);
  if (!(work <= 1e9)) {
    throw Error(fmt::format(
        "a tree of {} steps with {} participations and separation {} takes about {:.0e} "
        "operations; use fewer participations or a smaller separation.",
        steps, max_participation, min_separation, work));
  }
  Stretch subtree(most, separation);  // a complete subtree, from one leaf up
  subtree.Raise(1, 0, 0, 1);
  std::uint64_t size = 1;
  Stretch forest(most, separation);  // the complete subtrees from the right end on
  std::uint64_t forest_size = 0;
  while (true) {
    if ((steps & size) != 0) {
      forest = forest_size == 0 ? subtree : Join(subtree, size, forest, forest_size, false);
      forest_size += size;
    }
    if (size > steps / 2) break;
    subtree = Join(subtree, size, subtree, size, true);
    size *= 2;
  }
  std::int64_t best = 0;
  for (std::size_t k = 1; k <= most; ++k) best = std::max(best, forest.At(k, 0, 0));
  return static_cast<std::uint64_t>(best);
}

}  // namespace sordino
