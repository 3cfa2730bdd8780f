#include "sordino/runs/statement.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "sordino/base/weak_guarantee.h"
#include "sordino/runs/internal/statement_page.h"

namespace sordino {
namespace {

using internal::Page;
using internal::Sentence;
using internal::UpTo;

std::string Unit(const StatementFacts& facts) {
  return facts.rows_per_user > 0 ? "person" : "record";
}

std::string Change(const StatementFacts& facts) {
  const std::string unit =
      facts.rows_per_user > 0
          ? fmt::format("all records of one person (at most {})", facts.rows_per_user)
          : std::string("one record");
  return internal::ChangeOf(facts.adjacency, unit);
}

std::string Tense(const StatementFacts& facts) {
  return facts.state == RunState::kPlanned ? "would be" : "is";
}

void WriteOpening(Page& page, const StatementFacts& facts) {
  if (facts.privacy != RunPrivacy::kPrivate) {
    page.Paragraph(NotPrivateWarning(facts.privacy));
    page.Break();
  }
  page.Heading(facts.privacy == RunPrivacy::kPrivate ? "Privacy statement"
                                                     : "Statement of a run without privacy");
  page.Paragraph(fmt::format("Data: {}. {}", facts.data, Sentence(facts.model)));
  internal::WritePurpose(page, facts.purpose);
  switch (facts.state) {
    case RunState::kPlanned:
      page.Paragraph(fmt::format(
          "PLANNED: nothing below was done yet. This is what {} steps would mean; a run "
          "that ends replaces this page. Where this page lies in the folder of a run "
          "that did not end, count all of it as spent.",
          facts.steps));
      break;
    case RunState::kFinished:
      page.Paragraph(facts.steps < facts.planned_steps
                         ? fmt::format("The run ended after {} of at most {} steps: the next one "
                                       "would have passed its epsilon.",
                                       facts.steps, facts.planned_steps)
                     : !facts.tuning.empty()
                         ? fmt::format("Every try made all of its {} steps.", facts.steps)
                         : fmt::format("The run ended after all of its {} steps.", facts.steps));
      break;
    case RunState::kInterrupted:
      page.Paragraph(fmt::format("The run was stopped after {} of {} steps.", facts.steps,
                                 facts.planned_steps));
      if (!facts.stopped_by.empty()) {
        page.Paragraph(fmt::format("It was stopped by the ledger: {}.", facts.stopped_by));
      }
      break;
  }
  if (facts.lost_steps > 0 && facts.charges_epochs) {
    page.Paragraph(fmt::format(
        "{} steps that had been charged are not part of the run: a crash took their result, or "
        "they are the rest of an epoch that was begun again with a new allocation after an "
        "interruption. They count below.",
        facts.lost_steps));
  } else if (facts.lost_steps > 0) {
    page.Paragraph(fmt::format(
        "A crash took the result of {} steps that had been charged. They were made again where the "
        "budget allowed it, and count twice below.",
        facts.lost_steps));
  }
}

// The moment of a stop can be worth more than the composed epsilon of the steps (budget_filter.h).
void WriteStop(Page& page, const StatementFacts& facts) {
  if (facts.adaptive) {
    page.Paragraph(fmt::format(
        "The noise was lowered as the run went, by what it had released before. So this is not the "
        "epsilon of steps that were fixed in advance, but that of a budget which a {} kept: no "
        "step "
        "was made that would have passed it. It holds whatever the run chose and wherever it "
        "stopped.",
        facts.adaptive->filter));
    return;
  }
  if (facts.state != RunState::kInterrupted) return;
  if (facts.counts_whole) {
    page.Paragraph(fmt::format(
        "This is the epsilon of all {} planned steps, and the ledger counts the same: the moment "
        "at which the run stopped may have depended on what it had shown. The {} steps that were "
        "made compose to {}, which would hold if that moment had been fixed in advance.",
        facts.planned_steps, facts.steps, UpTo(facts.steps_epsilon.upper)));
    return;
  }
  const std::string made = fmt::format(
      "This counts the {} steps that were made, as the ledger does, and holds if the moment at "
      "which the run stopped did not depend on what it had shown.",
      facts.steps);
  // A run that lost steps was resumed, at a moment that may have depended on what it had shown too.
  if (facts.lost_steps > 0) {
    page.Paragraph(made);
    return;
  }
  page.Paragraph(fmt::format("{} Whatever that moment depended on, epsilon is at most {}.", made,
                             UpTo(facts.largest_epsilon.upper)));
}

void WriteGuarantee(Page& page, const StatementFacts& facts) {
  page.Heading("What is protected");
  if (facts.rows_per_user > 0) {
    page.Paragraph(
        fmt::format("One person, with at most {} records in the data.", facts.rows_per_user));
  } else {
    page.Paragraph(
        "One record of the training data. A person who is behind several records is protected "
        "less: "
        "with k records, epsilon counts about k times.");
  }
  internal::WriteComparison(page, "the training data", Change(facts), facts.adjacency);
  internal::WriteStrength(page, {.is_planned = facts.state == RunState::kPlanned,
                                 .epsilon = facts.epsilon,
                                 .delta = facts.delta,
                                 .of = facts.adaptive || !facts.tuning.empty() ? ""
                                       : facts.counts_whole                    ? "the plan"
                                                                               : "these steps"});
  WriteStop(page, facts);
  if (const std::string warning = WeakGuaranteeWarning(facts); !warning.empty()) {
    page.Paragraph(warning);
  }
}

void WriteAudit(Page& page, const StatementFacts& facts) {
  if (facts.audit.empty()) return;
  page.Heading("What an audit found");
  page.Paragraph(facts.audit);
}

void WriteAdaptive(Page& page, const StatementFacts& facts) {
  const AdaptiveFacts& adaptive = *facts.adaptive;
  page.Paragraph(
      "Every record was held out of training by a secret coin or trained on. The number of "
      "held-out "
      "records that the model predicted right was released with Gaussian noise after some of the "
      "steps; each such release was charged as if every record were in it.");
  if (facts.state == RunState::kPlanned) return;
  std::string levels = fmt::format("The noise multiplier began at {:.6g} and was lowered {} times",
                                   adaptive.first_noise, adaptive.Lowered());
  double last = adaptive.first_noise;
  for (const NoiseLevel& level : adaptive.levels) {
    if (level.noise == last) continue;
    levels += fmt::format("{} {:.6g} after {} steps", last == adaptive.first_noise ? ": to" : ",",
                          level.noise, level.step);
    last = level.noise;
  }
  page.Paragraph(levels + ".");
}

void WriteMethod(Page& page, const StatementFacts& facts) {
  page.Heading("How it was done");
  page.Paragraph(
      facts.state == RunState::kInterrupted
          ? fmt::format("{} steps were made of this plan: {}", facts.steps, Sentence(facts.plan))
          : Sentence(facts.plan));
  if (!facts.sampling.empty()) page.Paragraph(facts.sampling);
  if (facts.adaptive) WriteAdaptive(page, facts);
  if (!facts.tuning.empty()) page.Paragraph(facts.tuning);
  if (!facts.event.empty()) {
    page.Paragraph(facts.counts_whole && facts.state == RunState::kInterrupted
                       ? "What counts, the whole plan, as data for 'sordino account --event':"
                   : facts.adaptive
                       ? "What was charged, as data. Its composition by 'sordino account --event' "
                         "would hold if all of it had been fixed in advance, which it was not:"
                       : "As data, for 'sordino account --event':");
    page.Verbatim(facts.event);
  }
}

void WriteAssumptions(Page& page, const StatementFacts& facts) {
  page.Heading("Under which assumptions");
  page.Point(facts.rows_per_user > 0
                 ? "The column that tells people apart is right, and nobody has two identities."
                 : "Records stand for independent units: no record was derived from another one.");
  if (facts.has_secret_batches) {
    page.Point(
        "Nobody learns which records were in which batch. The batches came from a cryptographic "
        "generator keyed by the operating system, and are not stored.");
  }
  page.Point(
      "The noise is secret: it came from the same kind of generator, and neither it nor any state "
      "of "
      "the process, such as a memory dump, was shown to anybody.");
  page.Point(fmt::format(
      "What was declared about the data was not learned from them: shape, classes, bounds, {}{}.",
      facts.records > 0 ? fmt::format("the number of records ({}), ", facts.records) : "",
      facts.normalisation.empty()
          ? std::string("and nothing to normalise by")
          : fmt::format("and the constants of normalisation ({})", facts.normalisation)));
  page.Point(facts.tuning.empty()
                 ? "Model, learning rate, clipping norm and all other settings were chosen without "
                   "looking at the private data."
                 : "What was tried, and every setting that was not, was chosen without looking at "
                   "the private data. Nobody learns how many of the tries counted, nor any score "
                   "but that of the released one.");
  if (!facts.pretrained.empty()) {
    page.Point(
        fmt::format("The weights that training began with ({}) do not come from the private "
                    "data, or they were paid for elsewhere.",
                    facts.pretrained));
  }
  if (facts.has_test) {
    page.Point("The test set is public, and no private record is in it.");
  }
  page.Point(
      "In every step each record went through the model as if it were alone: no record can reach "
      "the "
      "gradient of another one, whatever the model computes (ensured by construction, see "
      "docs/gradients.md).");
  page.Point(
      "Noise lies on a fixed grid, and the rounding of clipping and summing is part of the "
      "sensitivity, so the low bits of floating-point numbers reveal nothing more there. The "
      "rounding inside of the model may depend on the size of a batch and is not bounded. How long "
      "a step took may depend on the size of its batch too: whoever could time the steps is not "
      "covered.");
  if (!facts.norms_assumption.empty()) page.Point(facts.norms_assumption);
}

void WriteLimits(Page& page, const StatementFacts& facts) {
  page.Heading("What is not covered");
  if (facts.ledger.empty()) {
    page.Point(fmt::format(
        "Other runs on the same data. Each adds its own epsilon and delta to what the same {} has "
        "lost, also a run whose model was thrown away{}; a ledger (--ledger) counts them all.",
        Unit(facts),
        facts.tuning.empty()
            ? ", and also those of a search for good settings. This page counts one run"
            : ". This page counts one tuning, with all of its tries"));
  } else {
    page.Point(fmt::format(
        "Releases from the same data that were not charged to the ledger named above, also of a "
        "run whose model was thrown away, and of a search for good settings."));
  }
  page.Point(
      "What is true of the population. A model that learned that smoking causes cancer says so of "
      "every smoker, in the data or not.");
  if (facts.has_test) page.Point("Records of the test set: they are not protected at all.");
  page.Point("Whoever can see the training data, the memory of the process, or the raw files.");
}

}  // namespace

std::int64_t AdaptiveFacts::Lowered() const {
  std::int64_t lowered = 0;
  double last = first_noise;
  for (const NoiseLevel& level : levels) {
    if (level.noise < last) ++lowered;
    last = level.noise;
  }
  return lowered;
}

std::string NotPrivateWarning(RunPrivacy privacy) {
  switch (privacy) {
    case RunPrivacy::kPrivate:
      return "";
    case RunPrivacy::kNonPrivate:
      return "NOT PRIVATE: this run neither clipped nor added noise (--non-private). The model may "
             "give away the records that it was trained on.";
    case RunPrivacy::kWithoutNoise:
      return "NOT PRIVATE: this run clipped and added no noise (--noise 0). The model may give "
             "away "
             "the records that it was trained on.";
    case RunPrivacy::kSeeded:
      return "NOT PRIVATE: batches and noise of this run come from --insecure-seed, so whoever "
             "knows "
             "or guesses the seed can take the noise away. It is for tests only.";
  }
  return "";
}

std::string WeakGuaranteeWarning(const StatementFacts& facts) {
  return WeakGuarantee(facts.epsilon.upper, facts.delta, facts.records);
}

std::string GuaranteeSentence(const StatementFacts& facts) {
  if (facts.privacy != RunPrivacy::kPrivate) return NotPrivateWarning(facts.privacy);
  const std::string weak = WeakGuaranteeWarning(facts);
  const std::string stop =
      facts.state == RunState::kInterrupted && !facts.counts_whole && !facts.adaptive
          ? fmt::format(
                " It holds if the moment of the stop did not depend on what the run had shown; "
                "whatever it depended on, epsilon is at most {}.",
                UpTo(facts.largest_epsilon.upper))
          : "";
  return (weak.empty() ? "" : weak + "\n") +
         fmt::format(
             "The model {} ({}, {:g})-differentially private: {} changes the odds of anything that "
             "it "
             "shows "
             "by a factor of at most {}, except with probability {:g}.",
             Tense(facts), UpTo(facts.epsilon.upper), facts.delta, Change(facts),
             UpTo(std::exp(facts.epsilon.upper)), facts.delta) +
         stop;
}

std::string Statement(const StatementFacts& facts) {
  Page page;
  WriteOpening(page, facts);
  if (!HasNoise(facts.privacy)) {
    page.Heading("What is protected");
    page.Paragraph("Nothing. Treat the model and all metrics like the training data themselves.");
    return std::move(page).text();
  }
  if (facts.privacy == RunPrivacy::kSeeded) {
    page.Break();
    page.Paragraph(
        "What follows is what the same run would guarantee with secret randomness. It does not "
        "hold "
        "for this one.");
  }
  WriteGuarantee(page, facts);
  WriteAudit(page, facts);
  internal::WriteAllReleases(page, {.what = "run",
                                    .file = facts.ledger,
                                    .budget = facts.budget,
                                    .is_planned = facts.state == RunState::kPlanned,
                                    .epsilon = facts.ledger_epsilon,
                                    .head = facts.ledger_head,
                                    .seeded = facts.ledger_seeded});
  WriteMethod(page, facts);
  WriteAssumptions(page, facts);
  WriteLimits(page, facts);
  return std::move(page).text();
}

}  // namespace sordino
