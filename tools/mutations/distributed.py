"""Mutations of training on several ranks: tools/mutate distributed."""
from mutation import Mutation

PROGRAM = "training_test"

TRAINER = "training/trainer.cc"
CHUNKS = "training/internal/chunked_sums.cc"
SAME_BITS = "*GivesTheSameBitsOnAnyNumberOfRanks*"

MUTATIONS = [
    Mutation("noise of every rank is added up", TRAINER,
             ".multiplier = clipping->GradientNoise(plan.StepNoise(step)),",
             ".multiplier = NoiseMultiplier(std::sqrt(ranks.Size()) *\n"
             "        clipping->GradientNoise(plan.StepNoise(step)).value()),",
             "DistributedNoise.IsThatOfOneProcessWhateverTheNumberOfRanks"),
    Mutation("every rank adds its share of the noise to its shard", TRAINER,
             ".multiplier = clipping->GradientNoise(plan.StepNoise(step)),",
             ".multiplier = NoiseMultiplier(\n"
             "        clipping->GradientNoise(plan.StepNoise(step)).value() /\n"
             "        std::sqrt(ranks.Size())),",
             "DistributedNoise.IsThatOfOneProcessWhateverTheNumberOfRanks"),
    Mutation("the charge comes after the release", TRAINER,
             ("    if (!Charge(step)) return false;\n    ++done;\n",
              "    return !plan.MeasuresAfter(step)"),
             ("", "    if (!Charge(step)) return false;\n    ++done;\n"
                  "    return !plan.MeasuresAfter(step)"),
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
    Mutation("a rank adds up its whole share in floating point", CHUNKS,
             "if (parts().clips) return Chunks(examples, clipper_->chunks());",
             "ChunkOptions cut = clipper_->chunks();\n"
             "    cut.most_examples = examples / all().Size() + 1;\n"
             "    if (parts().clips) return Chunks(examples, cut);",
             SAME_BITS),
    Mutation("ranks make ordinary steps of a private run", TRAINER,
             "is_noised(kind == StepKind::kPrivate),",
             "is_noised(options.communicator == nullptr && kind == StepKind::kPrivate),",
             "DistributedNoise.IsThatOfOneProcessWhateverTheNumberOfRanks"),
    Mutation("a rank computes a chunk that another has", CHUNKS,
             "if (static_cast<int>(i % static_cast<std::size_t>(all().Size())) != all().Rank())",
             "if (i > 0 &&\n          static_cast<int>(i % static_cast<std::size_t>(all().Size())) "
             "!= all().Rank())",
             SAME_BITS),
    Mutation("the state of the optimizer is that of one shard", "training/internal/sharded_optimizer.cc",
             "communicator_.AllGather(tensor, all);",
             "all.narrow(0, 0, tensor.numel()).copy_(tensor);",
             "*GoesOnWithAnotherNumberOfRanks*"),
    Mutation("every rank adds noise to the counts by itself", TRAINER,
             "clipping->AfterNoise(std::move(mean), sum, of_step.step, shared);",
             "clipping->AfterNoise(std::move(mean), sum, of_step.step, own);",
             "DistributedCounts.AreNoisedOnceForAllRanks"),
    Mutation("every rank draws directions of its own", CHUNKS,
             "requested.examples, next, policy, step, parts().shared));",
             "requested.examples, next, policy, step,\n                      "
             "*std::make_unique<RandomSource>()));",
             "DistributedDirections.AreThoseOfAllRanksAndOfOneStep"),
    Mutation("AdaCliP of a rank sees its shard alone", CHUNKS,
             "[&](const at::Tensor& own, at::Tensor& gathered) { all().AllGather(own, gathered); });",
             "[&](const at::Tensor& own, at::Tensor& gathered) {\n"
             "          all().AllGather(own, gathered);\n"
             "          gathered.zero_().narrow(0, all().Rank() * own.numel(), own.numel())"
             ".copy_(own);\n        });",
             SAME_BITS),
    Mutation("every rank holds out records of its own", TRAINER,
             "*StreamOf(shared, 0, kHoldOutStream)",
             "*StreamOf(own, 0, kHoldOutStream)",
             "DistributedHeldOutRecords.AreTheSameOnAllRanksAndCountedOnce"),
    Mutation("every rank counts all held-out records", TRAINER,
             "ranks.Rank(), ranks.Size())\n                           .RevealForNoise(),",
             "0, 1)\n                           .RevealForNoise(),",
             "DistributedHeldOutRecords.AreTheSameOnAllRanksAndCountedOnce"),
    Mutation("a count of several ranks has no noise", TRAINER,
             "NoisedCount(PrivateValue<std::int64_t>(right.item<std::int64_t>()),",
             "right.item<double>() + 0 * NoisedCount(\n"
             "        PrivateValue<std::int64_t>(right.item<std::int64_t>()),",
             "DistributedHeldOutRecords.AreTheSameOnAllRanksAndCountedOnce"),
    Mutation("other ranks lower the noise whatever the budget admits", TRAINER,
             "return lower.value() == lowered; }",
             "return lower.value() == lowered || lowered > 0; }",
             "DistributedHeldOutRecords.LowerTheNoiseOfEveryRank"),
    Mutation("every rank throws the coins of canaries", TRAINER,
             "*StreamOf(shared, 0, kCanaryStream)",
             "*StreamOf(own, 0, kCanaryStream)",
             "DistributedCanaries.*"),
]
