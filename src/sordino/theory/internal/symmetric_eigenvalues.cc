#include "sordino/theory/internal/symmetric_eigenvalues.h"

#include <algorithm>
#include <cmath>

namespace sordino::internal {
namespace {

constexpr int kMaxSweeps = 60;  // convergence is quadratic; ten are enough for what is given here

// Makes the entry (p, q) zero.
void Rotate(std::vector<std::vector<double>>& a, std::size_t p, std::size_t q) {
  if (a[p][q] == 0) return;
  const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double c = 1 / std::hypot(t, 1.0);
  const double s = t * c;
  for (std::vector<double>& row : a) {
    const double left = row[p];
    const double right = row[q];
    row[p] = c * left - s * right;
    row[q] = s * left + c * right;
  }
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double upper = a[p][k];
    const double lower = a[q][k];
    a[p][k] = c * upper - s * lower;
    a[q][k] = s * upper + c * lower;
  }
}

}  // namespace

std::vector<double> SymmetricEigenvalues(std::vector<std::vector<double>> matrix) {
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double off = 0;
    double all = 0;
    for (std::size_t p = 0; p < matrix.size(); ++p) {
      for (std::size_t q = 0; q < matrix.size(); ++q) {
        all += matrix[p][q] * matrix[p][q];
        if (p != q) off += matrix[p][q] * matrix[p][q];
      }
    }
    if (off <= 1e-32 * all) break;
    for (std::size_t p = 0; p < matrix.size(); ++p) {
      for (std::size_t q = p + 1; q < matrix.size(); ++q) Rotate(matrix, p, q);
    }
  }
  std::vector<double> eigenvalues;
  for (std::size_t p = 0; p < matrix.size(); ++p) eigenvalues.push_back(matrix[p][p]);
  std::sort(eigenvalues.begin(), eigenvalues.end());
  return eigenvalues;
}

}  // namespace sordino::internal
