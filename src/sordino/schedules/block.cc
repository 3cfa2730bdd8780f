#include <fmt/format.h>

#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

class BlockCurve : public ScheduleCurve {
 public:
  BlockCurve(std::int64_t first, std::int64_t last, double factor)
      : first_(first), last_(last), factor_(factor) {}
  double Factor(std::int64_t step, std::int64_t) const override {
    return step + 1 >= first_ && step + 1 <= last_ ? factor_ : 1;
  }
  bool IsConstant() const override { return factor_ == 1; }
  std::string Arguments() const override { return fmt::format("{}:{}:{}", first_, last_, factor_); }

 private:
  std::int64_t first_;
  std::int64_t last_;
  double factor_;
};

class Block : public ScheduleShape {
 public:
  Block() : ScheduleShape({.name = "block", .help = "F in the steps A to B, 1 in all others"}) {}
  std::string_view Arguments() const override { return "A:B:F"; }
  std::string_view Note() const override {
    return "F is more than 0 and A and B are whole numbers from 1, A at most B";
  }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    const std::size_t one = arguments.find(':');
    const std::size_t two = one == std::string_view::npos ? one : arguments.find(':', one + 1);
    if (two == std::string_view::npos) return nullptr;
    const auto first = internal::CountFrom(arguments.substr(0, one));
    const auto last = internal::CountFrom(arguments.substr(one + 1, two - one - 1));
    const auto factor = internal::FactorFrom(arguments.substr(two + 1), false);
    if (!first || !last || !factor || *first > *last) return nullptr;
    return std::make_shared<BlockCurve>(*first, *last, *factor);
  }
};

}  // namespace

const ScheduleShape& BlockSchedule() {
  static const Block component;
  return component;
}

}  // namespace sordino
