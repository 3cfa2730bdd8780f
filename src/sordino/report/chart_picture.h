// A chart of curves with error bars: what an experiment measured against one of its axes.
#ifndef SORDINO_REPORT_CHART_PICTURE_H_
#define SORDINO_REPORT_CHART_PICTURE_H_

#include <optional>
#include <string>
#include <vector>

namespace sordino {

struct ChartPoint {
  double x = 0;
  double y = 0;
  double deviation = 0;  // half the length of its error bar; 0: none
};

struct ChartCurve {
  std::string name;  // in the legend; any text
  std::vector<ChartPoint> points;
  bool on_right = false;  // its values are those of the right axis
};

struct ChartAxis {
  std::string label;
  bool logarithmic = false;
  std::vector<std::string>
      names;  // of the places 0, 1, ... in the place of numbers; empty: numbers
};

struct ChartPicture {
  std::string title;
  std::string caption;
  ChartAxis x;
  ChartAxis y;
  std::optional<ChartAxis> right;  // a second axis for values of another kind; numbers
  bool joined = true;              // by lines; dots alone otherwise
  std::vector<ChartCurve> curves;
};

// A self-contained SVG that follows the reader's choice of light or dark. Points that are not
// finite are left out, and so is what is not positive on a logarithmic axis.
std::string ChartSvg(const ChartPicture& picture);

}  // namespace sordino

#endif  // SORDINO_REPORT_CHART_PICTURE_H_
