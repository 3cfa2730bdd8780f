// Gauss-Legendre quadrature with six and with eight points on [-1, 1].
#ifndef SORDINO_ACCOUNTING_INTERNAL_GAUSS_LEGENDRE_H_
#define SORDINO_ACCOUNTING_INTERNAL_GAUSS_LEGENDRE_H_

#include <array>

namespace sordino {

inline constexpr std::array<double, 6> kLegendreNodes = {
    -0.93246951420315202781, -0.66120938646626451366, -0.23861918608319690863,
    0.23861918608319690863,  0.66120938646626451366,  0.93246951420315202781};
inline constexpr std::array<double, 6> kLegendreWeights = {
    0.17132449237917034504, 0.36076157304813860757, 0.46791393457269104739,
    0.46791393457269104739, 0.36076157304813860757, 0.17132449237917034504};

// Of eight points, those above 0; the others mirror them.
inline constexpr std::array<double, 4> kLegendreNodesOfEight = {
    0.18343464249564980494, 0.52553240991632898582, 0.79666647741362673959, 0.96028985649753623168};
inline constexpr std::array<double, 4> kLegendreWeightsOfEight = {
    0.36268378337836198297, 0.31370664587788728734, 0.22238103445337447054, 0.10122853629037625915};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_GAUSS_LEGENDRE_H_
