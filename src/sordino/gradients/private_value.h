// A value that depends on private data and was not noised: it has no formatter.
//
// Training loss, clipped fraction, counts of examples: printing one of them releases it, and
// nothing is charged for that. A PrivateValue cannot be streamed, formatted, compared, or
// converted; whoever reads it says why by the name of the call, so every place where a private
// value leaves its wrapper is found by searching for "Reveal".
#ifndef SORDINO_GRADIENTS_PRIVATE_VALUE_H_
#define SORDINO_GRADIENTS_PRIVATE_VALUE_H_

#include <iosfwd>
#include <utility>

namespace sordino {

template <typename T>
class PrivateValue {
 public:
  PrivateValue() = default;
  explicit PrivateValue(T value) : value_(std::move(value)) {}

  // For a mechanism that adds noise and is charged.
  const T& RevealForNoise() const { return value_; }
  // For tests, and for audits where the data are public or the canaries are one's own.
  const T& RevealForAudit() const { return value_; }

 private:
  T value_{};
};

// Deleted rather than left out: the message then names this line, and a conversion or a generic
// operator<< of another library cannot step in.
template <typename Char, typename Traits, typename T>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>&,
                                             const PrivateValue<T>&) = delete;

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_PRIVATE_VALUE_H_
