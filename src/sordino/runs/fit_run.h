// A private linear model of a table in one go: from settings to a fitted model and its run folder.
//
//   PreparedFit fit = PrepareFit(settings);       // reads no private data, spends nothing
//   FitOutcome outcome = RunFit(fit, progress);   // or RunTableFit
//
// Under add-remove the number of records is private: the plan is made for the number that was
// declared, which decides how well it does and not how private it is. Under replace-one the number
// is public: where it was not declared it is that of the table, and the plan is made once the table
// was read.
//
// A fit is one charge. Everything that can be refused is refused before it, and it is durable
// before the noise is drawn.
#ifndef SORDINO_RUNS_FIT_RUN_H_
#define SORDINO_RUNS_FIT_RUN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/convex/method.h"
#include "sordino/data/catalog.h"
#include "sordino/ledger/budget.h"
#include "sordino/ledger/budget_filter.h"
#include "sordino/mechanisms/private_selection.h"
#include "sordino/report/class_quality.h"
#include "sordino/runs/fit_statement.h"
#include "sordino/runs/training_risk.h"
#include "sordino/training/classification.h"

namespace sordino {

// "auto" decides by the predicted excess risk, without looking at the data.
inline constexpr std::string_view kAutoMethod = "auto";

struct FitSettings {
  DataRequest data;
  std::string model = "logistic";            // of FitModelNames()
  std::string features;                      // empty, or one of FitFeatureNames(): of images
  Choice method = std::string(kAutoMethod);  // or one of FitMethods()
  std::optional<double> epsilon;
  std::optional<double> delta;  // 1e-5 for data of the catalogue; otherwise it must be given
  // Empty: that of the ledger, or add-remove where the number of records is declared, else
  // replace-one.
  std::string adjacency;
  std::optional<double> lambda;       // by theory where it is left out
  std::optional<double> row_bound;    // where it is left out: DefaultRowBound
  std::optional<double> weight_norm;  // kDefaultWeightNorm of the library where it is left out
  std::string out;
  std::string ledger;
  bool whole = false;  // the fit may take all of the ledger's budget
  // "refuse" or "skip": rows of a table with a cell that does not keep to the declaration.
  std::string on_error = "refuse";
  std::optional<std::uint64_t> insecure_seed;
  bool non_private = false;  // the minimum itself, for public data: no budget, method or ledger
  // So many fits are expected, of which the best on the test set is released
  // (mechanisms/private_selection.h); nothing: one fit.
  std::optional<double> tune;
  bool measures_risk = false;  // training_risk.h; of public data, and of one fit
  bool brings_test = false;    // a program's table comes with a public test set
  ReleasePurpose purpose;
};

// Of the losses of convex/loss.h.
std::span<const std::string_view> FitModelNames();
// "scattering": fixed functions of an image, in the place of its pixels.
std::span<const std::string_view> FitFeatureNames();
// "auto" and the methods of the library.
std::vector<std::string_view> FitMethodNames();

// The norm of a row, the one of the intercept included, that no row of declared columns exceeds:
// about its centre (internal/fit_features.h) a numeric column adds at most 1/4 to its square, a
// categorical one of m values 1 - 1/m. For images a quarter of
// the largest possible norm, which most pictures reach: they count by their direction. Features by
// scattering are normalised, and all have the norm of their number.
double DefaultRowBound(const DatasetDeclaration& declaration,
                       const std::vector<std::string>& columns);

struct PreparedFit {
  FitSettings settings;  // completed
  DatasetDeclaration declaration;
  FitQuestion question;            // records is 0 where it is still to be counted
  std::vector<std::string> names;  // of the features and the intercept; empty for images
  std::vector<double> centre;      // what is subtracted from the features; empty: nothing
  std::vector<PlannedFit> plans;   // all methods; empty until the number of records is known
  std::optional<FitPlan> plan;
  // Of a selection: what it spends, and the plans among which each of its fits takes one. The
  // question is that of a fit.
  std::optional<SelectionBudget> selection;
  std::vector<FitPlan> candidates;
  std::optional<Budget> budget;  // of the ledger
  RunPrivacy privacy = RunPrivacy::kPrivate;
};

// Throws Error for every mistake that can be known without the data.
PreparedFit PrepareFit(FitSettings settings);

// The same for a table that a program holds. Its columns are declared; `name` is what the statement
// calls it; `data` has no source and no test set.
PreparedFit PrepareTableFit(FitSettings settings, std::string name);

// What the plan means, before anything was done.
FitFacts PlannedFacts(const PreparedFit& fit);
// Refuses what the ledger that was named would refuse now, and returns its filter as it would be
// with the fit; nothing without one.
std::optional<BudgetFilter> CheckLedger(const PreparedFit& fit);

// The least number of records, to two digits, for which a method predicts at most this excess risk;
// nothing where a hundred billion are not enough.
std::optional<double> NeededRecords(const FitQuestion& question, const std::string& method,
                                    double excess_risk);

struct Coefficient {
  std::string feature;  // "age", "sex=Female", "intercept"
  std::string score;    // the class of a softmax model; empty where there is one score
  double value = 0;     // in the units of the target where there is one
  // Where the noise is the only private randomness.
  std::optional<double> deviation;
  // Holds what the same method gives without its noise, with probability 95 %.
  std::optional<Interval> interval;
};

struct FitOutcome {
  std::filesystem::path folder;
  Interval epsilon;
  double delta = 0;
  FitFacts facts;
  std::vector<PlannedFit> plans;
  FitPlan plan;
  std::vector<Coefficient> coefficients;  // empty for images: they are in the file of the model
  std::optional<TestMetrics> test;
  std::optional<ClassQuality> test_quality;  // of classes
  std::optional<TrainingRisk> risk;          // where it was asked for
  std::int64_t malformed = 0;                // rows that were left out: private
  std::optional<double> seconds;  // of a selection they would tell the number of its fits
  bool is_private = true;
};

// Called with what is done, "read" or "fit", and its share from 0 to 1.
using FitObserver = std::function<void(std::string_view what, double share)>;

FitOutcome RunFit(PreparedFit& fit, const FitObserver& observer);
// Of PrepareTableFit, on what TakeTable (data/table_reader.h) made of the table. Without `out`
// nothing is written.
FitOutcome RunTableFit(PreparedFit& fit, DataSplits data, const FitObserver& observer);

}  // namespace sordino

#endif  // SORDINO_RUNS_FIT_RUN_H_
