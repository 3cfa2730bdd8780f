#include "sordino/data/catalog.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/data/digits.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

DataRequest Named(const std::string& source) {
  DataRequest request;
  request.source = source;
  return request;
}

std::string Complaint(const DataRequest& request) {
  try {
    OpenData(request);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), EndsWith("."));
    return error.what();
  }
  return "";
}

// SORDINO_DATA as a test wants it, put back afterwards.
class DataFolder {
 public:
  explicit DataFolder(const char* value) {
    if (const char* old = std::getenv("SORDINO_DATA")) old_ = old;
    if (value == nullptr) {
      unsetenv("SORDINO_DATA");
    } else {
      setenv("SORDINO_DATA", value, 1);
    }
  }
  ~DataFolder() {
    if (old_) {
      setenv("SORDINO_DATA", old_->c_str(), 1);
    } else {
      unsetenv("SORDINO_DATA");
    }
  }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

 private:
  std::optional<std::string> old_;
};

class CatalogFiles : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  static std::string ReadBytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  DataRequest Table(const std::string& rows) const {
    DataRequest request = Named(Write("table.csv", "id,x,y\n" + rows));
    request.columns.declared = {"x:numeric:0:10", "y:label:a|b"};
    return request;
  }

  // Two images of 2 x 2 with labels.
  DataRequest Idx() const {
    using std::string_literals::operator""s;
    DataRequest request = Named(Write("some-images-idx3-ubyte",
                                      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"
                                      "12345678"s));
    request.labels = Write("some-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\0\x01"s);
    request.shape = {1, 2, 2};
    request.classes = 2;
    return request;
  }

  const TestFolder folder_;
};

TEST(Catalog, DigitsNeedNoFiles) {
  const DataFolder none(nullptr);
  const DataSplits splits = OpenData(Named("digits"));
  EXPECT_EQ(splits.train.size(), 60'000);
  EXPECT_EQ(splits.test->size(), 10'000);
  EXPECT_TRUE(FilesOf(Named("digits")).empty());
  EXPECT_EQ(FormatOf(Named("digits")), "made by the program");
  EXPECT_EQ(OpenForPrediction(Named("digits")).size(), 10'000);
}

TEST(Catalog, DeclaredConstantsReplaceThoseOfTheCatalogue) {
  DataRequest request = Named("digits");
  request.mean = {0.25};
  request.deviation = {0.75};
  const DatasetDeclaration declaration = Declare(request);
  EXPECT_THAT(declaration.normalisation.mean, ElementsAre(0.25));
  EXPECT_EQ(declaration.normalisation.source, "declared");
}

TEST(Catalog, UnknownNamesGetTheNearestKnownOne) {
  EXPECT_THAT(Complaint(Named("mnits")),
              AllOf(HasSubstr("neither a known dataset nor a file"), HasSubstr("'mnist'?")));
  EXPECT_THAT(Complaint(Named("")), HasSubstr("no data were named"));
}

TEST(Catalog, MissingFilesSayWhatToSet) {
  {
    const DataFolder none(nullptr);
    EXPECT_THAT(Complaint(Named("mnist")),
                AllOf(HasSubstr("SORDINO_DATA"), HasSubstr("not set"), HasSubstr("digits")));
  }
  const TestFolder folder;
  const DataFolder empty(folder.path().c_str());
  EXPECT_THAT(Complaint(Named("sst2")),
              AllOf(HasSubstr("sst2/train.tsv' is missing"), HasSubstr("SORDINO_DATA")));
}

TEST_F(CatalogFiles, ReadsIdxFilesThatWereDeclared) {
  DataRequest request = Idx();
  const DataSplits splits = OpenData(request);
  EXPECT_EQ(splits.train.size(), 2);
  EXPECT_EQ(splits.train.inputs[1][0][1][1].item<int>(), '8');
  EXPECT_FALSE(splits.test.has_value());
  EXPECT_EQ(splits.train.declaration.records, 0);
  request.test = request.source;
  request.test_labels = request.labels;
  EXPECT_EQ(OpenData(request).test->size(), 2);
  request.labels.clear();
  EXPECT_FALSE(OpenForPrediction(request).labels.defined());
  EXPECT_THAT(Complaint(request), HasSubstr("has no labels"));
}

TEST_F(CatalogFiles, WhatWasNotDeclaredIsAskedFor) {
  DataRequest request = Idx();
  request.shape.clear();
  EXPECT_THAT(Complaint(request), HasSubstr("shape of an example must be declared"));
  request = Idx();
  request.classes = 0;
  EXPECT_THAT(Complaint(request), HasSubstr("number of classes must be declared"));
  request = Table("1,2,a\n");
  request.columns.declared.clear();
  EXPECT_THAT(Complaint(request), HasSubstr("columns of a table must be declared"));
  request.columns.declared = {"x:numeric:0:10"};
  EXPECT_THAT(Complaint(request), HasSubstr("a label column"));
  request = Named(Write("s.txt", "1\tgood\n"));
  request.classes = 2;
  EXPECT_THAT(Complaint(request), HasSubstr("--length"));
  request.length = 4;
  EXPECT_THAT(Complaint(request), HasSubstr("vocabulary must be declared"));
  EXPECT_THAT(Complaint(Named(Write("some.dat", "x"))), HasSubstr("does not show its format"));
  request.format = "txt";
  EXPECT_THAT(Complaint(request),
              AllOf(HasSubstr("format is 'txt', which is not known"), HasSubstr("text")));
}

TEST_F(CatalogFiles, WhatHasNoUseIsRefused) {
  DataRequest request = Idx();
  request.columns.declared = {"x:numeric:0:1"};
  EXPECT_THAT(Complaint(request), HasSubstr("--columns was given"));
  request = Named("digits");
  request.labels = "labels";
  EXPECT_THAT(Complaint(request), HasSubstr("--labels was given"));
  request = Table("1,2,a\n");
  request.classes = 2;
  EXPECT_THAT(Complaint(request), HasSubstr("--classes was given"));
  request = Table("1,2,a\n");
  request.labels = request.source;
  EXPECT_THAT(Complaint(request), HasSubstr("--labels was given"));
}

TEST_F(CatalogFiles, FormatsAreRecognisedByNameFolderContentAndWhatWasDeclared) {
  const auto format = [](DataRequest request) {
    request.classes = 2;
    return FormatOf(request);
  };
  DataRequest idx = Idx();
  EXPECT_EQ(format(idx), "idx");
  idx.source = Write("images.dat", ReadBytes(idx.source));
  EXPECT_EQ(format(idx), "idx");
  DataRequest npy = Named(Write("array", "\x93NUMPY and more"));
  npy.shape = {3};
  EXPECT_EQ(format(npy), "npy");
  fs::create_directory(folder_ / "pictures");
  DataRequest images = Named((folder_ / "pictures").string());
  images.shape = {1, 2, 2};
  EXPECT_EQ(format(images), "images");
  EXPECT_EQ(FormatOf(Table("")), "csv");
  DataRequest tabs = Table("");
  tabs.source = Write("table.tsv.gz", "");
  EXPECT_EQ(FormatOf(tabs), "tsv");
  // Tables and sentences share an ending; only sentences have a vocabulary.
  DataRequest text = Named(tabs.source);
  text.vocabulary = Write("words.txt", "good\n");
  text.length = 3;
  EXPECT_EQ(format(text), "text");
}

// Every format is told apart by its name and says what it is; the settings that it takes exist.
TEST(Catalog, FormatsDescribeThemselves) {
  const std::vector<DataFormatFacts> formats = KnownDataFormats();
  std::set<std::string_view> names;
  for (const DataFormatFacts& format : formats) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_FALSE(format.help.empty() || format.help.ends_with('.')) << format.name;
    EXPECT_FALSE(format.takes.empty()) << format.name;
  }
  EXPECT_EQ(formats.size(), DataFormatNames().size());
}

TEST(Catalog, FormatsAreThoseOfTheDocs) {
  std::string table = "| format | files | settings |\n|---|---|---|\n";
  for (const DataFormatFacts& format : KnownDataFormats()) {
    table += fmt::format("| `{}` | {} | `{}` |\n", format.name, format.help,
                         fmt::join(format.takes, "` `"));
  }
  std::ifstream in(SORDINO_DOCS "/data.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(page, HasSubstr("\n" + table + "\n"));
}

TEST_F(CatalogFiles, ASchemaDeclaresWhatColumnsAndFlagsDo) {
  const std::string rows = "u;2;a\nu;?;b\nv;4;\"a\"\n";
  DataRequest request = Named(Write("table.csv", rows));
  request.schema = Write("schema.toml", R"([table]
header = false
delimiter = ";"
missing = ["?"]
rows-per-user = 1
[[column]]
name = "2"
kind = "numeric"
low = 0
high = 10
[[column]]
name = "3"
kind = "label"
values = ["a", "b"]
[[column]]
name = "1"
kind = "user"
)");
  const Dataset train = OpenData(request).train;
  EXPECT_EQ(train.size(), 2);
  const Dataset all = OpenForPrediction(request);
  EXPECT_TRUE(at::equal(all.inputs.view({-1}), at::tensor({0.2F, 0.5F, 0.4F})));
  // Written out, the same request needs no file.
  const DataRequest whole = WithSchema(request);
  EXPECT_EQ(whole.schema, "");
  EXPECT_THAT(whole.columns.declared, ElementsAre("2:numeric:0:10", "3:label:a|b", "1:user"));
  EXPECT_EQ(OpenData(whole).train.size(), 2);
  EXPECT_THAT(FilesOf(request).back().role, "schema");

  request.columns.declared = {"2:numeric:0:10"};
  EXPECT_THAT(Complaint(request), HasSubstr("both --schema and --columns"));
  request = Idx();
  request.schema = whole.source;
  EXPECT_THAT(Complaint(request), HasSubstr("--schema was given"));
}

TEST_F(CatalogFiles, APatternDeclaresTheColumnsThatTheFirstLineNames) {
  std::string header = "sick";
  std::string row = "no";
  for (int i = 1; i <= 200; ++i) {
    header += ",lab_" + std::to_string(i);
    row += "," + std::to_string(2 * i);
  }
  DataRequest request;
  request.source = Write("wide.csv", header + ",note\n" + row + ",x\n");
  request.schema = Write("schema.toml",
                         "[[column]]\nnames = 'lab_*'\nkind = 'numeric'\nlow = 0\nhigh = 500\n"
                         "[[column]]\nname = 'sick'\nkind = 'label'\nvalues = ['no', 'yes']\n");
  const DataRequest whole = WithSchema(request);
  ASSERT_EQ(whole.columns.declared.size(), 201U);
  EXPECT_EQ(whole.columns.declared[0], "sick:label:no|yes");
  EXPECT_EQ(whole.columns.declared[200], "lab_200:numeric:0:500");
  EXPECT_EQ(Declare(whole).shape, std::vector<std::int64_t>{200});
  EXPECT_EQ(OpenData(whole).train.inputs[0][199].item<float>(), 0.8F);
  request.source = Write("other.csv", "sick,x\nno,1\n");
  EXPECT_THAT(Complaint(request), HasSubstr("no column of the table has a name like 'lab_*'"));
  // A first line that is a record is not taken for names, which a run would write down.
  request.source = Write("headless.csv", "no,lab_7,3\nyes,lab_8,4\n");
  EXPECT_THAT(Complaint(request), HasSubstr("--no-header"));
}

TEST_F(CatalogFiles, ATableIsReadInItsDeclaredEncoding) {
  DataRequest request = Named(Write("table.csv",
                                    "Stra\xDF"
                                    "e,y\nZ\xFCrich,a\nBern,b\n"));
  request.columns.declared = {"Straße:categorical:Bern|Zürich", "y:label:a|b"};
  EXPECT_THAT(Complaint(request), HasSubstr("is not valid utf-8"));
  request.encoding = "latin-1";
  EXPECT_TRUE(
      at::equal(OpenData(request).train.inputs, at::tensor({0.F, 1.F, 1.F, 0.F}).view({2, 2})));
  request.columns.declared.clear();
  EXPECT_THAT(SchemaTemplateOf(request),
              AllOf(HasSubstr("encoding = \"latin-1\""), HasSubstr("name = \"Straße\"")));
  request.schema = Write("schema.toml", R"([table]
encoding = "windows-1252"
[[column]]
name = "Straße"
kind = "categorical"
values = ["Bern", "Zürich"]
[[column]]
name = "y"
kind = "label"
values = ["a", "b"]
)");
  request.encoding = "";
  EXPECT_EQ(WithSchema(request).encoding, "windows-1252");
  EXPECT_EQ(OpenData(request).train.size(), 2);
}

TEST_F(CatalogFiles, TheTemplateOfASchemaHoldsNamesAndNothingOfTheRows) {
  const DataRequest one = Named(Write("one.csv", " name ,age\nann,30\n"));
  const DataRequest other = Named(Write("other.csv", "name,age\n" + std::string(999, 'x')));
  EXPECT_EQ(SchemaTemplateOf(one), SchemaTemplateOf(other));
  EXPECT_THAT(SchemaTemplateOf(one), AllOf(HasSubstr("name = \"name\""), HasSubstr("\"age\""),
                                           Not(HasSubstr("ann")), Not(HasSubstr("30"))));
  DataRequest bare = Named(Write("bare.csv", "ann;30\n"));
  bare.no_header = true;
  bare.delimiter = ";";
  EXPECT_THAT(SchemaTemplateOf(bare), AllOf(HasSubstr("name = \"2\""), Not(HasSubstr("ann"))));
  EXPECT_THROW(SchemaTemplateOf(Idx()), Error);
  EXPECT_THROW(SchemaTemplateOf(Named("digits")), Error);
}

TEST_F(CatalogFiles, TheDeclaredNumberOfRecordsIsComparedWithNothing) {
  DataRequest request = Table("1,2,a\n2,3,b\n3,4,a\n");
  for (const std::int64_t records : {2, 3, 5}) {
    request.records = records;
    EXPECT_EQ(OpenData(request).train.size(), 3);
  }
}

TEST_F(CatalogFiles, RowsOfAUserAreCappedForTrainingOnly) {
  DataRequest request = Table("u,2,a\nu,3,b\nv,4,a\n");
  request.columns.declared.push_back("id:user");
  EXPECT_THAT(Complaint(request), HasSubstr("--rows-per-user"));
  request.rows_per_user = 1;
  EXPECT_EQ(OpenData(request).train.size(), 2);
  EXPECT_EQ(OpenData(request).train.declaration.rows_per_user, 1);
  EXPECT_EQ(OpenForPrediction(request).size(), 3);
  request.columns.declared.pop_back();
  EXPECT_THAT(Complaint(request), HasSubstr("without a user column"));
}

TEST_F(CatalogFiles, ReadsSentencesWithAVocabularyThatWasGiven) {
  DataRequest request = Named(Write("s.tsv", "pos\tgood film\nneg\tbad film\n"));
  request.vocabulary = Write("words.txt", "good\nbad\n");
  request.length = 3;
  request.class_names = {"neg", "pos"};
  const Dataset train = OpenData(request).train;
  EXPECT_EQ(train.declaration.vocabulary, 4);
  EXPECT_THAT(train.declaration.vocabulary_source, HasSubstr("words.txt"));
  EXPECT_TRUE(at::equal(train.inputs, at::tensor({2, 1, 0, 3, 1, 0}, at::kLong).view({2, 3})));
  EXPECT_TRUE(at::equal(train.labels, at::tensor({1, 0}, at::kLong)));
  ASSERT_EQ(FilesOf(request).size(), 2U);
  EXPECT_FALSE(FilesOf(request)[0].is_public);
  EXPECT_TRUE(FilesOf(request)[1].is_public);
}

TEST_F(CatalogFiles, ReadsAFolderOfCifarBatches) {
  const std::string row(3072, 'p');
  Write("data_batch_1.bin", '\1' + row + '\2' + row);
  Write("data_batch_2.bin", '\3' + row);
  Write("test_batch.bin", '\4' + row);
  DataRequest request = Named(folder_.path().string());
  request.classes = 10;
  const DataSplits splits = OpenData(request);
  EXPECT_TRUE(at::equal(splits.train.labels, at::tensor({1, 2, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(splits.test->labels, at::tensor({4}, at::kLong)));
}

// Whether the folder of SORDINO_DATA has this dataset.
bool Has(const std::string& name) {
  const char* const folder = std::getenv("SORDINO_DATA");
  return folder != nullptr && std::filesystem::exists(std::filesystem::path(folder) / name);
}

TEST(RealData, MnistHasItsPublishedSizes) {
  if (!Has("mnist")) GTEST_SKIP() << "SORDINO_DATA has no mnist";
  const DataSplits splits = OpenData(Named("mnist"));
  EXPECT_EQ(splits.train.size(), 60'000);
  EXPECT_EQ(splits.test->size(), 10'000);
  EXPECT_THAT(splits.train.declaration.normalisation.mean, ElementsAre(0.5));
  // Of the first test image, a 7.
  EXPECT_EQ(splits.test->labels[0].item<int>(), 7);
  EXPECT_EQ(FilesOf(Named("mnist")).size(), 4U);
}

TEST(RealData, FashionMnistIsBalanced) {
  if (!Has("fashion-mnist")) GTEST_SKIP() << "SORDINO_DATA has no fashion-mnist";
  const DataSplits splits = OpenData(Named("fashion-mnist"));
  EXPECT_TRUE(at::bincount(splits.train.labels).eq(6'000).all().item<bool>());
  EXPECT_TRUE(at::bincount(splits.test->labels).eq(1'000).all().item<bool>());
}

TEST(RealData, CifarTestBatchIsWhatPredictionsAreMadeFor) {
  if (!Has("cifar-10/test_batch.bin.xz")) GTEST_SKIP() << "SORDINO_DATA has no cifar-10";
  const Dataset data = OpenForPrediction(Named("cifar-10"));
  EXPECT_EQ(data.size(), 10'000);
  EXPECT_THAT(data.declaration.shape, ElementsAre(3, 32, 32));
}

TEST(RealData, SentencesUseAVocabularyOfPublicText) {
  if (!Has("sst2")) GTEST_SKIP() << "SORDINO_DATA has no sst2";
  const DataSplits splits = OpenData(Named("sst2"));
  EXPECT_EQ(splits.train.size(), 67'349);
  EXPECT_EQ(splits.test->size(), 1'821);
  const DatasetDeclaration& declaration = splits.train.declaration;
  EXPECT_THAT(declaration.vocabulary_source, HasSubstr("declared public"));
  // Every word of a public sentence is known; some of the private ones are not.
  EXPECT_FALSE(splits.test->inputs.eq(1).any().item<bool>());
  EXPECT_TRUE(splits.train.inputs.eq(1).any().item<bool>());
  EXPECT_LT(splits.train.inputs.max().item<std::int64_t>(), declaration.vocabulary);
}

}  // namespace
}  // namespace sordino
