#include "sordino/data/vocabulary_source.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

TEST(VocabularySource, IsReadBackFromItsSetting) {
  for (const char* setting : {"words.txt", "text:public.txt", "hash:4096", "/a/b:c.txt"}) {
    EXPECT_EQ(ParseVocabularySource(setting).Setting(), setting);
  }
  EXPECT_EQ(ParseVocabularySource("hash:7").buckets, 7);
  EXPECT_TRUE(ParseVocabularySource("text:a").is_text);
  for (const char* wrong :
       {"hash:", "hash:1", "hash:x", "hash:2000000", "hash:-4", "hash:4x", "text:"}) {
    EXPECT_THROW(ParseVocabularySource(wrong), Error) << wrong;
  }
}

TEST(VocabularySource, TakesTheMostFrequentWordsOfPublicText) {
  const TestFolder folder;
  const std::string file = folder.Write("public.txt", "a b b\n1\tb c a\nzebra\n").string();
  EXPECT_EQ(MakeVocabulary(ParseVocabularySource("text:" + file)).Text(), "b\na\nc\nzebra\n");
  const std::string empty = folder.Write("empty.txt", "\n").string();
  EXPECT_THROW(MakeVocabulary(ParseVocabularySource("text:" + empty)), Error);
  // No more than so many, whatever the text has.
  std::string many;
  for (int i = 0; i < 25'000; ++i) many += "w" + std::to_string(i) + '\n';
  const std::string large = folder.Write("large.txt", many).string();
  EXPECT_EQ(MakeVocabulary(ParseVocabularySource("text:" + large)).size(),
            static_cast<std::int64_t>(kMostWords) + 2);
}

TEST(VocabularySource, HashedWordsDependOnTheWordAlone) {
  const Vocabulary hashed = MakeVocabulary(ParseVocabularySource("hash:50"));
  EXPECT_EQ(hashed.size(), 52);
  EXPECT_EQ(hashed.Text(), "");
  std::set<std::int64_t> ids;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t id = hashed.Id("word" + std::to_string(i));
    EXPECT_GE(id, 2);
    EXPECT_LT(id, 52);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 50U);
  // The published 64-bit FNV-1a of "" and of "a".
  constexpr std::int64_t kPrime = 1'000'003;
  EXPECT_EQ(HashedWord("", kPrime),
            static_cast<std::int64_t>(std::uint64_t{0xcbf29ce484222325} % kPrime));
  EXPECT_EQ(HashedWord("a", kPrime),
            static_cast<std::int64_t>(std::uint64_t{0xaf63dc4c8601ec8c} % kPrime));
}

TEST(VocabularySource, ATextIsAVectorOfNormOne) {
  std::vector<float> shares(16, 0);
  AddHashedWords("one two  TWO\tthree", 16, shares.data());
  double square = 0;
  for (const float share : shares) square += double{share} * double{share};
  EXPECT_NEAR(square, 1, 1e-6);
  EXPECT_GT(shares[static_cast<std::size_t>(HashedWord("two", 16))], 0.5F);
  std::vector<float> none(16, 0);
  AddHashedWords(" \t", 16, none.data());
  EXPECT_EQ(none, std::vector<float>(16, 0));
}

}  // namespace
}  // namespace sordino
