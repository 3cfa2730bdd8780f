#include "sordino/distributed/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> Read(const Variables& variables) {
  return ReadLaunchEnvironment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kMeeting = {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};

TEST(LaunchEnvironment, SaysNothingWhereNothingIsSet) {
  EXPECT_FALSE(Read({}));
  EXPECT_FALSE(Read(kMeeting));
  EXPECT_FALSE(Read({{"RANK", ""}, {"WORLD_SIZE", ""}}));
}

struct LauncherCase {
  const char* name;
  Variables variables;
  int local_rank;
  int local_size;
};

class Launchers : public ::testing::TestWithParam<LauncherCase> {};

TEST_P(Launchers, GiveRankSizeAndMeetingPlace) {
  const auto environment = Read(With(GetParam().variables, kMeeting));
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->rank, 3);
  EXPECT_EQ(environment->size, 8);
  EXPECT_EQ(environment->local_rank, GetParam().local_rank);
  EXPECT_EQ(environment->local_size, GetParam().local_size);
  EXPECT_EQ(environment->address, "node0");
  EXPECT_EQ(environment->port, 29500);
  EXPECT_FALSE(environment->is_hosted);
  EXPECT_EQ(environment->restart, 0);
}

const Variables kTorchrun = {
    {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};

INSTANTIATE_TEST_SUITE_P(
    All, Launchers,
    ::testing::Values(
        LauncherCase{"torchrun", kTorchrun, 1, 2},
        LauncherCase{"by_hand", {{"RANK", "3"}, {"WORLD_SIZE", "8"}}, 3, 1},
        LauncherCase{"openmpi", kOpenMpi, 3, 4},
        LauncherCase{"mpich",
                     {{"PMI_RANK", "3"},
                      {"PMI_SIZE", "8"},
                      {"MPI_LOCALRANKID", "0"},
                      {"MPI_LOCALNRANKS", "1"}},
                     0,
                     1},
        LauncherCase{"slurm",
                     {{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}},
                     1,
                     1},
        LauncherCase{"old_slurm", {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}, 3, 1},
        // One torchrun on each of four machines.
        LauncherCase{"torchrun_below_slurm",
                     With(kTorchrun, {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}), 1, 2},
        LauncherCase{"torchrun_names_below_mpi", With(kTorchrun, kOpenMpi), 1, 2}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(LaunchEnvironment, ABatchScriptOfSlurmIsNotARank) {
  EXPECT_FALSE(Read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
}

TEST(LaunchEnvironment, OneRankNeedsNoMeetingPlace) {
  const auto environment = Read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->size, 1);
}

TEST(LaunchEnvironment, TorchrunsOwnStoreAndRestartsAreSeen) {
  const auto environment =
      Read(With(With(kTorchrun, kMeeting),
                {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  ASSERT_TRUE(environment);
  EXPECT_TRUE(environment->is_hosted);
  EXPECT_EQ(environment->restart, 2);
}

struct EnvironmentMistake {
  const char* name;
  Variables variables;
  const char* part;
};

class EnvironmentMistakes : public ::testing::TestWithParam<EnvironmentMistake> {};

TEST_P(EnvironmentMistakes, AreOneSentence) {
  try {
    Read(GetParam().variables);
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().part));
    EXPECT_THAT(error.what(), ::testing::MatchesRegex("[^\n]+\\."));
  }
}

const Variables kWhole = With(kTorchrun, kMeeting);

INSTANTIATE_TEST_SUITE_P(
    All, EnvironmentMistakes,
    ::testing::Values(
        EnvironmentMistake{
            "no_ranks", With(kWhole, {{"WORLD_SIZE", "0"}}),
            "WORLD_SIZE is '0' in the environment; it must be a whole number from 1"},
        EnvironmentMistake{"negative", With(kWhole, {{"RANK", "-1"}}), "RANK is '-1'"},
        EnvironmentMistake{"not_a_number", With(kWhole, {{"RANK", "3x"}}), "RANK is '3x'"},
        EnvironmentMistake{"above", With(kWhole, {{"RANK", "8"}}),
                           "RANK is 8 and WORLD_SIZE is 8 in the environment; ranks are numbered "
                           "from 0 to 7."},
        EnvironmentMistake{"no_size", With(kMeeting, {{"RANK", "0"}}),
                           "RANK is set in the environment and WORLD_SIZE is not"},
        EnvironmentMistake{"no_rank", With(kMeeting, {{"WORLD_SIZE", "2"}}),
                           "WORLD_SIZE is set in the environment and RANK is not"},
        EnvironmentMistake{"no_address", With(kTorchrun, {{"MASTER_PORT", "1"}}),
                           "this is rank 3 of 8, and MASTER_ADDR is not set"},
        EnvironmentMistake{"no_port", With(kTorchrun, {{"MASTER_ADDR", "a"}}),
                           "MASTER_PORT is not set"},
        EnvironmentMistake{"port", With(kWhole, {{"MASTER_PORT", "ssh"}}),
                           "MASTER_PORT is 'ssh' in the environment; it must be a whole number "
                           "from 1 to 65535."},
        EnvironmentMistake{"large_port", With(kWhole, {{"MASTER_PORT", "65536"}}),
                           "MASTER_PORT is '65536'"},
        EnvironmentMistake{"local", With(kWhole, {{"LOCAL_WORLD_SIZE", "9"}}),
                           "LOCAL_WORLD_SIZE is '9'"},
        EnvironmentMistake{"local_rank", With(kWhole, {{"LOCAL_RANK", "2"}}), "LOCAL_RANK is '2'"},
        EnvironmentMistake{"contradiction",
                           With(With(kWhole, kOpenMpi), {{"OMPI_COMM_WORLD_RANK", "4"}}),
                           "RANK and WORLD_SIZE are 3 and 8 in the environment, but "
                           "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE are 4 and 8"}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace sordino
