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
              "step, shared_source_));\n  return true;\n"),
             ("", "step, shared_source_));\n"
                  "  if (!WaitForCharge()) return false;\n  ++done_;\n  return true;\n"),
             "DistributedCharge.*"),
    Mutation("other ranks do not wait for the charge", TRAINER,
             "if (!communicator_.IsFirst()) return communicator_.Broadcast(\"\") == kCharged;",
             "if (!communicator_.IsFirst()) return communicator_.Broadcast(\"\") != \"\";",
             "DistributedCharge.ThatIsRefusedReleasesNothing"),
    Mutation("every rank draws a batch of its own", TRAINER,
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
             "counts, step, shared_source_));",
             "counts, step, noise_source_));",
             "DistributedCounts.AreNoisedOnceForAllRanks"),
    Mutation("an epoch is charged in each of its steps", TRAINER,
             "return begins ? plan_.StepEvent(step) : Event::None(plan_.options().adjacency);",
             "return begins || step > 0 ? plan_.StepEvent(step) : "
             "Event::None(plan_.options().adjacency);",
             "DistributedCharge.IsThatOfOneProcess"),
]
