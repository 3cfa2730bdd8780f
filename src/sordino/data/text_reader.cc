#include "sordino/data/text_reader.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/data/vocabulary_source.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls take(line, number from 1) for every line that is not empty.
template <typename Take>
void ForEachLine(std::string_view text, const Take& take) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) take(line, number);
  }
}

struct TextRecord {
  std::optional<std::string_view> label;  // absent: the line is a bare sentence
  std::string_view sentence;
};

TextRecord SplitLine(std::string_view line, TextOrder order) {
  // Sentences may hold further tabs, which are blanks; the label is at its end of the line.
  const std::size_t tab = order == TextOrder::kLabelFirst ? line.find('\t') : line.rfind('\t');
  if (tab == std::string_view::npos) return {{}, line};
  const std::string_view before = line.substr(0, tab);
  const std::string_view after = line.substr(tab + 1);
  return order == TextOrder::kLabelFirst ? TextRecord{before, after} : TextRecord{after, before};
}

bool IsHeader(const TextRecord& record) {
  return record.label == "label" && record.sentence == "sentence";
}

std::optional<std::int64_t> ClassOf(std::string_view label, const DatasetDeclaration& declaration) {
  const std::vector<std::string>& names = declaration.class_names;
  const auto named = std::find(names.begin(), names.end(), label);
  if (named != names.end()) return named - names.begin();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool whole = error == std::errc() && end == label.data() + label.size();
  if (!whole || number < 0 || number >= declaration.classes) return {};
  return number;
}

class SentenceReader {
 public:
  SentenceReader(const std::string& name, const Vocabulary& vocabulary,
                 const DatasetDeclaration& declaration, const TextOptions& options)
      : name_(name), vocabulary_(vocabulary), declaration_(declaration), options_(options) {}

  void Take(std::string_view line, std::size_t number) {
    const TextRecord record = SplitLine(line, options_.order);
    if (number == 1 && IsHeader(record)) return;
    if (rows_ == 0) bare_ = !record.label && !options_.labelled;
    if (record.label.has_value() == bare_) {
      throw DataError(
          fmt::format("a line of '{}' has {}; every line is {}.", name_, bare_ ? "a tab" : "no tab",
                      bare_ ? "a sentence without a label, as the first one is"
                      : options_.order == TextOrder::kLabelFirst ? "a label, a tab and a sentence"
                                                                 : "a sentence, a tab and a label"),
          fmt::format("it is line {}", number));
    }
    if (!bare_) {
      const std::optional<std::int64_t> label = ClassOf(*record.label, declaration_);
      if (!label) {
        throw DataError(
            fmt::format("a line of '{}' has a label that is not declared; declared are the classes "
                        "0 to {}, by number or by their declared names.",
                        name_, declaration_.classes - 1),
            fmt::format("line {} has the label {}", number, QuotedText(*record.label)));
      }
      labels_.push_back(*label);
    }
    AddTokens(record.sentence);
    ++rows_;
  }

  Dataset Finish() const {
    Dataset data;
    data.declaration = declaration_;
    data.inputs = at::empty({rows_, declaration_.shape[0]}, at::kLong);
    std::copy(tokens_.begin(), tokens_.end(), data.inputs.mutable_data_ptr<std::int64_t>());
    if (bare_) return data;
    data.labels = at::empty({rows_}, at::kLong);
    std::copy(labels_.begin(), labels_.end(), data.labels.mutable_data_ptr<std::int64_t>());
    return data;
  }

 private:
  void AddTokens(std::string_view sentence) {
    const auto length = static_cast<std::size_t>(declaration_.shape[0]);
    const std::size_t begin = tokens_.size();
    for (const std::string& word : Tokens(sentence)) {
      if (tokens_.size() == begin + length) break;
      tokens_.push_back(vocabulary_.Id(word));
    }
    tokens_.resize(begin + length, kPaddingToken);
  }

  const std::string& name_;
  const Vocabulary& vocabulary_;
  const DatasetDeclaration& declaration_;
  const TextOptions& options_;
  bool bare_ = false;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> labels_;
};

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& words, const std::string& name) {
  for (const std::string& word : words) {
    const std::vector<std::string> tokens = Tokens(word);
    if (tokens.size() != 1 || tokens[0] != word) {
      throw DataError(
          fmt::format("'{}' has a line that is not a word; a vocabulary has one word a line, in "
                      "lower case and without blanks.",
                      name),
          fmt::format("the line is {}", QuotedText(word)));
    }
    if (!ids_.emplace(word, size()).second) {
      throw DataError(fmt::format("'{}' has a word twice; give each word once.", name),
                      fmt::format("the word is {}", QuotedText(word)));
    }
  }
}

Vocabulary Vocabulary::Hashed(std::int64_t buckets) {
  Vocabulary vocabulary({}, "");
  vocabulary.buckets_ = buckets;
  return vocabulary;
}

std::int64_t Vocabulary::Id(std::string_view word) const {
  if (buckets_ > 0) return kUnknownToken + 1 + HashedWord(word, buckets_);
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnknownToken : found->second;
}

std::vector<std::string> Tokens(std::string_view sentence) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : sentence) {
    if (IsBlank(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    words.back().push_back(LowerCase(c));
  }
  return words;
}

std::int64_t HashedWord(std::string_view word, std::int64_t buckets) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : word) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(buckets));
}

void AddHashedWords(std::string_view text, std::int64_t buckets, float* to) {
  for (const std::string& word : Tokens(text)) to[HashedWord(word, buckets)] += 1;
  double square = 0;
  for (std::int64_t i = 0; i < buckets; ++i) square += std::pow(double{to[i]}, 2);
  if (square == 0) return;
  const double scale = 1 / std::sqrt(square);
  for (std::int64_t i = 0; i < buckets; ++i) to[i] = static_cast<float>(double{to[i]} * scale);
}

std::string Vocabulary::Text() const {
  std::vector<std::string_view> words(ids_.size());
  for (const auto& [word, id] : ids_)
    words[static_cast<std::size_t>(id - kUnknownToken - 1)] = word;
  std::string text;
  for (const std::string_view word : words) text.append(word).append("\n");
  return text;
}

Vocabulary ReadVocabulary(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = ReadWholeFile(path);
  std::vector<std::string> words;
  ForEachLine(AsText(bytes), [&](std::string_view line, std::size_t) { words.emplace_back(line); });
  if (words.empty()) {
    throw Error(
        fmt::format("'{}' holds no words; a vocabulary has one word a line.", path.string()));
  }
  return {words, path.string()};
}

Vocabulary VocabularyOf(const std::vector<std::filesystem::path>& public_texts, TextOrder order,
                        std::size_t most) {
  std::map<std::string, std::int64_t> counts;
  for (const std::filesystem::path& path : public_texts) {
    const std::vector<std::byte> bytes = ReadWholeFile(path);
    ForEachLine(AsText(bytes), [&](std::string_view line, std::size_t number) {
      const TextRecord record = SplitLine(line, order);
      if (number == 1 && IsHeader(record)) return;
      for (std::string& word : Tokens(record.sentence)) ++counts[std::move(word)];
    });
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  words.reserve(sorted.size());
  for (const auto& [word, count] : sorted) {
    if (words.size() < most) words.push_back(word);
  }
  return {words, "the public text"};
}

Dataset ReadText(const std::filesystem::path& path, const Vocabulary& vocabulary,
                 const DatasetDeclaration& declaration, const TextOptions& options) {
  const std::vector<std::byte> bytes = ReadWholeFile(path);
  return ParseText(AsText(bytes), path.string(), vocabulary, declaration, options);
}

Dataset ParseText(std::string_view text, const std::string& name, const Vocabulary& vocabulary,
                  const DatasetDeclaration& declaration, const TextOptions& options) {
  SentenceReader reader(name, vocabulary, declaration, options);
  ForEachLine(text, [&](std::string_view line, std::size_t number) { reader.Take(line, number); });
  Dataset data = reader.Finish();
  CheckDeclaration(data);
  return data;
}

namespace internal {

const DataFormat& TextFormat() {
  static const DataFormat format = {
      .name = "text",
      .help = "a line: label, tab, sentence",
      .endings = {".txt", ".tsv"},
      .takes = {"classes", "class-names", "vocabulary", "length"},
      .needs = {{"classes", "the classes", "--class-names bad,good"},
                {"vocabulary", "the words", "--vocabulary hash:4096",
                 "or a file of public words, or text:FILE of public text"},
                {"length", "the tokens of an example", "--length 64"}},
      .open = [](const DataRequest& request, DatasetDeclaration& declaration) -> DatasetReader {
        Need(request.length > 0, "tokens of an example", "--length, such as 64");
        Need(!request.vocabulary.empty(), "vocabulary",
             "--vocabulary with a file of public words, one a line, text:FILE with public text, or "
             "hash:4096");
        const VocabularySource from = ParseVocabularySource(request.vocabulary);
        declaration.kind = InputKind::kTokens;
        declaration.shape = {request.length};
        declaration.vocabulary_source = from.Words();
        Vocabulary vocabulary = MakeVocabulary(from);
        declaration.vocabulary = vocabulary.size();
        return [vocabulary = std::move(vocabulary)](const SplitFiles& files,
                                                    const DatasetDeclaration& declared,
                                                    const ReadOptions& options) {
          return ReadText(files.inputs.front(), vocabulary, declared,
                          {.labelled = options.labelled});
        };
      }};
  return format;
}

}  // namespace internal

}  // namespace sordino
