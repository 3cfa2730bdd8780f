#include "sordino/runs/fit_statement.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/base/weak_guarantee.h"
#include "sordino/runs/internal/statement_page.h"

namespace sordino {
namespace {

using internal::Page;
using internal::Sentence;
using internal::UpTo;

std::string FitUnit(const FitFacts& facts) { return facts.counts_users ? "person" : "record"; }

std::string FitChange(const FitFacts& facts) {
  return internal::ChangeOf(facts.adjacency, "one " + FitUnit(facts));
}

std::string FitTense(const FitFacts& facts) {
  return facts.state == RunState::kPlanned ? "would be" : "is";
}

void WriteFitOpening(Page& page, const FitFacts& facts) {
  if (facts.privacy != RunPrivacy::kPrivate) {
    page.Paragraph(NotPrivateWarning(facts.privacy));
    page.Break();
  }
  page.Heading(facts.privacy == RunPrivacy::kPrivate ? "Privacy statement"
                                                     : "Statement of a run without privacy");
  page.Paragraph(fmt::format("Data: {}. Model: {}", facts.data, Sentence(facts.model)));
  internal::WritePurpose(page, facts.purpose);
  if (facts.state == RunState::kPlanned) {
    page.Paragraph(
        "PLANNED: nothing below was done yet. A fit that ends replaces this page. Where this page "
        "lies in the folder of a fit that did not end, count all of it as spent.");
  }
  if (facts.privacy == RunPrivacy::kSeeded) {
    page.Paragraph(
        "What follows is what the same fit would guarantee with secret randomness. It does not "
        "hold for this one.");
  }
}

void WriteFitGuarantee(Page& page, const FitFacts& facts) {
  page.Heading("What is protected");
  if (facts.counts_users) {
    page.Paragraph(
        facts.rows_per_user > 1
            ? fmt::format("One person, with at most {} records in the data: further ones "
                          "were left out.",
                          facts.rows_per_user)
            : std::string("One person, with at most one record in the data."));
  } else {
    page.Paragraph(
        "One record of the data. A person who is behind several records is protected less: with k "
        "records, epsilon counts about k times.");
  }
  internal::WriteComparison(page, "the data", FitChange(facts), facts.adjacency);
  internal::WriteStrength(page, {.is_planned = facts.state == RunState::kPlanned,
                                 .epsilon = facts.epsilon,
                                 .delta = facts.delta,
                                 .of = "the event below"});
  const std::string weak = WeakGuarantee(facts.epsilon.upper, facts.delta, facts.records);
  if (!weak.empty()) page.Paragraph(weak);
}

void WriteFitMethod(Page& page, const FitFacts& facts) {
  page.Heading("How it was done");
  page.Paragraph(fmt::format("Method: {}. {}", facts.method, Sentence(facts.plan)));
  page.Paragraph("As data, for 'sordino account --event':");
  page.Verbatim(facts.event);
}

void WriteFitAssumptions(Page& page, const FitFacts& facts) {
  page.Heading("Under which assumptions");
  page.Point(facts.counts_users
                 ? "The column that tells people apart is right, and nobody has two identities."
                 : "Records stand for independent units: no record was derived from another one.");
  page.Point(
      "The noise is secret: it came from a cryptographic generator keyed by the operating system, "
      "and neither it nor any state of the process, such as a memory dump, was shown to anybody.");
  page.Point(fmt::format(
      "What was declared about the data was not learned from them: columns, values, bounds, the "
      "bound on the norm of a row{}.",
      facts.records > 0 ? fmt::format(", the number of records ({})", facts.records) : ""));
  page.Point(
      "Model, method, regularisation and all other settings were chosen without looking at the "
      "private data.");
  page.Point(
      "Rows were scaled down to the declared bound, and targets clipped to theirs, by the program; "
      "this is not assumed of the data.");
  if (facts.needs_minimum) {
    page.Point(
        "The proof needs the minimum of the objective. How near the fit came to it was bounded "
        "with outward rounding, and what is left is paid for by noise; it is not assumed to be 0.");
  }
  if (facts.has_test) page.Point("The test set is public, and no private record is in it.");
  page.Point("How long the fit took may depend on the data: whoever could time it is not covered.");
}

void WriteFitLimits(Page& page, const FitFacts& facts) {
  page.Heading("What is not covered");
  page.Point(
      facts.ledger.empty()
          ? fmt::format("Other releases from the same data. Each adds its own epsilon and delta to "
                        "what the same {} has lost, also a fit that was thrown away. This page "
                        "counts one fit; a ledger (--ledger) counts them all.",
                        FitUnit(facts))
          : std::string("Releases from the same data that were not charged to the ledger named "
                        "above, also of a fit that was thrown away."));
  page.Point(
      "What is true of the population. A model that learned that smoking causes cancer says so of "
      "every smoker, in the data or not.");
  if (facts.has_test) page.Point("Records of the test set: they are not protected at all.");
  page.Point("Whoever can see the data, the memory of the process, or the raw files.");
}

}  // namespace

std::string FitGuarantee(const FitFacts& facts) {
  if (facts.privacy != RunPrivacy::kPrivate) return NotPrivateWarning(facts.privacy);
  const std::string weak = WeakGuarantee(facts.epsilon.upper, facts.delta, facts.records);
  return (weak.empty() ? "" : weak + "\n") +
         fmt::format(
             "The model {} ({}, {:g})-differentially private: {} changes the odds of anything that "
             "it shows by a factor of at most {}, except with probability {:g}.",
             FitTense(facts), UpTo(facts.epsilon.upper), facts.delta, FitChange(facts),
             UpTo(std::exp(facts.epsilon.upper)), facts.delta);
}

std::string FitStatement(const FitFacts& facts) {
  Page page;
  WriteFitOpening(page, facts);
  if (facts.privacy == RunPrivacy::kNonPrivate) {
    page.Heading("What is protected");
    page.Paragraph("Nothing. Treat the model and all metrics like the data themselves.");
    return std::move(page).text();
  }
  WriteFitGuarantee(page, facts);
  internal::WriteAllReleases(page, {.what = "fit",
                                    .file = facts.ledger,
                                    .budget = facts.budget,
                                    .is_planned = facts.state == RunState::kPlanned,
                                    .epsilon = facts.ledger_epsilon,
                                    .head = facts.ledger_head,
                                    .seeded = facts.ledger_seeded});
  WriteFitMethod(page, facts);
  WriteFitAssumptions(page, facts);
  WriteFitLimits(page, facts);
  return std::move(page).text();
}

}  // namespace sordino
