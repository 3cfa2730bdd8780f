// What rounding of double precision costs, for the bounds of this module.
#ifndef SORDINO_ACCOUNTING_INTERNAL_ROUNDING_H_
#define SORDINO_ACCOUNTING_INTERNAL_ROUNDING_H_

namespace sordino {

inline constexpr double kUnitRoundoff = 0x1p-53;
// Rounding of one butterfly stage of a Fourier transform, in units of the unit roundoff: products,
// sums and the error of the twiddle factors.
inline constexpr double kStageRounding = 16;

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ROUNDING_H_
