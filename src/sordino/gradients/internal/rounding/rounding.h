// How much floating-point rounding adds to the sensitivity of a clipped sum.
//
// The exact sums of two neighbouring batches differ by one clipped gradient. The computed sums
// differ by more: the norm that a gradient was clipped by is rounded, the clipped gradient is
// rounded, and adding one example changes how the sum of all the others rounds. This file bounds
// all three for the arithmetic below, so that
//
//     || computed sum(D) - computed sum(D') ||_2 <= sensitivity * (1 + RoundingSlack(model)).
//
// Notation. u is a unit roundoff (2^-24 for float32, 2^-53 for float64); gamma_n = n u / (1 - n u).
// A computed dot product of n terms is off by at most gamma_n sum |x_k y_k|, in any order of
// summation, with or without fused multiply-adds (Higham, Accuracy and Stability of Numerical
// Algorithms, 2002, section 3.1). Winograd and Strassen products do not satisfy this. omega bounds
// what one underflow loses, also where subnormals are flushed.
//
// What is computed. The gradient of an example (or micro-batch) is g = sum_t a_t b_t^T over its
// T rows, for every parameter; a_t has p and b_t has q features (features = p + q). Rows that
// cancel are the hazard: kappa_use is any upper bound on sum_t |a_t||b_t| over all rows of all uses
// of a parameter, and kappa = sqrt(sum kappa_use^2) over a clipping group. (Cauchy-Schwarz gives a
// cheap one, the product of the Frobenius norms ||a||_F and ||b||_F of all a_t and all b_t.) A
// gradient that is materialised, clipped and summed as such is one row with kappa_use = its norm:
// how it was computed does not matter, because what was computed is what is clipped.
//  (a) Materialised norms: float64 sums of squared entries. The gradient g~ they are taken of may
//      be computed again for the sum; g~ is then a product of the T rows.
//  (b) Ghost norms: sum_{t,s} (a_t.a_s)(b_t.b_s) from Gram matrices rounded with u, products
//      rounded with u, added up in float64. (Added up with u: count T^2 to the features.) A Gram
//      matrix may be the float64 sum of some over fewer features each: L counts the roundings with
//      u on the longest way to a product, p + q + 1 where both are over all features at once.
//  (c) Factors f in float64 with f * (computed norm) <= bound and f * (computed kappa) <=
//      cancellation * bound, rounded to u; products f b_t rounded to u; both inputs of any matrix
//      product may be rounded once more (TF32, bfloat16). kappa is computed from row norms with u,
//      or from squares rounded with u, and added up in float64.
//  (d) Sums: matrix products over at most rows_per_sum rows with u, added up in float64, the
//      result rounded once with u_result. On its way to the result a product takes part in at most
//      N float64 additions that round. However B T products are added up, N <= B T. Where T > 1,
//      here and in (a), the rows of an example make products of their own: of at most M rows with
//      u, added up in float64, and rounded to u.
//  (e) An example with ||a||_F or ||b||_F above kMaxRowsNorm in any use, or with a norm or kappa
//      above kMaxNorm, counts as not finite: factor 0, and it enters no product.
//  (f) Fused norms: g~ is computed twice, once for its norm as in (a) and once for the sum, where
//      f g~ is added up in float64. Both times it is the same function of the example's own rows,
//      bit for bit (the same instructions in the same order; rows beside it add exact zeros). Then
//      it is a gradient that is summed as such, one row with kappa_use = its norm, whatever
//      precision its products have: nothing of TF32 enters the bound. Where the two could differ in
//      a bit, kappa would be needed. (The tests FusedTerms show it on a GPU, FusedRounding what
//      goes wrong otherwise.)
//  (g) Rows of bfloat16 numbers (a model of them, or products in bfloat16, device/precision.h) are
//      converted to float32 before anything is computed from them. Factors of 8 significant bits
//      are exact in float32 and in TF32, and so is the product of two in float32: u_in is 0, and
//      (a) to (f) hold as for any other float32 rows. How the model rounds in its own passes is
//      part of what a_t and b_t are. (Bfloat16Products and NeighbouringBatches test it.)
//
// Proof. Units: bound = 1 after division by the bound of the group; the absolute terms (underflow)
// are divided by the smallest bound. Groups are disjoint coordinates and every term below is
// proportional to the group's bound, so the same relative slack holds for all groups together.
//
// 1. Kappa. What (c) computes is off by gamma_{features+T+4} + gamma64_{features T} relatively
//    and, since a Frobenius norm loses at most sqrt(T features omega), with (e)
//        f kappa <= K' = cancellation / (1 - that) + 4 F U kMaxRowsNorm sqrt(T features omega)
//    where F is the largest factor and U the number of uses.
// 2. Norm. By Cauchy-Schwarz |fl(a_t.a_s) - a_t.a_s| <= gamma_p |a_t||a_s| + p omega, the same for
//    b, so one term of (b) is off by gamma_L |a_t||a_s||b_t||b_s| + underflow (over parts of the
//    features, sum |a_t'||a_s'| <= |a_t||a_s|), and the sum by theta kappa^2 + W with
//    theta = (1 + u_in)^4 (1 + gamma_L)(1 + gamma64_{features + T^2}) - 1 and
//    W = 2 U omega (T features kMaxRowsNorm^2 + T^2), using sum_t |a_t| <= sqrt(T) ||a||_F. (a) is
//    off by gamma64_{coordinates+1} n^2, and n <= kappa. Hence n^2 <= computed^2 + Theta kappa^2 +
//    W. Where T > 1 and g~ of (a) is computed again, ||g|| <= ||g~|| + tau kappa with
//    tau = (1 + u_in)^2 (1 + gamma_{M+1})(1 + gamma64_T) - 1. Either way
//        f n <= nu = sqrt(1 + Theta K'^2 + F^2 W) + tau K'.               (GhostNormFactor)
//    Without a limit on the cancellation there is no bound: the computed norm of a large gradient
//    can be 0 when kappa >> n.
// 3. The example itself. (c) perturbs every f a_t b_t^T by at most pi = (1 + u)^2 (1 + u_in)^2 - 1
//    relatively. Where T > 1 its own products are rounded besides, by tau (1 + pi) K' at most:
//    other numbers than those of g~, and lost or kept by another rounding. So what it contributes,
//    x, has
//        ||x|| <= rho = nu + (pi + tau (1 + pi)) K' + underflow.
//    x depends on nothing but the example: for all the others, it is the same in D and D'.
// 4. The sum. Every entry of a product of R rows is off by gamma_R sum |terms|, so each example
//    adds to the L2 error of the batch at most epsilon = (1 + pi) K' gamma_R by the products it
//    takes part in, and phi = (1 + pi) K' gamma64_N (1 + gamma_R) + u_result (rho + epsilon + ...)
//    + underflow by the float64 sum and by the result. (Higham, section 4.2: a term of a sum is off
//    by at most gamma for the number of additions that it takes part in, in any order.)
// 5. Together. Products without a row of the record that differs are the same in D and D' where
//    all other rows keep their places and equal products give equal bits: A is the number of
//    examples that have a row in a product with a row of that record. Under add-remove all later
//    rows move, and A = B. Both sums have at most B examples, so their distance is at most
//        rho + 2 A epsilon + 2 B phi               when one example appears, and
//        2 rho + 2 A epsilon + 2 B phi             when one is replaced, less than twice as much.
//    RoundingSlack = rho - 1 + 2 A epsilon + 2 B phi.
//
// In words: about 2 (A K R + B) u. It does not depend on the size of the model; fewer rows in one
// float32 product, fewer examples beside each other in one, and a declared largest batch near the
// real one keep it small.
//
// Large batches. B u is 6 % for a million examples, so nothing that grows with B may be float32.
// With R = 1, float64 sums and a float64 result what grows is 2 B K N 2^-53, and B T additions
// would be too many for millions. A batch is cut into parts of at most P units; the rows of a unit
// are added up before they are added to others, in runs of no more than kRowsPerSum (S) rows of
// others besides; kPartsPerSum parts are added up, and then these sums. So
//        N = T + S + P + kPartsPerSum + B / kPartsPerSum      (sum_plan.h)
// and ten million records add 4e-5 K. The result is rounded to the type of the parameters after the
// noise, which is post-processing.
#ifndef SORDINO_GRADIENTS_INTERNAL_ROUNDING_ROUNDING_H_
#define SORDINO_GRADIENTS_INTERNAL_ROUNDING_ROUNDING_H_

#include <cstdint>

namespace sordino {

inline constexpr double kFloat32Roundoff = 0x1p-24;
inline constexpr double kFloat64Roundoff = 0x1p-53;
inline constexpr double kTf32Roundoff = 0x1p-10;  // tensor cores cut inputs off, not round
inline constexpr double kBfloat16Roundoff = 0x1p-8;

// Rule (e). Far beyond what a gradient or an activation of a working model reaches, and far
// enough inside the range of float32 that underflow cannot hide a large gradient.
inline constexpr double kMaxRowsNorm = 0x1p36;
inline constexpr double kMaxNorm = 0x1p80;

// The least clipping bound that can be planned for.
inline constexpr double kSmallestBound = 0x1p-40;

struct RoundingModel {
  double product_roundoff = kFloat32Roundoff;  // of factors and of factor * row
  double norm_roundoff = kFloat32Roundoff;     // of Gram matrices, row norms and g~
  double sum_roundoff = kFloat32Roundoff;      // of sums over rows
  double input_roundoff = 0;                   // of both inputs of a product: TF32, bfloat16
  double result_roundoff = kFloat32Roundoff;   // of the finished sum; n times it for n roundings
  std::int64_t rows_per_sum = 1;               // R, at least 1
  double cancellation = 1;                     // K, at least 1
  std::int64_t largest_batch = 1;              // B, at least 1
  std::int64_t beside = 0;                     // A, at most B; 0 stands for B
  std::int64_t features = 0;                   // largest p + q of a use; 0 when all g are kept
  std::int64_t norm_roundings = 0;             // L; 0 stands for features + 1
  std::int64_t rows = 1;                       // T, most rows of one example for a parameter
  std::int64_t product_rows = 0;               // M, at most T; 0 stands for T
  std::int64_t additions = 0;                  // N, of float64; 0 stands for B T
  std::int64_t coordinates = 1;                // of all parameters
  std::int64_t uses = 1;                       // of parameters, counted with repetition
  double largest_factor = 1;                   // F, of a policy: its factor for a norm of 0
  double smallest_bound = 1;                   // of a policy, at least 2^-40
  double underflow = 0x1p-126;                 // omega; 2^-149 where subnormals are kept
};

// gamma_n for the unit roundoff u; infinite when n u >= 1.
double Gamma(double n, double u);

// The factor nu by which a scaled gradient may exceed its bound because its norm was rounded.
double GhostNormFactor(const RoundingModel& model);

// eta above; rounded up. Throws Error when a member is out of range, and when a sum is so long
// that nothing can be said about it (R u >= 1/2).
double RoundingSlack(const RoundingModel& model);

// The largest rows_per_sum, up to 2^20, with which the slack stays within `slack`; 0 when none
// does.
std::int64_t LongestSum(RoundingModel model, double slack);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ROUNDING_ROUNDING_H_
