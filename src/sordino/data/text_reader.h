// Labelled sentences as token ids.
//
// A file has one record a line: label, tab, sentence (or the other way round), plain or compressed.
// A first line "label<tab>sentence" is a header. A label is the name of a class, or its number from
// 0. A sentence is put in lower case (ASCII letters only) and split at blanks; nothing else is done
// to it. Ids: 0 padding, 1 a word that the vocabulary does not have, then the words in their order.
// Sentences are cut after, or padded to, the declared length.
//
// The vocabulary is public. It is a file of words, or is built from text that was declared public,
// or has no words at all and hashes them (vocabulary_source.h); it never comes from the private
// sentences.
#ifndef SORDINO_DATA_TEXT_READER_H_
#define SORDINO_DATA_TEXT_READER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sordino/data/dataset.h"

namespace sordino {

inline constexpr std::int64_t kPaddingToken = 0;
inline constexpr std::int64_t kUnknownToken = 1;

class Vocabulary {
 public:
  // Each word once, without blanks, in lower case; else Error. `name` stands in its sentence.
  Vocabulary(const std::vector<std::string>& words, const std::string& name);
  // Without words: each is hashed to one of so many ids.
  static Vocabulary Hashed(std::int64_t buckets);

  std::int64_t Id(std::string_view word) const;
  // Number of ids, padding and unknown included.
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()) + buckets_ + 2; }
  // One word a line, in the order of their ids: ReadVocabulary reads the same vocabulary from it.
  std::string Text() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
  std::int64_t buckets_ = 0;  // 0: by the words
};

enum class TextOrder : std::uint8_t { kLabelFirst, kSentenceFirst };

std::vector<std::string> Tokens(std::string_view sentence);

// A fixed number of a word from 0 to buckets - 1, the same on every machine (64-bit FNV-1a).
// Different words may share one. It depends on the word alone, so it costs no privacy and needs no
// vocabulary.
std::int64_t HashedWord(std::string_view word, std::int64_t buckets);
// Adds the shares of the hashed words of a text to `buckets` numbers that are 0: how often each
// bucket occurs, scaled to a vector of norm 1. Nothing where there is no word.
void AddHashedWords(std::string_view text, std::int64_t buckets, float* to);

// One word a line; blank lines are skipped.
Vocabulary ReadVocabulary(const std::filesystem::path& path);
// All words of labelled or bare sentences that are public, the most frequent first (ties by their
// bytes); at most so many.
Vocabulary VocabularyOf(const std::vector<std::filesystem::path>& public_texts,
                        TextOrder order = TextOrder::kLabelFirst,
                        std::size_t most = std::numeric_limits<std::size_t>::max());

struct TextOptions {
  TextOrder order = TextOrder::kLabelFirst;
  // Without it lines may be bare sentences (all of them, or none), and the labels are undefined.
  bool labelled = true;
};

// The shape of the declaration holds the length.
Dataset ReadText(const std::filesystem::path& path, const Vocabulary& vocabulary,
                 const DatasetDeclaration& declaration, const TextOptions& options = {});
// The same for text in memory; `name` stands in the sentences.
Dataset ParseText(std::string_view text, const std::string& name, const Vocabulary& vocabulary,
                  const DatasetDeclaration& declaration, const TextOptions& options = {});

}  // namespace sordino

#endif  // SORDINO_DATA_TEXT_READER_H_
