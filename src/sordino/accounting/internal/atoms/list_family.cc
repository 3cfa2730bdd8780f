#include "sordino/accounting/internal/atoms/list_family.h"
#include "sordino/accounting/internal/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sordino/accounting/internal/atoms/atom_list.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kMaxFamilyExponent = 650;
// Basis vectors are added until what is left of all moments together is about this small.
constexpr double kLeftOut = 3e-9;
constexpr std::size_t kMaxRank = 64;
constexpr std::size_t kUsualRank = 12;
// Of so many lists the basis is made.
constexpr std::size_t kMaxCandidates = 96;
// Losses of a cell from below are put between places that are at least this far apart, relative, so
// that their rounding does not look like a difference between pairs.
constexpr double kMinSpread = 1e-5;
// The columns after the masses.
constexpr std::size_t kAbsent = 0;
constexpr std::size_t kGap = 1;
constexpr std::size_t kExtra = 2;

// absent and gap of a list, from what is absent of P and of Q.
std::array<double, kExtra> Extra(double offset, double absent_p, double absent_q) {
  return {absent_p, std::expm1(offset) * (1 - absent_q) + absent_p - absent_q};
}

// Takes a direction of length one out of a row; how long it was there.
double TakeOut(const std::vector<double>& direction, std::vector<double>& row) {
  std::array<double, 4> part = {};
  std::size_t k = 0;
  for (; k + part.size() <= row.size(); k += part.size()) {
    for (std::size_t j = 0; j < part.size(); ++j) part[j] += row[k + j] * direction[k + j];
  }
  for (; k < row.size(); ++k) part[0] += row[k] * direction[k];
  const double along = part[0] + part[1] + part[2] + part[3];
  for (k = 0; k < row.size(); ++k) row[k] -= along * direction[k];
  return along;
}

}  // namespace

ListFamily::LeftOut::LeftOut(const ListFamily& family, double c, double largest) {
  const std::size_t places = family.place_.size();
  for (std::size_t k = 0; k < places; ++k) {
    const double mass = family.left_out_[k];
    const double t = family.place_[k];
    const bool small = std::abs(t) * largest <= 2;
    if (family.IsMove(k)) {
      const double from = family.place_[k - 1];
      const double far = std::max(std::abs(t), std::abs(from));
      if (small) {
        square_ += mass * (t - from) * far * std::exp(std::max({0.0, c * t, -from}));
      } else {
        linear_ += mass * (t - from) * (std::exp(c * t) + std::exp(-from));
      }
    } else if (small) {
      square_ += mass * 0.5 * t * t * std::exp(std::max({0.0, c * t, -t}));
    } else {
      constant_ += mass * (std::exp(c * t) + 1);
      linear_ += mass * (std::abs(t) + ExpRest(-t));
    }
  }
  for (std::size_t k = 0; k < family.spread_.size(); ++k) {
    if (family.spread_[k] > 0) square_ += family.spread_[k] * std::exp(c * family.place_[k]);
  }
  constant_ += family.left_out_[places + kAbsent];
  linear_ += family.left_out_[places + kGap] + family.q_rounding_;
}

ListFamily::ListFamily(const CellGroup& group, Bound bound)
    : moving_(bound == Bound::kLower || group.aligned), mass_error_(group.mass_error) {
  for (const LossCells& pair : group.pairs) {
    count_.push_back(pair.count);
    total_count_ += pair.count;
    offset_sum_ += pair.count * pair.offset;
    offset_size_ += pair.count * std::abs(pair.offset);
    q_rounding_ += pair.count * pair.q_rounding;
    const double infinite = pair.infinite + (bound == Bound::kUpper ? pair.high_p : 0);
    log_survival_ += pair.count * std::log1p(-infinite);
  }
  if (moving_) {
    SetMoving(group, bound);
  } else {
    SetUpper(group);
  }
  if (!place_.empty()) largest_place_ = *std::max_element(place_.begin(), place_.end());
  SetMean();
}

void ListFamily::SetUpper(const CellGroup& group) {
  place_ = group.places;
  const std::size_t columns = place_.size() + kExtra;
  vectors_.assign(count_.size() * columns, 0);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    const LossCells& pair = group.pairs[i];
    double* row = vectors_.data() + i * columns;
    for (std::size_t k = 0; k + 1 < place_.size(); ++k) {
      if (!(pair.mass[k] > 0)) continue;
      const double low = place_[k];
      const double high = place_[k + 1];
      const double up =
          std::clamp(std::expm1(low - pair.loss[k]) / std::expm1(low - high), 0.0, 1.0);
      row[k] += pair.mass[k] * (1 - up);
      row[k + 1] += pair.mass[k] * up;
    }
    row[0] += pair.low_p;
    const double absent_p = pair.infinite + pair.missing_p + pair.high_p;
    const double absent_q = pair.absent_q + pair.high_q + pair.low_q -
                            pair.low_p * std::exp(-pair.offset - place_.front());
    const auto extra = Extra(pair.offset, absent_p, absent_q);
    std::copy(extra.begin(), extra.end(), row + place_.size());
  }
}

void ListFamily::SetMoving(const CellGroup& group, Bound bound) {
  const std::size_t cells = group.pairs.front().mass.size();
  // The losses of cell k lie between places 2k and 2k + 1, but for rounding.
  place_.resize(2 * cells);
  for (std::size_t k = 0; k < cells; ++k) {
    double low = kInfinity;
    double high = -kInfinity;
    for (const LossCells& pair : group.pairs) {
      if (!(pair.mass[k] > 0)) continue;
      low = std::min(low, pair.loss[k]);
      high = std::max(high, pair.loss[k]);
    }
    if (low > high) low = high = 0;  // an empty cell
    const double margin = kMinSpread * std::max(std::abs(low), std::abs(high));
    place_[2 * k] = low - margin;
    place_[2 * k + 1] = high + margin;
  }
  const std::size_t columns = place_.size() + kExtra;
  vectors_.assign(count_.size() * columns, 0);
  spread_.assign(place_.size(), 0);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    const LossCells& pair = group.pairs[i];
    double* row = vectors_.data() + i * columns;
    double absent_p = pair.infinite + pair.missing_p + pair.low_p + pair.high_p;
    double absent_q = pair.absent_q + pair.low_q + pair.high_q;
    for (std::size_t k = 0; k < cells; ++k) {
      const double mass = pair.mass[k];
      const double loss = pair.loss[k];
      if (!(mass > 0)) continue;
      const double low = place_[2 * k];
      const double high = place_[2 * k + 1];
      if (loss >= low && loss < high) {
        const double up = std::expm1(low - loss) / std::expm1(low - high);
        row[2 * k] += mass;
        row[2 * k + 1] += mass * up;
        const double width = high - low;
        if (bound == Bound::kLower) {
          spread_[2 * k + 1] += pair.count * mass * width * width / 8 * std::exp(2 * width);
        }
      } else {
        // Both places are where the loss is.
        row[2 * k] += mass;
        absent_q -= mass * std::exp(-pair.offset - loss) * std::expm1(loss - low);
      }
    }
    const auto extra = Extra(pair.offset, absent_p, absent_q);
    std::copy(extra.begin(), extra.end(), row + place_.size());
  }
}

double ListFamily::Weight(std::size_t column, double c, double size) const {
  if (column == place_.size() + kAbsent) return 1;
  if (column == place_.size() + kGap) return size;
  const double t = place_[column];
  if (IsMove(column)) {
    const double from = place_[column - 1];
    const double largest = std::max(std::abs(t), std::abs(from));
    return (t - from) * size *
           std::min((size + 1) * largest * std::exp(std::max({0.0, c * t, -from})),
                    std::exp(c * t) + std::exp(-from));
  }
  return std::min(0.5 * size * (size + 1) * t * t * std::exp(std::max({0.0, c * t, -t})),
                  std::exp(c * t) + 1 + size * (std::abs(t) + ExpRest(-t)));
}

void ListFamily::Sharpen(double c, double size) {
  const std::size_t columns = place_.size() + kExtra;
  std::vector<double> weight(columns);
  for (std::size_t k = 0; k < columns; ++k) weight[k] = std::max(1e-300, Weight(k, c, size));
  const std::vector<std::vector<double>> directions = ChooseDirections(weight);
  const std::size_t rank = directions.size();
  stride_ = rank;
  coefficient_.assign(count_.size() * rank, 0);
  std::vector<double> total(rank, 0);
  std::vector<double> left(columns, 0);
  std::vector<double> all(columns, 0);
  std::vector<double> row(columns);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    for (std::size_t k = 0; k < columns; ++k) {
      row[k] = vectors_[i * columns + k] * weight[k];
      all[k] += count_[i] * std::abs(vectors_[i * columns + k]);
    }
    for (std::size_t r = 0; r < rank; ++r) {
      const double along = TakeOut(directions[r], row);
      coefficient_[i * rank + r] = along;
      total[r] += count_[i] * std::abs(along);
    }
    for (std::size_t k = 0; k < columns; ++k) left[k] += count_[i] * std::abs(row[k]);
  }
  basis_.clear();
  weight_ = total;
  std::vector<double> basis_size(columns, 0);  // sum over r of A_r |u_r|
  for (std::size_t r = 0; r < rank; ++r) {
    std::vector<double> vector(columns);
    for (std::size_t k = 0; k < columns; ++k) {
      vector[k] = directions[r][k] / weight[k];
      basis_size[k] += total[r] * std::abs(vector[k]);
    }
    basis_.emplace_back(ListOf(std::move(vector)), 1);
  }
  // What is left, with the rounding of scaling and of every subtraction.
  const double rounding = kUnitRoundoff * (4 * static_cast<double>(rank) + 8);
  left_out_.assign(columns, 0);
  for (std::size_t k = 0; k < columns; ++k) {
    left_out_[k] = left[k] / weight[k] + all[k] * mass_error_ + rounding * (basis_size[k] + all[k]);
    if (k < place_.size() && IsMove(k)) {
      // A loss is as exact as a mass, relative, and its place between two others less so.
      const double width = place_[k] - place_[k - 1];
      if (width > 0) left_out_[k] += all[k - 1] * mass_error_ * std::abs(place_[k]) / width;
    }
  }
  SumCoefficients();
}

// Gram-Schmidt with pivoting among some of the lists, as neighbours are alike.
std::vector<std::vector<double>> ListFamily::ChooseDirections(
    const std::vector<double>& weight) const {
  const std::size_t columns = weight.size();
  const std::size_t stride = (count_.size() + kMaxCandidates - 1) / kMaxCandidates;
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < count_.size(); i += stride) {
    rows.emplace_back(columns);
    for (std::size_t k = 0; k < columns; ++k)
      rows.back()[k] = vectors_[i * columns + k] * weight[k];
  }
  // A bound on the sum over all columns is their number to the half times the norm.
  const double enough = kLeftOut / (total_count_ * std::sqrt(static_cast<double>(columns)));
  std::vector<std::vector<double>> directions;
  while (directions.size() < std::min(kMaxRank, rows.size())) {
    std::size_t pivot = 0;
    double longest = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double square = 0;
      for (const double x : rows[i]) square += x * x;
      if (square > longest) {
        longest = square;
        pivot = i;
      }
    }
    if (!(std::sqrt(longest) > enough)) break;
    std::vector<double> direction = rows[pivot];
    for (double& x : direction) x /= std::sqrt(longest);
    for (std::vector<double>& row : rows) TakeOut(direction, row);
    std::fill(rows[pivot].begin(), rows[pivot].end(), 0);  // what is left there is rounding
    directions.push_back(std::move(direction));
  }
  return directions;
}

AtomList ListFamily::ListOf(std::vector<double> vector) const {
  AtomList list;
  list.loss = place_;
  list.absent_p = vector[place_.size() + kAbsent];
  list.absent_q = list.absent_p - vector[place_.size() + kGap];
  vector.resize(place_.size());
  for (std::size_t k = 0; k < place_.size(); ++k) {
    if (IsMove(k)) vector[k - 1] -= vector[k];
  }
  list.mass = std::move(vector);
  return list;
}

void ListFamily::SumCoefficients() {
  const std::size_t rank = basis_.size();
  mean_.assign(rank, 0);
  covariance_.assign(rank * rank, 0);
  largest_.assign(rank, 0);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    for (std::size_t r = 0; r < rank; ++r) mean_[r] += count_[i] * coefficient_[i * stride_ + r];
  }
  for (double& mean : mean_) mean /= total_count_;
  std::vector<double> rest(rank);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    for (std::size_t r = 0; r < rank; ++r) {
      rest[r] = coefficient_[i * stride_ + r] - mean_[r];
      largest_[r] = std::max(largest_[r], std::abs(rest[r]));
    }
    for (std::size_t r = 0; r < rank; ++r) {
      for (std::size_t q = 0; q < rank; ++q)
        covariance_[r * rank + q] += count_[i] * rest[r] * rest[q];
    }
  }
}

void ListFamily::SetMean() {
  const std::size_t columns = place_.size() + kExtra;
  std::vector<double> mean(columns, 0);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    for (std::size_t k = 0; k < columns; ++k) {
      mean[k] += count_[i] / total_count_ * vectors_[i * columns + k];
    }
  }
  average_.emplace(ListOf(std::move(mean)), total_count_);
}

double ListFamily::RoughLogMoment(double c) const {
  return c * offset_sum_ + total_count_ * std::log1p(average_->Excess(c));
}

AtomTransform::Moments ListFamily::RoughTilted(double c) const {
  const AtomTransform::Moments one = average_->Tilted(c);
  return {offset_sum_ + total_count_ * one.mean, total_count_ * one.variance};
}

double ListFamily::Work() const {
  // Before it is known: few vectors are enough for neighbours.
  const auto rank = static_cast<double>(basis_.empty() ? kUsualRank : basis_.size());
  // An atom turns by four multiplications. Where the lists have to be multiplied one by one a
  // coefficient costs two, a product and its modulus six; mostly they need not.
  return rank * (static_cast<double>(place_.size()) + rank);
}

std::vector<double> ListFamily::Combine(const std::vector<double>& of_basis) const {
  std::vector<double> sums(count_.size(), 0);
  for (std::size_t i = 0; i < count_.size(); ++i) {
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      sums[i] += coefficient_[i * stride_ + r] * of_basis[r];
    }
  }
  return sums;
}

ListFamily::RealMoments ListFamily::MomentsAt(double c) const {
  RealMoments out;
  if (c * largest_place_ > kMaxFamilyExponent) return out;
  std::vector<double> factor(place_.size());
  for (std::size_t k = 0; k < place_.size(); ++k) {
    factor[k] = ExpRest(c * place_[k]) + c * ExpRest(-place_[k]);
  }
  std::vector<double> excess(basis_.size());
  double size = 0;  // of everything that was summed
  for (std::size_t r = 0; r < basis_.size(); ++r) {
    const AtomList& list = basis_[r].list();
    const double gap = list.absent_p - list.absent_q;
    double sum = 0;
    double absolute = 0;
    for (std::size_t k = 0; k < place_.size(); ++k) {
      sum += list.mass[k] * factor[k];
      absolute += std::abs(list.mass[k]) * factor[k] * (2 + std::abs(c * place_[k]));
    }
    excess[r] = sum - list.absent_p - c * gap;
    size += weight_[r] * (absolute + std::abs(list.absent_p) + c * std::abs(gap));
  }
  out.excess = Combine(excess);
  out.least = 1 + *std::min_element(out.excess.begin(), out.excess.end());
  const double terms = static_cast<double>(place_.size() + 2 * basis_.size()) + 8;
  out.error = LeftOut(*this, c, c).At(c) + kUnitRoundoff * terms * size;
  return out;
}

double ListFamily::LogMoment(double c) const {
  const RealMoments moments = MomentsAt(c);
  if (!(moments.least > 0)) return kInfinity;
  double sum = c * offset_sum_;
  for (std::size_t i = 0; i < count_.size(); ++i) sum += count_[i] * std::log1p(moments.excess[i]);
  return std::isnan(sum) ? kInfinity : sum;
}

double ListFamily::LogMomentError(double c) const {
  const RealMoments moments = MomentsAt(c);
  if (!(moments.least > moments.error)) return kInfinity;
  double logs = c * offset_size_;
  for (std::size_t i = 0; i < count_.size(); ++i) {
    logs += count_[i] * std::abs(std::log1p(moments.excess[i]));
  }
  const double terms = static_cast<double>(count_.size()) + 4;
  return moments.error / (moments.least - moments.error) + kUnitRoundoff * terms * logs;
}

}  // namespace sordino
