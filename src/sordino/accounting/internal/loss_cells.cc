#include "sordino/accounting/internal/loss_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "sordino/accounting/internal/atom_list.h"
#include "sordino/accounting/internal/discretise.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using Mixture = GaussianMixtureDensity;

// Differences of erfc below this are taken from a quadrature instead.
constexpr double kMinTail = 1e-280;

// A difference of two tails at z, relative: the roundings of z enter with z^2, which is about -2
// log_lost at most, and a cell has some tenth of the mass of the tail that it belongs to.
constexpr double kTailError = 2e-15;

// Which side of the ratio is one Gaussian at zero. The other side has a part that did not move, so
// that the loss is bounded by the logarithm of its weight.
enum class Form : std::uint8_t { kRemove, kAdd, kOther };

double HitOf(const Mixture::Parts& parts) {
  double hit = 0;
  for (const auto& [shift, probability] : parts) hit += shift != 0 ? probability : 0;
  return hit;
}

Form FormOf(const Mixture& density) {
  if (density.max_denominator_shift() == 0 && HitOf(density.numerator()) < 1) return Form::kRemove;
  if (density.max_numerator_shift() == 0 && HitOf(density.denominator()) < 1) return Form::kAdd;
  return Form::kOther;
}

const Mixture* MixtureOf(const DensityPiece& piece) {
  return dynamic_cast<const Mixture*>(piece.density.get());
}

// A density whose losses are measured from an offset.
class ShiftedMixture {
 public:
  ShiftedMixture(const Mixture& density, bool with_offset)
      : density_(density), form_(with_offset ? FormOf(density) : Form::kOther) {
    if (form_ == Form::kOther) return;
    const Mixture::Parts& parts = Parts();
    hit_ = HitOf(parts);
    log_odds_ = std::log((1 - hit_) / hit_);
    offset_ = form_ == Form::kRemove ? std::log1p(-hit_) : -std::log1p(-hit_);
    if (parts.size() == 2 && parts[0].first == 0) shift_ = std::abs(parts[1].first);
  }

  double offset() const { return offset_; }

  // The loss at x, less the offset.
  double At(double x) const {
    if (form_ == Form::kOther) return density_.Loss(x);
    double sum = 0;
    for (const auto& [shift, probability] : Parts()) {
      if (shift == 0) continue;
      sum += probability *
             std::exp(shift * (2 * x - shift) / (2 * density_.sigma() * density_.sigma()));
    }
    const double t = std::log1p(sum / (1 - hit_));
    return form_ == Form::kRemove ? t : -t;
  }

  // Where the loss, less the offset, is t; `log_growth` is log(e^|t| - 1).
  double CoordinateOf(double t, double log_growth) const {
    if (shift_ == 0) return density_.CoordinateOf(offset_ + t);
    const double z = log_growth + log_odds_;
    const double x = z * density_.sigma() * density_.sigma() / shift_ + 0.5 * shift_;
    return form_ == Form::kRemove ? x : -x;
  }

  const Mixture& density() const { return density_; }
  Form form() const { return form_; }
  double hit() const { return hit_; }

 private:
  const Mixture::Parts& Parts() const {
    return form_ == Form::kRemove ? density_.numerator() : density_.denominator();
  }

  const Mixture& density_;
  Form form_;
  double hit_ = 0;
  double offset_ = 0;
  double shift_ = 0;     // where there is one besides zero
  double log_odds_ = 0;  // that the record is not in the batch
};

// The tail of the normal on the side of z that is smaller.
struct Tail {
  double mass;
  bool above;  // of z
};
Tail TailAt(double z) { return {0.5 * std::erfc(std::abs(z) / std::numbers::sqrt2), z >= 0}; }

// The mass of the standard normal between the places of two tails.
double Between(const Tail& a, const Tail& b) {
  if (a.above && b.above) return a.mass - b.mass;
  if (!a.above && !b.above) return b.mass - a.mass;
  return 1 - a.mass - b.mass;
}

// P-mass, Q-mass, and the loss of both where P is not zero.
struct Share {
  double p = 0;
  double q = 0;
  double loss = 0;
};

// Masses of a mixture between coordinates.
class MixtureMasses {
 public:
  MixtureMasses(const ShiftedMixture& mixture, double weight) : mixture_(mixture), weight_(weight) {
    Add(mixture.density().numerator(), &Part::p);
    Add(mixture.density().denominator(), &Part::q);
    const auto at_zero = std::find_if(parts_.begin(), parts_.end(),
                                      [](const Part& part) { return part.shift == 0; });
    if (at_zero == parts_.end()) {
      zero_ = parts_.size();
      parts_.push_back({0});
    } else {
      zero_ = static_cast<std::size_t>(at_zero - parts_.begin());
    }
  }

  // The tails at x, one for each shift.
  void At(double x, std::vector<Tail>& tails) const {
    tails.resize(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      tails[i] = TailAt((x - parts_[i].shift) / mixture_.density().sigma());
    }
  }

  Share Of(const std::vector<Tail>& a, const std::vector<Tail>& b) const {
    Share share;
    double hit = 0;  // of the side that has moved
    // The weights of P and of Q sum to one each, so the part at zero may be subtracted.
    const double stay = std::max(0.0, Between(a[zero_], b[zero_]));
    double more = 0;  // P-mass less Q-mass
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const double mass = i == zero_ ? stay : std::max(0.0, Between(a[i], b[i]));
      share.p += parts_[i].p * mass;
      share.q += parts_[i].q * mass;
      if (i == zero_) continue;
      hit += (parts_[i].p + parts_[i].q) * mass;
      more += (parts_[i].p - parts_[i].q) * (mass - stay);
    }
    switch (mixture_.form()) {
      case Form::kRemove:
        share.loss = std::log1p(hit / ((1 - mixture_.hit()) * stay));
        break;
      case Form::kAdd:
        share.loss = -std::log1p(hit / ((1 - mixture_.hit()) * stay));
        break;
      case Form::kOther:
        share.loss = std::log1p(more / share.q);
        break;
    }
    share.p *= weight_;
    share.q *= weight_;
    return share;
  }

 private:
  struct Part {
    double shift;
    double p = 0;
    double q = 0;
  };

  void Add(const Mixture::Parts& parts, double Part::*side) {
    for (const auto& [shift, probability] : parts) {
      const double place = shift;
      auto found = std::find_if(parts_.begin(), parts_.end(),
                                [&](const Part& part) { return part.shift == place; });
      if (found == parts_.end()) found = parts_.insert(parts_.end(), Part{shift});
      (*found).*side += probability;
    }
  }

  const ShiftedMixture& mixture_;
  double weight_;
  std::vector<Part> parts_;
  std::size_t zero_ = 0;  // the part that has not moved
};

// Two outcomes as one.
void Merge(double& mass, double& loss, const LossCell& more) {
  if (!(more.mass > 0)) return;
  if (mass > 0) {
    const double total = mass + more.mass;
    loss -= std::log1p(more.mass * std::expm1(loss - more.loss) / total);
    mass = total;
  } else {
    mass = more.mass;
    loss = more.loss;
  }
}

bool IsClippedLow(const DensityPiece& piece) { return piece.clip_low > -1e300; }
bool IsClippedHigh(const DensityPiece& piece) { return piece.clip_high < 1e300; }

// log(e^|t| - 1).
double LogGrowth(double t) {
  const double size = std::abs(t);
  return size < 30 ? std::log(std::expm1(size)) : size + std::log1p(-std::exp(-size));
}

class Cutter {
 public:
  explicit Cutter(const std::vector<double>& places) : places_(places) {
    for (const double t : places) log_growth_.push_back(LogGrowth(t));
  }

  LossCells Cut(const CountedPair& counted, bool with_offset) const {
    const LossPair& pair = counted.pair;
    LossCells out;
    out.count = static_cast<double>(counted.count);
    out.mass.assign(places_.size() - 1, 0);
    out.loss.assign(places_.size() - 1, 0);
    out.infinite = pair.infinite_mass;
    out.missing_p = pair.missing_p;
    out.absent_q = pair.absent_q;
    out.q_rounding = pair.q_rounding;
    for (const DensityPiece& piece : pair.pieces) {
      const ShiftedMixture mixture(*MixtureOf(piece), with_offset);
      out.offset = mixture.offset();
      AddPiece(piece, mixture, out);
    }
    for (const LossAtom& atom : pair.atoms) AddAtom(atom, out);
    return out;
  }

 private:
  void AddAtom(const LossAtom& atom, LossCells& out) const {
    if (!(atom.mass > 0)) return;
    const double t = atom.loss - out.offset;
    if (t < places_.front()) {
      out.low_p += atom.mass;
      out.low_q += atom.mass * std::exp(-atom.loss);
    } else if (t > places_.back()) {
      out.high_p += atom.mass;
      out.high_q += atom.mass * std::exp(-atom.loss);
    } else {
      const auto above = std::upper_bound(places_.begin(), places_.end() - 1, t);
      const auto cell = static_cast<std::size_t>(above - places_.begin()) - 1;
      Merge(out.mass[cell], out.loss[cell], {atom.mass, t});
    }
  }

  void AddPiece(const DensityPiece& piece, const ShiftedMixture& mixture, LossCells& out) const {
    const Mixture& density = mixture.density();
    const double first = IsClippedLow(piece) ? density.CoordinateOf(piece.clip_low) : -kInfinity;
    const double last = IsClippedHigh(piece) ? density.CoordinateOf(piece.clip_high) : kInfinity;
    if (!(piece.weight > 0) || !(last > first)) return;
    const MixtureMasses masses(mixture, piece.weight);
    double from = first;
    std::vector<Tail> at_from;
    std::vector<Tail> at_to;
    masses.At(from, at_from);
    for (std::size_t k = 0; k <= places_.size(); ++k) {
      // k - 1 is the cell; the tails lie before the first and behind the last place.
      double to = last;
      if (k < places_.size()) {
        to = std::clamp(mixture.CoordinateOf(places_[k], log_growth_[k]), from, last);
      }
      if (!(to > from)) continue;
      masses.At(to, at_to);
      const Share share = masses.Of(at_from, at_to);
      if (k == 0) {
        out.low_p += share.p;
        out.low_q += share.q;
      } else if (k == places_.size()) {
        out.high_p += std::max(share.p, std::numeric_limits<double>::min());
        out.high_q += share.q;
      } else if (share.q > kMinTail) {
        Merge(out.mass[k - 1], out.loss[k - 1], {share.p, share.loss});
      } else {
        LossCell cell = IntegrateCell(density, from, to);
        cell.mass *= piece.weight;
        cell.loss -= out.offset;
        Merge(out.mass[k - 1], out.loss[k - 1], cell);
      }
      from = to;
      std::swap(at_from, at_to);
    }
  }

  const std::vector<double>& places_;
  std::vector<double> log_growth_;
};

// Whether losses are measured from an offset: a single density, and nothing besides.
bool HasOffset(const LossPair& pair) { return pair.pieces.size() == 1 && pair.atoms.empty(); }

// The places of one piece of one pair, at equal steps of its coordinate, from and to losses that
// other pairs of the group need.
struct PieceRange {
  double low_t = kInfinity;
  double high_t = -kInfinity;
};

// Places at equal steps of the coordinate, few of them where the record hardly changes the ratio.
std::vector<double> EqualSteps(const ShiftedMixture& mixture, double a, double b,
                               std::size_t steps) {
  constexpr double kHardly = -3;  // log of the ratio
  std::vector<double> places;
  double middle = a;
  std::size_t below = 0;
  if (mixture.form() != Form::kOther) {
    const double t = std::exp(kHardly) * mixture.hit() / (1 - mixture.hit());
    const double x = mixture.form() == Form::kRemove ? mixture.CoordinateOf(t, LogGrowth(t))
                                                     : mixture.CoordinateOf(-t, LogGrowth(t));
    middle = std::clamp(x, a, b);
    const std::size_t few = steps / 8;
    below = mixture.form() == Form::kRemove ? few : steps - few;
  }
  for (std::size_t i = 0; i < below; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(below);
    places.push_back(mixture.At(a + (middle - a) * share));
  }
  for (std::size_t i = 0; i <= steps - below; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps - below);
    places.push_back(mixture.At(middle + (b - middle) * share));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Adds to places in rising order those that are not much closer to one of them than to each other:
// the mass of a tiny cell would be a difference of nearly equal numbers.
void AddApart(const std::vector<double>& rising, std::vector<double>& places) {
  constexpr double kMinShare = 0.1;
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const double before = i > 0 ? rising[i] - rising[i - 1] : kInfinity;
    const double after = i + 1 < rising.size() ? rising[i + 1] - rising[i] : kInfinity;
    const double least = kMinShare * std::min(before, after);
    const auto above = std::lower_bound(places.begin(), places.end(), rising[i]);
    if (above != places.end() && *above - rising[i] <= least) continue;
    if (above != places.begin() && rising[i] - *(above - 1) <= least) continue;
    places.insert(above, rising[i]);
  }
}

std::vector<double> ChoosePlaces(std::span<const CountedPair* const> references, double log_lost,
                                 std::size_t cells, double focus) {
  const std::size_t pieces = references.front()->pair.pieces.size();
  const bool with_offset = HasOffset(references.front()->pair);
  std::vector<PieceRange> ranges(pieces);
  std::vector<double> places;  // of atoms, and of ends of pieces
  for (const CountedPair* reference : references) {
    LossPair ranged = reference->pair;
    ChooseRange(ranged, log_lost);
    for (std::size_t j = 0; j < pieces; ++j) {
      const DensityPiece& piece = ranged.pieces[j];
      if (!(piece.high_x > piece.low_x)) continue;
      const ShiftedMixture mixture(*MixtureOf(piece), with_offset);
      ranges[j].low_t = std::min(ranges[j].low_t, mixture.At(piece.low_x));
      ranges[j].high_t = std::max(ranges[j].high_t, mixture.At(piece.high_x));
      if (IsClippedLow(piece)) places.push_back(piece.clip_low - mixture.offset());
      if (IsClippedHigh(piece)) places.push_back(piece.clip_high - mixture.offset());
    }
    for (const LossAtom& atom : ranged.atoms) places.push_back(atom.loss);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (std::size_t j = 0; j < pieces; ++j) {
    const DensityPiece& piece = references.front()->pair.pieces[j];
    if (!(ranges[j].high_t > ranges[j].low_t)) continue;
    const ShiftedMixture mixture(*MixtureOf(piece), with_offset);
    const double a = mixture.CoordinateOf(ranges[j].low_t, LogGrowth(ranges[j].low_t));
    const double b = mixture.CoordinateOf(ranges[j].high_t, LogGrowth(ranges[j].high_t));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const std::size_t steps = std::max<std::size_t>(8, cells / pieces / 2);
    AddApart(EqualSteps(mixture, a, b, steps), places);
    // The others at equal steps of the loss.
    const double from = focus > 0 ? std::max(ranges[j].low_t, -2 * focus) : ranges[j].low_t;
    const double to = focus > 0 ? std::min(ranges[j].high_t, 2 * focus) : ranges[j].high_t;
    std::vector<double> equal;
    for (std::size_t i = 0; i <= steps && to > from; ++i) {
      equal.push_back(from + (to - from) * static_cast<double>(i) / static_cast<double>(steps));
    }
    AddApart(equal, places);
  }
  // Pairs whose range is empty: any cell will do.
  if (places.empty()) places.push_back(0);
  if (places.size() < 2) places.push_back(places.back() + 1);
  return places;
}

// What tells pairs apart: the form of the pieces, and two numbers that neighbours share nearly.
struct Key {
  std::vector<double> form;
  double log_hit = 0;
  double log_sigma = 0;
};

Key KeyOf(const LossPair& pair) {
  Key key;
  key.form.push_back(static_cast<double>(pair.atoms.size()));
  for (const DensityPiece& piece : pair.pieces) {
    const Mixture* mixture = MixtureOf(piece);
    key.form.push_back(static_cast<double>(FormOf(*mixture)));
    key.form.push_back(static_cast<double>(mixture->numerator().size()));
    key.form.push_back(mixture->max_numerator_shift() + mixture->max_denominator_shift());
    key.form.push_back((IsClippedLow(piece) ? 1 : 0) + (IsClippedHigh(piece) ? 2 : 0));
  }
  const Mixture& first = *MixtureOf(pair.pieces.front());
  key.log_hit = std::log(first.HitProbability());
  key.log_sigma = std::log(first.sigma());
  return key;
}

struct Keyed {
  Key key;
  const CountedPair* pair;
};

// Cuts the widest direction at its median until a group is small, or narrow and not large.
class Splitter {
 public:
  Splitter(double log_lost, std::size_t cells, double focus)
      : log_lost_(log_lost), cells_(cells), focus_(focus) {}

  void Split(std::span<Keyed> pairs, std::vector<CellGroup>& out) const {
    const auto spread = [&](double Key::*number) {
      double low = kInfinity;
      double high = -kInfinity;
      for (const Keyed& one : pairs) {
        low = std::min(low, one.key.*number);
        high = std::max(high, one.key.*number);
      }
      return high - low;
    };
    const double sigma = spread(&Key::log_sigma) / kWidestSigma;
    const double hit = spread(&Key::log_hit) / kWidestHit;
    const double narrow = pairs.size() > kLargeGroup ? 0.5 : 1;
    if (pairs.size() < 2 * kMinGroup || std::max(sigma, hit) <= narrow) {
      Finish(pairs, out);
      return;
    }
    double Key::*number = sigma >= hit ? &Key::log_sigma : &Key::log_hit;
    const auto middle = static_cast<std::ptrdiff_t>(pairs.size() / 2);
    std::nth_element(pairs.begin(), pairs.begin() + middle, pairs.end(),
                     [&](const Keyed& a, const Keyed& b) { return a.key.*number < b.key.*number; });
    Split(pairs.first(static_cast<std::size_t>(middle)), out);
    Split(pairs.subspan(static_cast<std::size_t>(middle)), out);
  }

 private:
  static constexpr std::size_t kMinGroup = 32;
  static constexpr std::size_t kLargeGroup = 2000;
  static constexpr double kWidestSigma = 0.12;
  static constexpr double kWidestHit = 0.5;

  void Finish(std::span<const Keyed> pairs, std::vector<CellGroup>& out) const {
    const auto less = [](double Key::*number) {
      return [number](const Keyed& a, const Keyed& b) { return a.key.*number < b.key.*number; };
    };
    const auto [quiet, loud] =
        std::minmax_element(pairs.begin(), pairs.end(), less(&Key::log_sigma));
    const auto [rare, often] = std::minmax_element(pairs.begin(), pairs.end(), less(&Key::log_hit));
    const std::vector<const CountedPair*> references = {quiet->pair, loud->pair, rare->pair,
                                                        often->pair};
    CellGroup group;
    group.mass_error = kTailError * (50 - log_lost_);
    group.places = ChoosePlaces(references, log_lost_, cells_, focus_);
    const bool with_offset = HasOffset(pairs.front().pair->pair);
    const Cutter cutter(group.places);
    for (const Keyed& one : pairs) group.pairs.push_back(cutter.Cut(*one.pair, with_offset));
    out.push_back(std::move(group));
  }

  double log_lost_;
  std::size_t cells_;
  double focus_;
};

}  // namespace

bool CanBeCut(const LossPair& pair) {
  return !pair.pieces.empty() &&
         std::all_of(pair.pieces.begin(), pair.pieces.end(),
                     [](const DensityPiece& piece) { return MixtureOf(piece) != nullptr; });
}

std::vector<CellGroup> CutIntoCells(std::span<const CountedPair* const> pairs, double log_lost,
                                    std::size_t cells, double focus) {
  std::vector<Keyed> keyed;
  keyed.reserve(pairs.size());
  for (const CountedPair* pair : pairs) keyed.push_back({KeyOf(pair->pair), pair});
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const Keyed& a, const Keyed& b) { return a.key.form < b.key.form; });
  std::vector<CellGroup> groups;
  const Splitter splitter(log_lost, cells, focus);
  for (auto from = keyed.begin(); from != keyed.end();) {
    const auto to = std::find_if(from, keyed.end(),
                                 [&](const Keyed& one) { return one.key.form != from->key.form; });
    splitter.Split(std::span<Keyed>(from, to), groups);
    from = to;
  }
  return groups;
}

}  // namespace sordino
