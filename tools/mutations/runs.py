"""Mutations of how a run is charged and resumed: tools/mutate runs."""
from mutation import Mutation

PROGRAM = "runs_test"

MUTATIONS = [
    Mutation("a run is resumed with an older ledger", "runs/run_ledger.cc",
             "ledger_->id() != facts.ledger || !ledger_->Contains(facts.head)",
             "ledger_->id() != facts.ledger",
             "TrainingResume.AnOlderLedgerIsRefused"),
    Mutation("a run of its own has no budget", "runs/run_ledger.cc",
             "target && is_private_ ? *target : Epsilon(kInfinity)",
             "target && is_private_ ? Epsilon(kInfinity) : Epsilon(kInfinity)",
             "TrainingResume.AnOldCheckpointDoesNotTakeTheBudgetBack"),
    Mutation("lost steps are not counted", "runs/run_ledger.cc",
             "before_ = ledger_->filter().TotalOf(facts.run);",
             "before_ = plan_.EventOf(facts.step);",
             "TrainingResume.AnOldCheckpointGoesOnBitForBitAndIsChargedAgain"),
    Mutation("an epoch is not charged to the ledger", "runs/run_ledger.cc",
             ("return step == first_ || step % plan_.StepsPerEvent() == 0;",
              "SORDINO_CHECK(event == used_event_,"),
             ("return step == first_;", "SORDINO_CHECK(event >= used_event_,"),
             "AllocationRun.IsChargedEpochByEpochAndSaysHowItWasDone"),
    Mutation("the rest of an epoch is resumed for nothing", "runs/run_ledger.cc",
             ("facts.step / plan_.StepsPerEvent(), Costs()",
              "return step == first_ || step % plan_.StepsPerEvent() == 0;",
              "SORDINO_CHECK(event == used_event_,"),
             ("(facts.step + plan_.StepsPerEvent() - 1) / plan_.StepsPerEvent(), Costs()",
              "return step % plan_.StepsPerEvent() == 0;",
              "SORDINO_CHECK(event >= used_event_,"),
             "AllocationRun.ARunThatGoesOnInsideAnEpochPaysForANewOne"),
    Mutation("a refused model keeps what it did not use", "runs/internal/training_loop.cc",
             "      if (ledger_ != nullptr) ledger_->HandBack();\n",
             "",
             "TrainingRun.WhatARefusedModelDidNotUseIsHandedBack"),
]
