#include "sordino/distributed/join_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGoodSecret = "0123456789abcdef0123456789abcdef";

std::string ReadSecret(const std::map<std::string, std::string>& variables) {
  return ReadJoinSecret([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string RefusalOfSecret(const std::map<std::string, std::string>& variables) {
  try {
    ReadSecret(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "it was accepted";
}

class JoinSecretFile : public ::testing::Test {
 protected:
  std::string File(const std::string& text, int mode) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), static_cast<mode_t>(mode));
    return path_;
  }

  TestFolder folder_;
  std::string path_ = (folder_.path() / "secret").string();
};

TEST(JoinSecret, IsNewAndLongEachTime) {
  EXPECT_EQ(NewJoinSecret().size(), 64U);
  EXPECT_NE(NewJoinSecret(), NewJoinSecret());
}

TEST(JoinSecret, IsReadFromTheEnvironment) {
  EXPECT_EQ(ReadSecret({{"SORDINO_JOIN_SECRET", kGoodSecret}}), kGoodSecret);
}

TEST(JoinSecret, ThatIsMissingSaysHowToMakeOne) {
  for (const std::map<std::string, std::string>& none :
       {std::map<std::string, std::string>{}, {{"SORDINO_JOIN_SECRET", ""}}}) {
    EXPECT_THAT(RefusalOfSecret(none),
                AllOf(HasSubstr("SORDINO_JOIN_SECRET is not set"),
                      HasSubstr("export SORDINO_JOIN_SECRET=$(openssl rand -hex 32)")));
  }
}

TEST(JoinSecret, ThatCanBeGuessedIsRefusedAndNotShown) {
  EXPECT_THAT(
      RefusalOfSecret({{"SORDINO_JOIN_SECRET", "hunter2"}}),
      AllOf(HasSubstr("has 7 characters; give one of 32 to 4096"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(RefusalOfSecret({{"SORDINO_JOIN_SECRET", std::string(5000, 'x')}}),
              HasSubstr("5000 characters"));
}

TEST(JoinSecret, IsOne) {
  EXPECT_THAT(RefusalOfSecret(
                  {{"SORDINO_JOIN_SECRET", kGoodSecret}, {"SORDINO_JOIN_SECRET_FILE", "/a/file"}}),
              HasSubstr("are both set"));
}

TEST_F(JoinSecretFile, IsReadWithoutItsLastLineFeed) {
  EXPECT_EQ(ReadSecret({{"SORDINO_JOIN_SECRET_FILE", File(kGoodSecret + "\n", 0600)}}),
            kGoodSecret);
  EXPECT_EQ(ReadSecret({{"SORDINO_JOIN_SECRET_FILE", File(kGoodSecret, 0400)}}), kGoodSecret);
}

TEST_F(JoinSecretFile, ThatOthersCanReadIsRefused) {
  for (const int mode : {0644, 0640, 0604, 0620, 0602}) {
    EXPECT_THAT(RefusalOfSecret({{"SORDINO_JOIN_SECRET_FILE", File(kGoodSecret, mode)}}),
                AllOf(HasSubstr("only its owner can read"), Not(HasSubstr(kGoodSecret))))
        << mode;
  }
  EXPECT_THAT(RefusalOfSecret({{"SORDINO_JOIN_SECRET_FILE", folder_.path().string()}}),
              HasSubstr("must be a regular file"));
  EXPECT_THAT(RefusalOfSecret({{"SORDINO_JOIN_SECRET_FILE", "/there/is/none"}}),
              HasSubstr("cannot be opened"));
}

TEST(JoinSecret, ADescriptorThatIsNotOneIsRefused) {
  for (const char* number : {"x", "-1", "99999"}) {
    EXPECT_THAT(RefusalOfSecret({{"SORDINO_JOIN_DESCRIPTOR", number}}),
                HasSubstr("SORDINO_JOIN_DESCRIPTOR"));
  }
}

}  // namespace
}  // namespace sordino
