#include "sordino/data/vocabulary_source.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::string_view kTextPrefix = "text:";
constexpr std::string_view kHashPrefix = "hash:";

}  // namespace

std::string VocabularySource::Words() const {
  if (file.empty()) {
    return fmt::format("none: words are hashed to {} ids, whatever the data are", buckets);
  }
  return is_text ? fmt::format("the words of '{}', which is declared public", file)
                 : fmt::format("the file '{}', declared public", file);
}

std::string VocabularySource::Setting() const {
  if (file.empty()) return fmt::format("{}{}", kHashPrefix, buckets);
  return (is_text ? std::string(kTextPrefix) : "") + file;
}

VocabularySource ParseVocabularySource(const std::string& setting) {
  const std::string_view text = setting;
  VocabularySource source;
  if (text.starts_with(kHashPrefix)) {
    const std::string_view number = text.substr(kHashPrefix.size());
    const char* const last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, source.buckets);
    if (error != std::errc() || end != last || source.buckets < 2 || source.buckets > kMostHashes) {
      throw Error(
          fmt::format("the vocabulary '{}' hashes words to no number of ids; write hash: and a "
                      "number from 2 to "
                      "{}, such as hash:4096.",
                      setting, kMostHashes));
    }
    return source;
  }
  source.is_text = text.starts_with(kTextPrefix);
  source.file = source.is_text ? text.substr(kTextPrefix.size()) : text;
  if (source.file.empty()) {
    throw Error(
        "the vocabulary 'text:' names no file; give one with public text, such as "
        "text:public.txt.");
  }
  return source;
}

Vocabulary MakeVocabulary(const VocabularySource& source) {
  if (source.file.empty()) return Vocabulary::Hashed(source.buckets);
  if (!source.is_text) return ReadVocabulary(source.file);
  Vocabulary vocabulary = VocabularyOf({source.file}, TextOrder::kLabelFirst, kMostWords);
  if (vocabulary.size() <= 2) {
    throw Error(
        fmt::format("'{}' holds no words; give public text, a sentence a line.", source.file));
  }
  return vocabulary;
}

}  // namespace sordino
