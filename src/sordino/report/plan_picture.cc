#include "sordino/report/plan_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr double kPlanTop = 76;
constexpr double kPlanBottom = 366;

constexpr const char* kPlanLight =
    ".uniform.line{stroke:#b25a00;stroke-dasharray:6 4}.dynamic.line{stroke:#0b62b8}"
    "text.uniform{fill:#b25a00}text.dynamic{fill:#0b62b8}"
    ".uniform.dot{fill:#b25a00}.dynamic.dot{fill:#0b62b8}";
constexpr const char* kPlanDark =
    ".uniform.line{stroke:#ffab57}.dynamic.line{stroke:#64b0ff}"
    "text.uniform{fill:#ffab57}text.dynamic{fill:#64b0ff}"
    ".uniform.dot{fill:#ffab57}.dynamic.dot{fill:#64b0ff}";

// One of the two pictures: linear steps to the right, a linear or logarithmic value upwards.
class Panel {
 public:
  struct Range {
    double low;
    double high;
  };

  Panel(double left, double right, double steps, Range values, bool logarithmic)
      : left_(left), right_(right), steps_(steps), logarithmic_(logarithmic) {
    if (logarithmic) {
      low_ = std::floor(std::log10(values.low));
      high_ = std::max(low_ + 1, std::ceil(std::log10(values.high) - 1e-9));
      tick_ = std::max(1.0, std::ceil((high_ - low_) / 6));
    } else {
      tick_ = TickDistance(values.high, 5);
      low_ = 0;
      high_ = tick_ * std::ceil(values.high / tick_ * (1 - 1e-9));
    }
  }

  double X(double steps) const { return left_ + (right_ - left_) * steps / steps_; }
  double Y(double value) const {
    const double at = logarithmic_ ? std::log10(value) : value;
    return kPlanBottom -
           (kPlanBottom - kPlanTop) * std::clamp((at - low_) / (high_ - low_), 0.0, 1.0);
  }

  std::string Axes(const char* name) const {
    std::string svg;
    for (double at = low_; at <= high_ * (1 + 1e-9) + 1e-9; at += tick_) {
      const double y = kPlanBottom - (kPlanBottom - kPlanTop) * (at - low_) / (high_ - low_);
      const std::string label =
          logarithmic_ ? fmt::format("{:g}", std::pow(10, at)) : fmt::format("{:.4g}", at);
      svg += fmt::format(
          "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/>\n"
          "<text x=\"{4:.1f}\" y=\"{5:.1f}\" text-anchor=\"end\">{6}</text>\n",
          at == low_ ? "axis" : "grid", left_, right_, y, left_ - 8, y + 4.5, label);
    }
    const double distance = TickDistance(steps_, 4);
    for (double at = 0; at <= steps_ * (1 + 1e-9); at += distance) {
      svg += fmt::format(
          "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n"
          "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
          X(at), kPlanBottom, kPlanBottom + 5, kPlanBottom + 21, at);
    }
    return svg + fmt::format(
                     "<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n"
                     "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">steps</text>\n",
                     left_, kPlanTop - 12, name, (left_ + right_) / 2, kPlanBottom + 44);
  }

 private:
  double left_;
  double right_;
  double steps_;
  bool logarithmic_;
  double low_ = 0;
  double high_ = 1;
  double tick_ = 1;
};

std::string Line(const char* kind, const std::string& points) {
  return fmt::format("<polyline class=\"{} line\" points=\"{}\"/>\n", kind, points);
}

std::string BoundPanel(const PlanPicture& plan) {
  double low = plan.bounds.front().dynamic;
  double high = 0;
  for (const PlanCurvePoint& point : plan.bounds) {
    low = std::min({low, point.uniform, point.dynamic});
    high = std::max({high, point.uniform, point.dynamic});
  }
  const Panel panel(76, 386, plan.bounds.back().steps, {low, high}, true);
  std::string uniform;
  std::string dynamic;
  double least_uniform = high;
  double least_dynamic = high;
  for (const PlanCurvePoint& point : plan.bounds) {
    uniform += fmt::format("{:.2f},{:.2f} ", panel.X(point.steps), panel.Y(point.uniform));
    dynamic += fmt::format("{:.2f},{:.2f} ", panel.X(point.steps), panel.Y(point.dynamic));
    least_uniform = std::min(least_uniform, point.uniform);
    least_dynamic = std::min(least_dynamic, point.dynamic);
  }
  std::string svg = panel.Axes("bound on the excess risk, over the initial one");
  svg += Line("uniform", uniform) + Line("dynamic", dynamic);
  svg += fmt::format(
      "<circle class=\"uniform dot\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"4\"/>\n"
      "<circle class=\"dynamic dot\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"4\"/>\n",
      panel.X(plan.uniform_steps), panel.Y(least_uniform), panel.X(plan.dynamic_steps),
      panel.Y(least_dynamic));
  return svg;
}

std::string SchedulePanel(const PlanPicture& plan) {
  if (plan.noise.empty()) return "";
  const double high =
      std::max(plan.uniform_noise, *std::max_element(plan.noise.begin(), plan.noise.end()));
  const Panel panel(456, 692, plan.schedule_steps, {0, high}, false);
  std::string line;
  for (std::size_t i = 0; i < plan.noise.size(); ++i) {
    const double share = plan.noise.size() == 1
                             ? 0.5
                             : static_cast<double>(i) / static_cast<double>(plan.noise.size() - 1);
    line +=
        fmt::format("{:.2f},{:.2f} ", panel.X(share * plan.schedule_steps), panel.Y(plan.noise[i]));
  }
  const double y = panel.Y(plan.uniform_noise);
  return panel.Axes("noise multiplier of a step") + Line("dynamic", line) +
         Line("uniform", fmt::format("{:.2f},{:.2f} {:.2f},{:.2f}", panel.X(0), y,
                                     panel.X(plan.schedule_steps), y));
}

}  // namespace

std::string PlanSvg(const PlanPicture& plan) {
  std::string svg = SvgOpening({.label = "bounds against the number of steps, and noise by step",
                                .warning = "",
                                .title = "Which schedule spends the budget best",
                                .caption = plan.caption},
                               SvgStyle(kPlanLight, kPlanDark), 76);
  svg += BoundPanel(plan) + SchedulePanel(plan);
  return svg +
         "<text class=\"dynamic\" x=\"76\" y=\"432\">best schedule</text>\n"
         "<text class=\"uniform\" x=\"186\" y=\"432\">the same noise in all steps</text>\n"
         "</svg>\n";
}

}  // namespace sordino
