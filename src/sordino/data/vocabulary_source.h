// Where the words of text come from: what --vocabulary says.
//
//   words.txt          a file of public words, one a line
//   text:public.txt    the most frequent words of public text, labelled or not; at most kMostWords
//   hash:4096          no words: each is hashed to one of so many ids
#ifndef SORDINO_DATA_VOCABULARY_SOURCE_H_
#define SORDINO_DATA_VOCABULARY_SOURCE_H_

#include <cstdint>
#include <string>

#include "sordino/data/text_reader.h"

namespace sordino {

inline constexpr std::size_t kMostWords = 20'000;
inline constexpr std::int64_t kMostHashes = std::int64_t{1} << 20;

struct VocabularySource {
  std::string file;          // empty: words are hashed
  bool is_text = false;      // of sentences and not of words
  std::int64_t buckets = 0;  // where words are hashed: 2 to kMostHashes

  std::string Words() const;    // for people
  std::string Setting() const;  // what is read back to the same
};

// Throws Error for "hash:" without a number in its range and "text:" without a file.
VocabularySource ParseVocabularySource(const std::string& setting);

Vocabulary MakeVocabulary(const VocabularySource& source);

}  // namespace sordino

#endif  // SORDINO_DATA_VOCABULARY_SOURCE_H_
