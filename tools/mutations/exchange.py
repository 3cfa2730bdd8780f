"""Mutations of what ranks exchange on GPUs: tools/mutate exchange."""
from mutation import Mutation

PROGRAM = "distributed_test"

EXCHANGE = "distributed/internal/gpu_exchange.cc"

MUTATIONS = [
    Mutation("wrong sums of GPUs are let through", EXCHANGE,
             "at::equal(found.sum, wanted.sum) &&", "at::equal(found.sum, found.sum) &&",
             "RequireEqualSums.OneWrongNumberOfOneRankIsRefusedByAll"),
    Mutation("wrong weights between GPUs are let through", EXCHANGE,
             "at::equal(found.gathered, wanted.gathered);",
             "at::equal(found.gathered, found.gathered);",
             "RequireEqualSums.OneWrongNumberOfOneRankIsRefusedByAll"),
    Mutation("a rank keeps a wrong sum of GPUs to itself", EXCHANGE,
             "if (all[rank].empty()) continue;", "if (are_equal || all[rank].empty()) continue;",
             "RequireEqualSums.OneWrongNumberOfOneRankIsRefusedByAll"),
    Mutation("two ranks use one GPU over NCCL", EXCHANGE,
             "return different.size() == names.size() && !different.contains(\"\");",
             "return !different.contains(\"\");",
             "HaveGpuEach.WhereNoneIsSharedAndNoneIsMissing"),
]
