// Eigenvalues of small symmetric matrices, by Jacobi's rotations (Golub and Van Loan, Matrix
// Computations, section 8.5): every eigenvalue is right to rounding of the largest.
#ifndef SORDINO_THEORY_INTERNAL_SYMMETRIC_EIGENVALUES_H_
#define SORDINO_THEORY_INTERNAL_SYMMETRIC_EIGENVALUES_H_

#include <vector>

namespace sordino::internal {

// In increasing order. `matrix` is square and symmetric.
std::vector<double> SymmetricEigenvalues(std::vector<std::vector<double>> matrix);

}  // namespace sordino::internal

#endif  // SORDINO_THEORY_INTERNAL_SYMMETRIC_EIGENVALUES_H_
