#include "sordino/data/text_reader.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const Vocabulary& Words() {
  static const Vocabulary words({"good", "bad", "film"}, "words.txt");
  return words;
}

DatasetDeclaration Declaration() {
  DatasetDeclaration declaration;
  declaration.name = "text";
  declaration.kind = InputKind::kTokens;
  declaration.shape = {4};
  declaration.classes = 2;
  declaration.class_names = {"negative", "positive"};
  declaration.vocabulary = Words().size();
  return declaration;
}

Dataset TextOf(std::string_view text, const TextOptions& options = {}) {
  return ParseText(text, "text.tsv", Words(), Declaration(), options);
}

std::string TextComplaint(std::string_view text, const TextOptions& options = {}) {
  try {
    TextOf(text, options);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), EndsWith("."));
    return WithDetail(error);
  }
  return "";
}

std::vector<std::int64_t> TokenIds(const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous();
  return {values.const_data_ptr<std::int64_t>(),
          values.const_data_ptr<std::int64_t>() + values.numel()};
}

TEST(TextReader, TokensAreLowerCaseWordsBetweenBlanks) {
  EXPECT_THAT(Tokens("  A Good\tfilm , isn't it?\r"),
              ElementsAre("a", "good", "film", ",", "isn't", "it?"));
  EXPECT_THAT(Tokens("CR\xC3\x88ME"), ElementsAre("cr\xC3\x88me"));
  EXPECT_THAT(Tokens(" "), ElementsAre());
}

TEST(TextReader, PadsAndCutsSentencesToTheDeclaredLength) {
  const Dataset data = TextOf("label\tsentence\n1\tA GOOD film\n0\tbad bad bad bad film\n1\t\n");
  EXPECT_THAT(TokenIds(data.inputs[0]), ElementsAre(1, 2, 4, 0));
  EXPECT_THAT(TokenIds(data.inputs[1]), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(TokenIds(data.inputs[2]), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(TokenIds(data.labels), ElementsAre(1, 0, 1));
}

TEST(TextReader, ReadsLabelsByNameAndEitherOrder) {
  EXPECT_THAT(TokenIds(TextOf("positive\tgood\nnegative\tbad\r\n").labels), ElementsAre(1, 0));
  TextOptions turned;
  turned.order = TextOrder::kSentenceFirst;
  const Dataset data = TextOf("sentence\tlabel\ngood\tfilm\t1\nbad\tnegative\n", turned);
  EXPECT_THAT(TokenIds(data.labels), ElementsAre(1, 0));
  EXPECT_THAT(TokenIds(data.inputs[0]), ElementsAre(2, 4, 0, 0));
}

TEST(TextReader, BareSentencesHaveNoLabels) {
  TextOptions unlabelled;
  unlabelled.labelled = false;
  const Dataset data = TextOf("good film\nbad\n", unlabelled);
  EXPECT_FALSE(data.labels.defined());
  EXPECT_EQ(data.inputs.size(0), 2);
  EXPECT_TRUE(TextOf("1\tgood\n", unlabelled).labels.defined());
  EXPECT_THAT(TextComplaint("good\n1\tbad\n", unlabelled), HasSubstr("line 2"));
}

TEST(TextReader, MalformedLinesGetOneSentenceWithTheirNumber) {
  EXPECT_THAT(TextComplaint("1\tgood\nbad film\n"),
              AllOf(HasSubstr("(it is line 2)"), HasSubstr("no tab")));
  for (const char* label : {"2", "-1", "", "good", "1.0", "99999999999999999999"}) {
    EXPECT_THAT(TextComplaint(std::string("1\tgood\n") + label + "\tbad\n"),
                AllOf(HasSubstr("line 2"), HasSubstr("classes 0 to 1")))
        << label;
  }
}

TEST(Vocabulary, GivesIdsInTheOrderOfTheFile) {
  const TestFolder folder;
  const Vocabulary words = ReadVocabulary(folder.Write("words.txt", "good\nbad\n\nfilm\n"));
  EXPECT_EQ(words.size(), 5);
  EXPECT_EQ(words.Id("good"), 2);
  EXPECT_EQ(words.Id("film"), 4);
  EXPECT_EQ(words.Id("Good"), kUnknownToken);
}

TEST(Vocabulary, RefusesWhatIsNoListOfWords) {
  const auto complaint = [](const std::string& content) -> std::string {
    const TestFolder folder;
    try {
      ReadVocabulary(folder.Write("bad.txt", content));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), EndsWith("."));
      return WithDetail(error);
    }
    return "";
  };
  EXPECT_THAT(complaint("good\ngood\n"), HasSubstr("(the word is 'good')"));
  EXPECT_THAT(complaint("good film\n"), HasSubstr("one word a line"));
  EXPECT_THAT(complaint("Good\n"), HasSubstr("lower case"));
  EXPECT_THAT(complaint("\n\n"), HasSubstr("holds no words"));
}

TEST(Vocabulary, OfPublicTextHasTheMostFrequentWordsFirst) {
  const TestFolder folder;
  const Vocabulary words =
      VocabularyOf({folder.Write("public.tsv", "label\tsentence\n1\tb a B\n0\tc a b\n")});
  EXPECT_EQ(words.size(), 5);
  EXPECT_EQ(words.Id("b"), 2);
  EXPECT_EQ(words.Id("a"), 3);
  EXPECT_EQ(words.Id("c"), 4);
  EXPECT_EQ(words.Id("sentence"), kUnknownToken);
}

}  // namespace
}  // namespace sordino
