#include "sordino/torch_cli/data_command.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/data/catalog.h"
#include "sordino/data/digits.h"
#include "sordino/data/image_codec.h"
#include "sordino/torch_cli/contact_sheet.h"

namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

CommandOutcome Call(const std::vector<std::string>& arguments) {
  return CallCommand(AddDataCommand, arguments);
}

// Three private rows, two of them sick.
std::string PatientsFile() {
  return WriteTestFile("patients.csv", "name,age,sick\nann,30,yes\nbob,40,no\ncat,50,yes\n");
}

std::vector<std::string> Patients() {
  return {"data", PatientsFile(), "--columns", "age:numeric:0:120", "sick:label:no|yes"};
}

TEST(DataCommand, JsonHasTheDeclarationAndThePublicTestSet) {
  const CommandOutcome outcome = RunProgram({"data", "digits", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("name"), "digits");
  EXPECT_EQ(json.at("kind"), "images");
  EXPECT_EQ(json.at("shape"), Json({1, 28, 28}));
  EXPECT_EQ(json.at("classes"), 10);
  EXPECT_EQ(json.at("records"), 60'000);
  EXPECT_EQ(json.at("test").at("records"), 10'000);
  EXPECT_EQ(json.at("test").at("class_counts"), Json(std::vector<int>(10, 1'000)));
  EXPECT_EQ(json.at("keeps_to_declaration"), true);
  EXPECT_EQ(json.at("files"), Json::array());
}

TEST(DataCommand, ARefusedCellIsToldOnlyOnRequestAndWithoutEscapeCodes) {
  std::vector<std::string> arguments = Patients();
  arguments[1] = WriteTestFile("marked.csv", "age,sick\n30,yes\nPRIVATE-7391\x1B[31m,no\n");
  const CommandOutcome silent = Call(arguments);
  EXPECT_THAT(silent.error, AllOf(HasSubstr("no finite number in the column 'age'"),
                                  Not(HasSubstr("7391")), Not(HasSubstr("ine 3"))));
  EXPECT_EQ(silent.err, "");
  arguments.emplace_back("--show-private");
  const CommandOutcome told = Call(arguments);
  EXPECT_EQ(told.error, silent.error);
  EXPECT_THAT(told.err, AllOf(HasSubstr("line 3 has 'PRIVATE-7391\\x1B[31m'"),
                              HasSubstr("keep it to yourself")));
}

TEST(DataCommand, ShowsNothingThatWasLearnedFromPrivateRecords) {
  std::vector<std::string> arguments = Patients();
  const CommandOutcome text = Call(arguments);
  ASSERT_EQ(text.error, "");
  EXPECT_THAT(text.out, AllOf(HasSubstr("not declared: their number is private"),
                              HasSubstr("private training records"), HasSubstr("age:numeric:0:120"),
                              Not(HasSubstr("ann"))));
  arguments.emplace_back("--json");
  const Json json = Json::parse(Call(arguments).out);
  EXPECT_TRUE(json.at("records").is_null());
  EXPECT_TRUE(json.at("test").is_null());
  EXPECT_EQ(json.at("files").at(0).at("public"), false);
}

TEST(DataCommand, SaysTheSameOfNeighbouringFiles) {
  // Another number of rows and bytes, and other labels.
  const std::vector<std::string> rest = {"--columns", "x:numeric:0:9", "y:label:a|b", "--json"};
  const auto answer = [&](const std::string& content) {
    std::vector<std::string> arguments = {"data", WriteTestFile("same.csv", content)};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return Call(arguments).out;
  };
  const std::string first = answer("x,y\n1,a\n2,b\n");
  EXPECT_EQ(first, answer("x,y\n11111,b\n"));
  EXPECT_EQ(first, answer("x,y\n1,b\n2,a\n2,a\n" + std::string(5000, '\n')));
  EXPECT_THAT(first, HasSubstr("\"bytes\": null"));
}

TEST(DataCommand, TextOfNeighbouringFilesIsTheSameToo) {
  const auto answer = [&](const std::string& content) {
    return Call({"data", WriteTestFile("same.csv", content), "--columns", "x:numeric:0:9",
                 "y:label:a|b"})
        .out;
  };
  const std::string first = answer("x,y\n1,a\n2,b\n");
  EXPECT_EQ(first, answer("x,y\n1,a\n" + std::string(20000, '\n')));
  EXPECT_THAT(first, HasSubstr("private training records"));
}

TEST(DataCommand, WritesASchemaToFillInFromTheHeaderAlone) {
  const TestFolder folder;
  const std::string schema = (folder / "schema.toml").string();
  const CommandOutcome outcome = Call({"data", PatientsFile(), "--declare", schema});
  ASSERT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.out, Not(testing::ContainsRegex("name.*age|ann|[0-9] columns")));
  // The first line may be a record, so that names stand in the schema alone.
  const std::string other = (folder / "other.toml").string();
  EXPECT_EQ(Json::parse(Call({"data", PatientsFile(), "--declare", other, "--json"}).out),
            (Json{{"schema", 1}, {"file", other}, {"columns", nullptr}}));
  std::string text = ReadTestFile(schema);
  EXPECT_THAT(text, AllOf(HasSubstr("name = \"age\""), HasSubstr("name = \"sick\""),
                          Not(HasSubstr("ann")), Not(HasSubstr("30"))));
  // One that was filled in is not lost.
  EXPECT_THAT(Call({"data", PatientsFile(), "--declare", schema}).error, HasSubstr("--force"));
  EXPECT_EQ(ReadTestFile(schema), text);
  const std::string age = "name = \"age\"\nkind = \"ignored\"";
  text.replace(text.find(age), age.size(),
               "name = \"age\"\nkind = \"numeric\"\nlow = 0\nhigh = 120");
  const std::string sick = "name = \"sick\"\nkind = \"ignored\"";
  text.replace(text.find(sick), sick.size(),
               "name = \"sick\"\nkind = \"label\"\nvalues = [\"no\", \"yes\"]");
  folder.Write("schema.toml", text);
  const CommandOutcome declared = Call({"data", PatientsFile(), "--schema", schema});
  EXPECT_EQ(declared.error, "");
  EXPECT_THAT(declared.out, AllOf(HasSubstr("age:numeric:0:120"), HasSubstr("public schema"),
                                  HasSubstr("All records keep to the declaration")));
  EXPECT_THAT(Call({"data", schema, "--format", "csv", "--declare", schema, "--force"}).error,
              HasSubstr("also reads"));
}

TEST(DataCommand, MakesASchemaFromPublicDataWithoutTheTable) {
  const TestFolder folder;
  const std::string schema = (folder / "schema.toml").string();
  const std::string sample = WriteTestFile(
      "public.csv", "seen;age;sick\n01/03/2001;20,5;yes\n02/03/2002;60;no\n04/05/2003;31;no\n");
  const std::vector<std::string> words = {"data",       PatientsFile(), "--declare",      schema,
                                          "--predicts", "sick",         "--public-sample"};
  const auto with = [&words](const std::string& file) {
    std::vector<std::string> all = words;
    all.push_back(file);
    return all;
  };
  const CommandOutcome made = Call(with(sample));
  ASSERT_EQ(made.error, "");
  EXPECT_THAT(made.out,
              AllOf(HasSubstr("left open: seen: dates"), Not(HasSubstr("left open: age"))));
  const std::string text = ReadTestFile(schema);
  std::vector<std::string> in_json = with(sample);
  in_json.insert(in_json.end(), {"--force", "--json"});
  const Json json = Json::parse(Call(in_json).out);
  EXPECT_EQ(json.at("file"), schema);
  EXPECT_EQ(json.at("columns").at(0).at("declaration"), nullptr);
  EXPECT_EQ(json.at("columns").at(1).at("declaration"), "age:numeric:20:60:decimal=,");
  EXPECT_EQ(json.at("columns").at(2).at("declaration"), "sick:label:no|yes");
  EXPECT_EQ(ReadTestFile(schema), text);
  EXPECT_THAT(text,
              AllOf(HasSubstr("decimal = \",\""), HasSubstr("low = 20"), HasSubstr("high = 60"),
                    HasSubstr("values = [\"no\", \"yes\"]"), HasSubstr("delimiter = \";\"")));
  // Neither the table itself nor a copy of it is a public sample.
  EXPECT_THAT(Call(with(PatientsFile())).error, HasSubstr("is the training file"));
  const std::string copy = WriteTestFile("copy.csv", ReadTestFile(PatientsFile()));
  EXPECT_THAT(Call(with(copy)).error, HasSubstr("is a copy of the training file"));
  EXPECT_EQ(ReadTestFile(schema), text);
  const std::string book = WriteTestFile("book.csv", "name,kind,low,high\nage,integer,0,120\n");
  const std::string short_schema = (folder / "short.toml").string();
  EXPECT_EQ(Call({"data", "--declare", short_schema, "--codebook", book}).error, "");
  EXPECT_THAT(ReadTestFile(short_schema), HasSubstr("low = 0\nhigh = 120"));
  EXPECT_THAT(Call({"data", PatientsFile(), "--public-sample", sample}).error,
              HasSubstr("--declare FILE"));
}

TEST(DataCommand, ListsTheFormatsThatItsFlagNames) {
  const CommandOutcome text = Call({"data", "--formats"});
  const CommandOutcome help = RunProgram({"data", "--help-all"});
  const Json json = Json::parse(Call({"data", "--formats", "--json"}).out);
  ASSERT_EQ(json.at("formats").size(), DataFormatNames().size());
  for (const std::string_view name : DataFormatNames()) {
    EXPECT_THAT(text.out, HasSubstr(std::string(name) + " "));
    EXPECT_THAT(help.out, HasSubstr(std::string(name)));
  }
}

TEST(DataCommand, ResizingDeclaresTheShapeOfPictures) {
  const TestFolder folder;
  folder.Write("photos/cat/a.png", "not looked at");
  std::vector<std::string> line = {"data",          (folder / "photos").string(),
                                   "--class-names", "cat,dog",
                                   "--declaration", "--json",
                                   "--resize",      "16x8:crop"};
  const Json json = Json::parse(Call(line).out);
  EXPECT_EQ(json.at("shape"), (std::vector<int>{3, 8, 16}));
  line.insert(line.end(), {"--shape", "1,8,16"});
  EXPECT_EQ(Json::parse(Call(line).out).at("shape"), (std::vector<int>{1, 8, 16}));
  line.back() = "1,16,8";
  EXPECT_THAT(Call(line).error, HasSubstr("makes pictures of the height 8 and the width 16"));
  EXPECT_THAT(Call({"data", "digits", "--resize", "8x8"}).error,
              HasSubstr("--resize was given for 'digits'"));
  EXPECT_THAT(Call({"data", PatientsFile(), "--resize", "8x8"}).error,
              HasSubstr("--resize was given for"));
}

TEST(DataCommand, DeclarationReadsNoRecords) {
  const std::string broken = WriteTestFile("broken.csv", "x,y\nnonsense\n");
  const CommandOutcome outcome = Call(
      {"data", broken, "--declaration", "--json", "--columns", "x:numeric:0:9", "y:label:a|b"});
  ASSERT_EQ(outcome.error, "");
  EXPECT_TRUE(Json::parse(outcome.out).at("keeps_to_declaration").is_null());
}

TEST(DataCommand, PictureShowsTheFirstTestImages) {
  const std::string png = WriteTestFile("digits.png", "");
  ASSERT_EQ(Call({"data", "digits", "--picture", png}).error, "");
  const std::string bytes = ReadTestFile(png);
  ImageOptions grey;
  grey.channels = 1;
  const at::Tensor sheet = DecodeImage(std::as_bytes(std::span(bytes)), png, grey);
  const at::Tensor first = MakeDigits(0, 1).test->inputs[0];
  EXPECT_TRUE(at::equal(sheet.slice(1, 0, 56, 2).slice(2, 0, 56, 2), first));
  const std::string svg = WriteTestFile("digits.svg", "");
  ASSERT_EQ(Call({"data", "digits", "--picture", svg}).error, "");
  EXPECT_THAT(ReadTestFile(svg), AllOf(StartsWith("<svg"), HasSubstr("data:image/png;base64,iVBOR"),
                                       HasSubstr("public test set of digits")));
}

TEST(DataCommand, PictureNeverOverwritesAnImageOfTheDataOrAFileOfAnotherKind) {
  const TestFolder folder;
  const std::string png = "\x89PNG\r\n\x1a\nan image";
  for (const char* name : {"images/no/a.png", "images/yes/b.png"}) folder.Write(name, png);
  const std::string images = (folder / "images").string();
  const std::string image = (folder / "images/yes/b.png").string();
  std::vector<std::string> line = {"data",          images,   "--test",    images,
                                   "--format",      "images", "--shape",   "1,28,28",
                                   "--class-names", "no,yes", "--picture", image};
  for (const bool force : {false, true}) {
    if (force) line.emplace_back("--force");
    EXPECT_THAT(Call(line).error, HasSubstr("also reads")) << force;
    EXPECT_EQ(ReadTestFile(image), png);
  }
  const std::string text = folder.Write("notes.png", "diary").string();
  EXPECT_THAT(Call({"data", "digits", "--picture", text}).error, HasSubstr("--force"));
  EXPECT_EQ(ReadTestFile(text), "diary");
  EXPECT_EQ(Call({"data", "digits", "--picture", text, "--force"}).error, "");
  EXPECT_THAT(ReadTestFile(text), StartsWith("\x89PNG"));
}

TEST(ContactSheet, KeepsColoursAndFillsTheLastRow) {
  Dataset images;
  images.declaration.shape = {3, 2, 2};
  images.inputs = at::arange(21 * 12, at::kLong).to(at::kByte).view({21, 3, 2, 2});
  const at::Tensor sheet = ContactSheet(images);
  ASSERT_EQ(sheet.sizes(), at::IntArrayRef({8, 80, 3}));
  EXPECT_TRUE(at::equal(sheet[0][4], images.inputs[1].select(1, 0).select(1, 0)));
  EXPECT_TRUE(at::equal(sheet[4][0], images.inputs[20].select(1, 0).select(1, 0)));
  EXPECT_EQ(sheet.slice(0, 4, 8).slice(1, 4, 80).max().item<int>(), 0);
}

class DataMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(DataMistakes, GetOneSentence) { ExpectMistake(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    DataCommand, DataMistakes,
    ::testing::Values(Mistake{"data", "no data were named"},
                      Mistake{"data digit", "did you mean 'digits'"},
                      Mistake{"data digits --data digits", "name the data once"},
                      Mistake{"data digits --classes ten", "--classes"},
                      Mistake{"data digits --classes 0", "whole number from 1"},
                      Mistake{"data digits --classes 5", "beyond the declared classes 0 to 4"},
                      Mistake{"data digits --shape 1,28,x", "--shape"},
                      Mistake{"data digits --mean 0.1,0.2 --deviation 1,1", "1 in all"},
                      Mistake{"data digits --picture digits.gif", ".png or .svg"},
                      Mistake{"data digits --picture /nowhere/at/all.png", "cannot be written"},
                      Mistake{"data digits --declaration --picture a.png", "--declaration"},
                      Mistake{"data digits --labels x", "--labels was given"},
                      Mistake{"data digits --declare schema.toml", "is not a table"},
                      Mistake{"data digits --format ixd", "did you mean 'idx'"}));

}  // namespace
}  // namespace sordino
