"""Mutations of training on several ranks: tools/mutate distributed."""
from mutation import Mutation

PROGRAM = "training_test"

TRAINER = "training/internal/distributed_trainer.cc"
SAME_BITS = "*GivesTheSameBitsOnAnyNumberOfRanks*"

MUTATIONS = [
    Mutation("noise of every rank is added up", TRAINER,
             ".multiplier = clipping_->GradientNoise(plan_.StepNoise(step)),",
             ".multiplier = NoiseMultiplier(std::sqrt(communicator_.Size()) *\n"
             "        clipping_->GradientNoise(plan_.StepNoise(step)).value()),",
             "DistributedNoise.IsThatOfOneProcessWhateverTheNumberOfRanks"),
    Mutation("every rank adds its share of the noise to its shard", TRAINER,
             ".multiplier = clipping_->GradientNoise(plan_.StepNoise(step)),",
             ".multiplier = NoiseMultiplier(\n"
             "        clipping_->GradientNoise(plan_.StepNoise(step)).value() /\n"
             "        std::sqrt(communicator_.Size())),",
             "DistributedNoise.IsThatOfOneProcessWhateverTheNumberOfRanks"),
    Mutation("the charge comes after the release", TRAINER,
             ("  if (!WaitForCharge()) return false;\n  ++done_;\n",
              "counts, step));\n  return !plan_.MeasuresAfter(step)"),
             ("", "counts, step));\n"
                  "  if (!WaitForCharge()) return false;\n  ++done_;\n"
                  "  return !plan_.MeasuresAfter(step)"),
             "*DistributedCharge*"),
    Mutation("other ranks do not wait for the charge", TRAINER,
             "return told == kCharged;",
             "return !told.empty();",
             "DistributedCharge.ThatIsRefusedReleasesNothing"),
    Mutation("every rank draws a batch of its own", "training/internal/shared_start.cc",
             "  const std::string bytes = communicator.Broadcast(\n"
             "      std::string(reinterpret_cast<const char*>(fresh.bytes().data()), "
             "SharedSecret::kBytes));",
             "  const std::string bytes =\n"
             "      std::string(reinterpret_cast<const char*>(fresh.bytes().data()), "
             "SharedSecret::kBytes);\n  static_cast<void>(communicator);",
             "DistributedBatch.IsOneForAllRanks"),
    Mutation("a rank adds up its whole share in floating point", TRAINER,
             "if (is_noised_) return Chunks(examples, sums_->chunks());",
             "ChunkOptions cut = sums_->chunks();\n"
             "  cut.most_examples = examples / communicator_.Size() + 1;\n"
             "  if (is_noised_) return Chunks(examples, cut);",
             SAME_BITS),
    Mutation("ranks make ordinary steps of a private run", TRAINER,
             "is_noised_(clip_and_noise),",
             "is_noised_(false && clip_and_noise),",
             "DistributedNoise.IsThatOfOneProcessWhateverTheNumberOfRanks"),
    Mutation("a rank computes a chunk that another has", TRAINER,
             "if (static_cast<int>(i % static_cast<std::size_t>(communicator_.Size())) !=\n"
             "        communicator_.Rank()) {",
             "if (i > 0 && static_cast<int>(i % static_cast<std::size_t>(communicator_.Size())) !=\n"
             "        communicator_.Rank()) {",
             SAME_BITS),
    Mutation("the state of the optimizer is that of one shard", "training/internal/sharded_optimizer.cc",
             "communicator_.AllGather(tensor, all);",
             "all.narrow(0, 0, tensor.numel()).copy_(tensor);",
             "*GoesOnWithAnotherNumberOfRanks*"),
    Mutation("every rank adds noise to the counts by itself", TRAINER,
             "clipping_->AfterNoise(std::move(shard), counts, step, shared_source_);",
             "clipping_->AfterNoise(std::move(shard), counts, step, noise_source_);",
             "DistributedCounts.AreNoisedOnceForAllRanks"),
    Mutation("an epoch is charged in each of its steps", TRAINER,
             "return begins ? plan_.StepEvent(step) : Event::None(plan_.options().adjacency);",
             "return begins || step > 0 ? plan_.StepEvent(step) : "
             "Event::None(plan_.options().adjacency);",
             "DistributedCharge.IsThatOfOneProcess"),
    Mutation("every rank draws directions of its own", TRAINER,
             "return sums_->Sum(losses_, request.examples, next, policy, done_, shared_source_);",
             "return sums_->Sum(losses_, request.examples, next, policy, done_, noise_source_);",
             "DistributedDirections.AreThoseOfAllRanksAndOfOneStep"),
    Mutation("AdaCliP of a rank sees its shard alone", TRAINER,
             "[&](const at::Tensor& own, at::Tensor& all) { communicator_.AllGather(own, all); });",
             "[&](const at::Tensor& own, at::Tensor& all) {\n"
             "        communicator_.AllGather(own, all);\n"
             "        all.zero_().narrow(0, communicator_.Rank() * own.numel(), own.numel())"
             ".copy_(own);\n      });",
             SAME_BITS),
    Mutation("every rank holds out records of its own", TRAINER,
             "*SharedStream(0, kHoldOutStream)",
             "*noise_source_.Stream({.step = 0, .rank = 0, .tensor = kHoldOutStream})",
             "DistributedHeldOutRecords.AreTheSameOnAllRanksAndCountedOnce"),
    Mutation("every rank counts all held-out records", TRAINER,
             "communicator_.Rank(), communicator_.Size())\n                .RevealForNoise();",
             "0, 1)\n                .RevealForNoise();",
             "DistributedHeldOutRecords.AreTheSameOnAllRanksAndCountedOnce"),
    Mutation("a count of several ranks has no noise", TRAINER,
             "NoisedCount(PrivateValue<std::int64_t>(total.item<std::int64_t>()),",
             "total.item<double>() + 0 * NoisedCount(\n"
             "        PrivateValue<std::int64_t>(total.item<std::int64_t>()),",
             "DistributedHeldOutRecords.AreTheSameOnAllRanksAndCountedOnce"),
    Mutation("other ranks lower the noise whatever the budget admits", TRAINER,
             "return lower.value() == noise; }",
             "return lower.value() == noise || noise > 0; }",
             "DistributedHeldOutRecords.LowerTheNoiseOfEveryRank"),
    Mutation("every rank throws the coins of canaries", TRAINER,
             "*SharedStream(0, kCanaryStream)",
             "*noise_source_.Stream({.step = 0, .rank = 0, .tensor = kCanaryStream})",
             "DistributedCanaries.*"),
]
