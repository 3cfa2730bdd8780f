#include "sordino/base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr OutputKind kTable = {"a table", "", "class,"};
const std::string kDatabase = std::string("SQLite format 3\0", 16) + std::string(100, 'x');

std::string ContentOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the refusal says; empty where the file may be written. Nothing is written.
std::string Refusal(const fs::path& file, const OutputKind& kind,
                    const std::vector<fs::path>& inputs = {}, bool force = false) {
  try {
    const OutputFile output({"--out", file, kind, force}, inputs);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

class OutputFileTest : public ::testing::Test {
 protected:
  TestFolder folder_;
};

TEST_F(OutputFileTest, WritesNewFilesAndEarlierOutputOfTheSameKind) {
  for (const char* content : {"<svg>1</svg>", "<svg>2</svg>"}) {
    OutputFile({"--out", folder_ / "a.svg", kSvgPicture}, {}).Write(content);
    EXPECT_EQ(ContentOf(folder_ / "a.svg"), content);
  }
  EXPECT_EQ(Refusal(folder_.Write("empty.svg", ""), kSvgPicture), "");
  EXPECT_EQ(Refusal(folder_.Write("a.png", "\x89PNG\r\n\x1a\nrest"), kPngPicture), "");
  EXPECT_EQ(Refusal(folder_.Write("a.csv", "class,probability\n"), kTable), "");
}

TEST_F(OutputFileTest, RefusesAFileOfAnotherKindUnlessForced) {
  for (const char* content : {"diary", "\x89PNG\r\n\x1a\n", "<sv", " <svg>", "class,"}) {
    const fs::path file = folder_.Write("a.svg", content);
    EXPECT_THAT(Refusal(file, kSvgPicture),
                HasSubstr("exists and is not an SVG picture; name another file, or overwrite it "
                          "with --force."))
        << ::testing::PrintToString(content);
    EXPECT_EQ(Refusal(file, kSvgPicture, {}, true), "") << ::testing::PrintToString(content);
  }
}

TEST_F(OutputFileTest, RefusesAnInputUnderEveryNameEvenIfForced) {
  const fs::path input = folder_.Write("data/in.csv", "class,probability\n");
  fs::create_symlink(input, folder_ / "link.csv");
  fs::create_symlink("link.csv", folder_ / "second.csv");
  fs::create_hard_link(input, folder_ / "hard.csv");
  fs::create_directory_symlink(folder_ / "data", folder_ / "also");
  for (const fs::path& file :
       {input, folder_ / "data/../data/./in.csv", folder_ / "link.csv", folder_ / "second.csv",
        folder_ / "hard.csv", folder_ / "also/in.csv", fs::relative(input)}) {
    for (const bool force : {false, true}) {
      EXPECT_THAT(Refusal(file, kTable, {"-", "", input}, force), HasSubstr("also reads")) << file;
      EXPECT_THAT(Refusal(file, kTable, {folder_ / "link.csv"}, force), HasSubstr("also reads"));
      EXPECT_THAT(Refusal(file, kTable, {folder_ / "data"}, force), HasSubstr("also reads"));
    }
    EXPECT_EQ(Refusal(file, kTable, {folder_ / "other.csv"}), "") << file;
  }
}

TEST_F(OutputFileTest, FindsAnInputDeepInAFolderWhoseLinksLeadInACircle) {
  const fs::path image = folder_.Write("elsewhere/cat/1.png", "\x89PNG\r\n\x1a\n");
  fs::create_directories(folder_ / "images");
  fs::create_directory_symlink(folder_ / "images", folder_ / "images/circle");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "images/animals");
  EXPECT_THAT(Refusal(image, kPngPicture, {folder_ / "images"}, true), HasSubstr("also reads"));
  EXPECT_EQ(Refusal(folder_.Write("2.png", "\x89PNG\r\n\x1a\n"), kPngPicture, {folder_ / "images"}),
            "");
}

TEST_F(OutputFileTest, RefusesTwoOutputsOfTheSameNameBeforeEitherExists) {
  EXPECT_THAT(Refusal(folder_ / "x/../a.svg", kSvgPicture, {folder_ / "a.svg"}),
              HasSubstr("also reads or writes"));
}

TEST_F(OutputFileTest, NeverOverwritesADatabaseOrItsJournal) {
  const fs::path ledger = folder_.Write("L.svg", kDatabase);
  fs::create_symlink(ledger, folder_ / "link.svg");
  fs::create_hard_link(ledger, folder_ / "hard.svg");
  for (const bool force : {false, true}) {
    for (const char* name : {"L.svg", "link.svg", "hard.svg"}) {
      EXPECT_THAT(Refusal(folder_ / name, kSvgPicture, {}, force), HasSubstr("is a ledger"));
    }
    for (const char* name : {"L.svg-journal", "L.svg-wal", "L.svg-shm"}) {
      EXPECT_THAT(Refusal(folder_ / name, kTable, {}, force), HasSubstr("belongs to a ledger"));
    }
  }
  EXPECT_EQ(Refusal(folder_ / "travel-journal", kTable), "");
}

TEST_F(OutputFileTest, NeverOverwritesTheFilesOfARun) {
  folder_.Write("run/config.toml", "x");
  folder_.Write("run/metrics.jsonl", "x");
  const fs::path picture = folder_.Write("run/accuracy-and-epsilon.svg", "<svg>");
  const fs::path checkpoint = folder_.Write("run/checkpoints/1", "x");
  fs::create_symlink(picture, folder_ / "link.svg");
  for (const bool force : {false, true}) {
    for (const fs::path& file : {picture, folder_ / "link.svg"}) {
      EXPECT_THAT(Refusal(file, kSvgPicture, {}, force), HasSubstr("a file of a training run"));
    }
    for (const fs::path& file : {folder_ / "run/config.toml", checkpoint}) {
      EXPECT_THAT(Refusal(file, kTable, {}, force), HasSubstr("a file of a training run"));
    }
  }
  // A run's model that was copied with what is needed to apply it.
  folder_.Write("copy/config.toml", "x");
  EXPECT_THAT(Refusal(folder_.Write("copy/model.safetensors", "x"), kTable, {}, true),
              HasSubstr("a file of a training run"));
  // What a run did not write is like any other file.
  EXPECT_EQ(Refusal(folder_ / "run/new.svg", kSvgPicture), "");
  EXPECT_EQ(Refusal(folder_.Write("run/ledger.svg", "<svg>"), kSvgPicture), "");
  EXPECT_THAT(Refusal(folder_.Write("run/notes.csv", "x"), kTable), HasSubstr("--force"));
  EXPECT_EQ(Refusal(folder_.Write("run/predictions.csv", "class,probability\n"), kTable), "");
}

TEST_F(OutputFileTest, RefusesNamesOfAnotherFormat) {
  EXPECT_THAT(Refusal(folder_ / "x.png", kSvgPicture),
              HasSubstr("what is written is an SVG picture; give a file that ends in .svg."));
  EXPECT_THAT(Refusal(folder_ / "x.png", kSvgPicture, {}, true), HasSubstr("ends in .svg"));
  EXPECT_THAT(Refusal(folder_ / "x", kSvgPicture), HasSubstr("ends in .svg"));
}

TEST_F(OutputFileTest, RefusesWhatIsNotAFileOrCannotBeWrittenOrRead) {
  EXPECT_THAT(Refusal(folder_.path(), kTable, {}, true), HasSubstr("is not a regular file"));
  EXPECT_THAT(Refusal("/dev/null", kTable, {}, true), HasSubstr("is not a regular file"));
  EXPECT_THAT(Refusal(folder_ / "no/such/a.csv", kTable), HasSubstr("cannot be written"));
  EXPECT_THAT(Refusal(folder_.Write("file", "x") / "a.csv", kTable),
              HasSubstr("cannot be written"));
  if (geteuid() == 0) return;  // root may do everything
  const fs::path secret = folder_.Write("secret.csv", "class,");
  fs::permissions(secret, fs::perms::none);
  EXPECT_THAT(Refusal(secret, kTable, {}, true), HasSubstr("cannot be read"));
}

TEST_F(OutputFileTest, WritesThroughALinkAndLeavesOtherNamesOfAFileAsTheyWere) {
  const fs::path target = folder_.Write("target.svg", "<svg>1");
  fs::create_symlink(target, folder_ / "link.svg");
  fs::create_hard_link(target, folder_ / "hard.svg");
  OutputFile({"--out", folder_ / "link.svg", kSvgPicture}, {}).Write("<svg>2");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.svg"));
  EXPECT_EQ(ContentOf(target), "<svg>2");
  EXPECT_EQ(ContentOf(folder_ / "hard.svg"), "<svg>1");
}

}  // namespace
}  // namespace sordino
