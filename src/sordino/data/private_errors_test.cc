// What errors about private files say: nothing that is in the files.
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sordino/data/batch_loader.h"
#include "sordino/data/catalog.h"
#include "sordino/data/cifar_reader.h"
#include "sordino/data/idx_reader.h"
#include "sordino/data/image_folder.h"
#include "sordino/data/npy_reader.h"
#include "sordino/data/table_reader.h"
#include "sordino/data/testing/image_test_support.h"
#include "sordino/data/text_reader.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// As a cell it also steers a terminal and forges a line.
constexpr const char* kMarker = "PRIVATE-7391";
constexpr const char* kHostileCell = "PRIVATE-7391\x1B[31m\rsordino: fine";

struct Broken {
  const char* what;
  std::function<void()> read;
  std::set<std::string> declared;  // numbers that were declared or are constants of the program
};

std::vector<std::string> NumbersIn(const std::string& text) {
  std::vector<std::string> numbers;
  bool inside = false;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit && !inside) numbers.emplace_back();
    if (digit) numbers.back().push_back(c);
    inside = digit;
  }
  return numbers;
}

bool IsPlain(const std::string& text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

// `given` is the name of the file or folder that the user wrote.
void ExpectNothingOfTheFile(const Broken& broken, const std::string& given = "") {
  SCOPED_TRACE(broken.what);
  try {
    broken.read();
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    std::string sentence = error.what();
    if (const std::size_t at = sentence.find(given); at != std::string::npos) {
      sentence.erase(at, given.size());
    }
    EXPECT_THAT(sentence, Not(HasSubstr(kMarker)));
    EXPECT_TRUE(IsPlain(sentence)) << sentence;
    for (const std::string& number : NumbersIn(sentence)) {
      EXPECT_TRUE(broken.declared.contains(number)) << number << " in: " << sentence;
    }
    if (const auto* about_data = dynamic_cast<const DataError*>(&error)) {
      EXPECT_TRUE(IsPlain(about_data->detail())) << about_data->detail();
      EXPECT_THAT(about_data->detail(), Not(testing::IsEmpty()));
    }
  }
}

DatasetDeclaration Images(std::vector<std::int64_t> shape) {
  DatasetDeclaration declaration;
  declaration.name = "pictures";
  declaration.shape = std::move(shape);
  declaration.classes = 2;
  return declaration;
}

void ReadTableText(const std::string& text, std::int64_t rows_per_user = 0) {
  TableOptions options;
  options.columns = ParseColumns(
      {"PRIVATE-739:numeric:0:120", "city:categorical:Bern|Basel", "sick:label:no|yes", "id:user"});
  options.rows_per_user = rows_per_user;
  DatasetDeclaration declaration;
  DeclareColumns(options.columns, declaration);
  ParseTable(text, "table.csv", declaration, options);
}

TEST(PrivateErrors, TablesShowNoCellLineOrCount) {
  const std::string start =
      "PRIVATE-739,city,sick,id\n"
      "41,Bern,no,ann\n";
  const std::string cell = kHostileCell;
  const std::set<std::string> name = {"739"};
  for (const Broken& broken : std::vector<Broken>{
           {"number", [&] { ReadTableText(start + cell + ",Bern,no,ann\n"); }, name},
           {"infinity", [&] { ReadTableText(start + "1e999,Bern,no,ann\n"); }, name},
           {"empty", [&] { ReadTableText(start + ",Bern,no,ann\n"); }, name},
           {"category", [&] { ReadTableText(fmt::format("{}1,{},no,ann\n", start, cell)); }, name},
           {"label", [&] { ReadTableText(fmt::format("{}1,Bern,{},ann\n", start, cell)); }, name},
           {"user", [&] { ReadTableText(start + "1,Bern,no,\n", 1); }, name},
           {"fields", [&] { ReadTableText(fmt::format("{}1,Bern,no,ann,{}\n", start, cell)); },
            name},
           {"quotes",
            [&] { ReadTableText(fmt::format("{}\"{}\"x,Bern,no,a\n", start, cell)); },
            {}},
           {"no header", [&] { ReadTableText(std::string(kMarker) + ",Bern,no,ann\n"); }, name},
           {"twice", [&] { ReadTableText("PRIVATE-739,city,PRIVATE-739\n"); }, name},
       }) {
    ExpectNothingOfTheFile(broken);
  }
}

TEST(PrivateErrors, TextShowsNoLabelLineOrWord) {
  const TestFolder folder;
  DatasetDeclaration declaration;
  declaration.kind = InputKind::kTokens;
  declaration.shape = {4};
  declaration.classes = 2;
  declaration.vocabulary = 3;
  const Vocabulary words({"good"}, "words.txt");
  const auto read = [&](const std::string& text, bool labelled = true) {
    TextOptions options;
    options.labelled = labelled;
    ParseText(text, "text.tsv", words, declaration, options);
  };
  const std::string cell = kHostileCell;
  const auto vocabulary = folder.Write("words", cell + " two words\n");
  const auto twice = folder.Write("twice", "private-7391\nprivate-7391\n");
  const std::set<std::string> classes = {"0", "1"};
  ExpectNothingOfTheFile({"label", [&] { read("1\tgood\n" + cell + "\tgood\n"); }, classes});
  ExpectNothingOfTheFile({"number", [&] { read("1\tgood\n7391\tgood\n"); }, classes});
  ExpectNothingOfTheFile({"no tab", [&] { read("1\tgood\n" + cell + "\n"); }, {}});
  ExpectNothingOfTheFile({"a tab", [&] { read("good\n" + cell + "\tgood\n", false); }, {}});
  ExpectNothingOfTheFile({"vocabulary", [&] { ReadVocabulary(vocabulary); }, {}},
                         vocabulary.string());
  ExpectNothingOfTheFile({"twice", [&] { ReadVocabulary(twice); }, {}}, twice.string());
}

Bytes Npy(const std::string& header, std::size_t values, int major = 1) {
  const Bytes start =
      ToBytes({0x93, 'N', 'U', 'M', 'P', 'Y', major, 0, static_cast<int>(header.size()), 0});
  return Joined(Joined(start, ToBytes(header)), Bytes(values));
}

TEST(PrivateErrors, ArraysShowNoShapeTypeOrKey) {
  const auto npy = [](const Bytes& bytes) { return [bytes] { ParseNpy(bytes, "a.npy"); }; };
  const auto idx = [](const Bytes& bytes) { return [bytes] { ParseIdx(bytes, "a.idx"); }; };
  const std::string tail = ", 'fortran_order': False, 'shape': (73, 91)}";
  const std::set<std::string> types = {"1", "2", "4", "8"};
  const std::set<std::string> versions = {"0", "1", "2", "3"};
  const std::set<std::string> codes = {"0", "08", "09"};
  for (const Broken& broken : std::vector<Broken>{
           {"key", npy(Npy("{'PRIVATE-7391': 1}", 0)), {}},
           {"type", npy(Npy("{'descr': 'PRIVATE-7391'" + tail, 0)), types},
           {"shape", npy(Npy("{'descr': '<f4'" + tail, 77)), {}},
           {"syntax", npy(Npy("{'descr' 'PRIVATE-7391'", 0)), {}},
           {"open", npy(Npy("{PRIVATE-7391", 0)), {}},
           {"version", npy(Npy("{}", 0, 9)), versions},
           {"IDX type", idx(ToBytes({0, 0, 0x73, 1})), codes},
           {"IDX dimensions", idx(ToBytes({0, 0, 8, 91})), {"1", "8"}},
           {"IDX shape", idx(ToBytes({0, 0, 8, 1, 0, 0, 0, 91, 5})), {}},
       }) {
    ExpectNothingOfTheFile(broken);
  }
}

TEST(PrivateErrors, ArraysThatAreNotAsDeclaredShowNoCount) {
  const auto make = [](const at::Tensor& inputs, const at::Tensor& labels) {
    return [=] { DatasetFromArrays(inputs, labels, Images({1, 2, 2}), "x.npy", "y.npy"); };
  };
  const at::Tensor records = at::zeros({73, 1, 2, 2}, at::kByte);
  const std::set<std::string> shape = {"1", "2"};
  for (const Broken& broken : std::vector<Broken>{
           {"shape", make(at::zeros({73, 9, 9}, at::kByte), {}), shape},
           {"labels", make(records, at::zeros({91}, at::kLong)), {}},
           {"label shape", make(records, at::zeros({73, 91}, at::kLong)), {}},
           {"label value", make(records, at::full({73}, 91, at::kLong)), {"0", "1"}},
           {"dataset inputs",
            [] {
              CheckDeclaration({Images({1, 2, 2}), at::zeros({73, 3}, at::kByte), {}});
            },
            shape},
           {"dataset labels",
            [&] {
              CheckDeclaration({Images({1, 2, 2}), records, at::zeros({91}, at::kLong)});
            },
            {}},
           {"range",
            [&] {
              LoadRange({Images({1, 2, 2}), records, at::zeros({73}, at::kLong)}, 0, 91, c10::kCPU);
            },
            {}},
       }) {
    ExpectNothingOfTheFile(broken);
  }
}

TEST(PrivateErrors, CifarShowsNoRowLabelOrSize) {
  Bytes row(3073);
  ExpectNothingOfTheFile({"size", [] { ParseCifar(Bytes(7391), "b.bin", 10); }, {"1", "3072"}});
  row[0] = std::byte{200};
  ExpectNothingOfTheFile({"label", [&] { ParseCifar(row, "b.bin", 10); }, {"10", "0", "9"}});
}

TEST(PrivateErrors, FoldersShowNoNameOrSizeOfAFile) {
  const Bytes grey = EncodePng(7, 9, {8, PNG_COLOR_TYPE_GRAY}, std::vector<unsigned char>(63));
  Bytes damaged = grey;
  damaged[12] = std::byte{'P'};  // the first chunk is not IHDR, and libpng names chunks
  const std::string name = std::string(kHostileCell) + ".png";
  const auto check = [&](const char* what, const fs::path& file, const Bytes& content,
                         const std::set<std::string>& declared) {
    const TestFolder folder;
    folder.Write(file, content);
    ExpectNothingOfTheFile({what,
                            [&] {
                              DatasetDeclaration declaration = Images({1, 2, 2});
                              declaration.class_names = {"cat", "dog"};
                              ReadImageFolder(folder.path(), declaration);
                            },
                            declared},
                           folder.path().string());
  };
  check("damaged", "cat/" + name, damaged, {});
  check("kind", "cat/" + name, ToBytes(kMarker), {});
  check("gzip", "cat/" + name, ToBytes({0x1F, 0x8B, 73, 91}), {});
  check("ending", std::string("cat/") + kHostileCell, grey, {});
  check("class", std::string(kHostileCell) + "/a.png", grey, {"2"});
  check("no folder", name, grey, {});
  const TestFolder folder;
  fs::create_directories(folder.path() / "cat");
  for (const char* target : {"nowhere", "/"}) {
    const fs::path link = folder.path() / "cat" / name;
    fs::create_symlink(target, link);
    DatasetDeclaration declaration = Images({1, 2, 2});
    declaration.class_names = {"cat", "dog"};
    ExpectNothingOfTheFile({target, [&] { ReadImageFolder(folder.path(), declaration); }, {}},
                           folder.path().string());
    fs::remove(link);
  }
}

TEST(PrivateErrors, TheDetailHasTheCellInPlainCharacters) {
  try {
    ReadTableText(std::string("PRIVATE-739,city,sick,id\n") + kHostileCell + ",Bern,no,ann\n");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.detail(), "line 2 has 'PRIVATE-7391\\x1B[31m\\x0Dsordino: fine'");
  }
  EXPECT_EQ(QuotedText("it's \\ caf\xC3\xA9"), "'it\\x27s \\x5C caf\\xC3\\xA9'");
  EXPECT_EQ(QuotedText(std::string(50, 'x')), "'" + std::string(40, 'x') + "...'");
}

}  // namespace
}  // namespace sordino
