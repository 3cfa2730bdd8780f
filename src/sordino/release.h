// Private statistics for C++ programs. Link sordino::mechanisms; libtorch is not needed.
//
//   SecureGenerator generator;
//   const Release mean = PrivateBoundedMean(days, {0, 30}, Epsilon(1), generator);
//   mean.value(), mean.interval().lower, mean.interval().upper
//
// A whole program: examples/private_mean.cc. A release is charged to a ledger before it is made
// (sordino/ledger.h). Everything is in the namespace sordino:
//
//   Epsilon, Delta, Adjacency         quantities as types: a swapped pair does not compile
//   SecureGenerator                   random bits of the operating system; one a thread
//   InsecureSeededGenerator           repeatable bits for tests: nothing made with it is private
//   Bounds                            the declared range of a number, never taken from the data
//   PrivateBoundedMean,               means of numbers in bounds, of zeros and ones,
//   PrivateBinaryMean,                of numbers with a bounded second moment,
//   PrivateClippedMean,               and of vectors
//   PrivateVectorMean
//   LaplaceMechanism,                 noise on a number or a vector whose sensitivity you declare
//   GaussianMechanism                 (L1Sensitivity, L2Sensitivity)
//   Statistic, GlobalSensitivity      the sensitivity of a count, sum, mean, histogram, ...
//   TableRequest, TableRelease,       counts, sums, means, variances, histograms and quantiles of a
//   ReleaseCsv, CsvReader             table by groups and users, as `sordino release` makes them
//   Release                           the noised values, their intervals and their event
//   Error                             a mistake of the caller, in one sentence
#ifndef SORDINO_RELEASE_H_
#define SORDINO_RELEASE_H_

#include "sordino/accounting/event.h"               // IWYU pragma: export
#include "sordino/base/error.h"                     // IWYU pragma: export
#include "sordino/base/quantity.h"                  // IWYU pragma: export
#include "sordino/mechanisms/additive_mechanism.h"  // IWYU pragma: export
#include "sordino/mechanisms/means.h"               // IWYU pragma: export
#include "sordino/mechanisms/release.h"             // IWYU pragma: export
#include "sordino/mechanisms/sensitivity.h"         // IWYU pragma: export
#include "sordino/mechanisms/table_release.h"       // IWYU pragma: export
#include "sordino/random/generator.h"               // IWYU pragma: export
#include "sordino/tables/csv_reader.h"              // IWYU pragma: export

#endif  // SORDINO_RELEASE_H_
