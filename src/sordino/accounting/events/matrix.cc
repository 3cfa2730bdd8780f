// matrix(noise, sensitivity): the matrix mechanism. What is released is C x + w, where row t of x
// is the sum of step t, and w is Gaussian noise of standard deviation noise * U, for the bound U on
// what a record adds to one row. The sensitivity is that of C for the steps that a record takes
// part in:
//
//   max |C u|_F over u whose rows are 0 but in those steps, and have at most the norm 1 there,
//
// so that the release is gaussian(noise / sensitivity), also where x depends on what was released
// before (Denisov, McMahan, Rush, Smith, Thakurta, arXiv 2202.08312, Theorem 2.1). Who declares it
// computes it from the same C that makes the noise (correlation/strategy.h).
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

class MatrixKind final : public GaussianFamily {
 public:
  MatrixKind()
      : GaussianFamily("matrix", {FieldOf<NoiseMultiplier>("noise"),
                                  {.name = "sensitivity",
                                   .what = "the sensitivity of a matrix",
                                   .low_open = true,
                                   .high = 0x1p500}}) {}
  Event DoubledReach(const Event& event) const override {
    return Event::Matrix(NoiseMultiplier(event.number("noise") / 2), event.number("sensitivity"),
                         event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid& grid) const override {
    return Event::Gaussian(grid.Noise(Sigma(event)), event.adjacency());
  }
  std::optional<double> ContourHits(const Event&, std::optional<double> rate) const override {
    return rate;
  }
  std::optional<double> Precision(const Event& event) const override {
    const double sigma = Sigma(event);
    return 1 / (sigma * sigma);
  }

 private:
  // Rounding is far below what every method rounds outward by.
  static double Sigma(const Event& event) {
    return event.number("noise") / event.number("sensitivity");
  }
};

}  // namespace

const EventKind& MatrixEvent() { return OneOfKind<MatrixKind>(); }

Event Event::Matrix(NoiseMultiplier noise, double sensitivity, Adjacency adjacency) {
  return MatrixEvent().New({adjacency, {noise.value(), sensitivity}});
}

}  // namespace sordino
