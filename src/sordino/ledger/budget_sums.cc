#include "sordino/ledger/budget_sums.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// Of the costs of releases. Sums that were formed with others are formed again.
constexpr int kRules = 1;
constexpr std::uint64_t kMaxCount = std::numeric_limits<std::uint64_t>::max();
constexpr double kMaxSum = std::numeric_limits<double>::max();
// Below, the error of a product may be smaller than every double.
constexpr double kMinExactProduct = 0x1p-900;

struct Pair {
  double high = 0;
  double low = 0;
};

// high + low is a + b exactly (Knuth).
Pair TwoSum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

double AddUp(double a, double b) {
  const Pair sum = TwoSum(a, b);
  return sum.low > 0 ? std::nextafter(sum.high, kInfinity) : sum.high;
}

// The sum of both, or a little more.
Pair AddUp(const Pair& a, const Pair& b) {
  const Pair sum = TwoSum(a.high, b.high);
  return TwoSum(sum.high, AddUp(sum.low, AddUp(a.low, b.low)));
}

// The product, or a little more (less: towards -infinity).
Pair Product(double cost, std::uint64_t count, double towards) {
  auto times = static_cast<double>(count);
  if (count > kMaxExactCount) times = std::nextafter(times, towards);
  const double product = cost * times;
  double low = std::fma(cost, times, -product);
  if (product < kMinExactProduct) low = std::nextafter(low, towards);
  return {product, low};
}

Json SumJson(const UpwardSum& sum) { return {sum.high(), sum.low(), sum.unbounded()}; }

UpwardSum ParseSum(const Json& json) {
  const UpwardSum sum(json.at(0).get<double>(), json.at(1).get<double>(),
                      json.at(2).get<std::uint64_t>());
  if (json.size() != 3 || !(sum.high() >= 0) || !(std::abs(sum.low()) <= sum.high())) {
    throw Error("the kept sums of the ledger hold one that cannot be");
  }
  return sum;
}

}  // namespace

std::uint64_t SaturatingSum(std::uint64_t a, std::uint64_t b) {
  return a > kMaxCount - b ? kMaxCount : a + b;
}

std::uint64_t SaturatingDifference(std::uint64_t a, std::uint64_t b) {
  if (a == kMaxCount) return a;
  return a < b ? 0 : a - b;
}

void UpwardSum::Add(double cost, std::uint64_t count) {
  if (count == 0 || cost == 0) return;
  const Pair added = Product(cost, count, kInfinity);
  if (!std::isfinite(added.high)) {
    unbounded_ = SaturatingSum(unbounded_, count);
    return;
  }
  const Pair sum = AddUp({high_, low_}, added);
  const bool fits = std::isfinite(sum.high) && std::isfinite(sum.low) && high_ < kMaxSum;
  high_ = fits ? sum.high : kMaxSum;
  low_ = fits ? sum.low : 0;
}

void UpwardSum::Subtract(double cost, std::uint64_t count) {
  if (count == 0 || cost == 0) return;
  // As in Add, so that what was unbounded there is here.
  if (!std::isfinite(Product(cost, count, kInfinity).high)) {
    unbounded_ = SaturatingDifference(unbounded_, count);
    return;
  }
  if (high_ == kMaxSum) return;
  const Pair taken = Product(cost, count, -kInfinity);
  const Pair sum = AddUp({high_, low_}, {-taken.high, -taken.low});
  const bool is_positive = sum.high > 0;
  high_ = is_positive ? sum.high : 0;
  low_ = is_positive ? sum.low : 0;
}

double UpwardSum::Value() const {
  if (unbounded_ > 0) return kInfinity;
  return low_ > 0 ? std::nextafter(high_, kInfinity) : high_;
}

std::string BudgetSumsJson(const BudgetSums& sums) {
  Json json;
  json["rules"] = kRules;
  json["runs"] = sums.runs;
  json["releases"] = sums.releases;
  json["pure"] = SumJson(sums.pure);
  json["filter"] = SumJson(sums.filter);
  json["loss"] = SumJson(sums.loss);
  json["failure"] = SumJson(sums.failure);
  json["reserved"] = SumJson(sums.reserved);
  json["order"] = sums.order;
  if (!sums.whole.empty()) {
    json["whole"] = sums.whole;
    json["whole_failure"] = sums.whole_failure;
  }
  return json.dump();
}

BudgetSums ParseBudgetSumsJson(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("rules").get<int>() != kRules) {
      throw Error("the kept sums of the ledger were formed by other rules");
    }
    BudgetSums sums;
    sums.runs = json.at("runs").get<std::uint64_t>();
    sums.releases = json.at("releases").get<std::uint64_t>();
    sums.pure = ParseSum(json.at("pure"));
    sums.filter = ParseSum(json.at("filter"));
    sums.loss = ParseSum(json.at("loss"));
    sums.failure = ParseSum(json.at("failure"));
    sums.reserved = ParseSum(json.at("reserved"));
    sums.order = json.at("order").get<double>();
    if (json.contains("whole")) {
      sums.whole = json.at("whole").get<std::string>();
      sums.whole_failure = json.at("whole_failure").get<double>();
    }
    return sums;
  } catch (const Json::exception&) {
    throw Error("the kept sums of the ledger cannot be read");
  }
}

}  // namespace sordino
