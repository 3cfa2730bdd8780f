// Text that this program did not write, as a terminal, a page or a picture shows it.
//
// A name, a note or a word of another process may hold characters that move the cursor, change the
// order of what is read or begin a new line, and so show something that was not written. Each of
// these is shown by its code instead:
//
//   \n \r \t \u001b  C0 controls and U+007F
//   \u0085          C1 controls (U+0080 to U+009F)
//   \u2028          line and paragraph separators (U+2028, U+2029)
//   \u202e          bidirectional marks, such as U+200E and U+202A to U+202E
//   \xff            bytes that are not UTF-8
//
// A backslash stays as it is, so that a name cannot be read back from what is shown. The text of a
// JSON object can: there these codes mean the characters.
#ifndef SORDINO_BASE_SHOWN_TEXT_H_
#define SORDINO_BASE_SHOWN_TEXT_H_

#include <string>
#include <string_view>

namespace sordino {

// One line of printable UTF-8. Text without the characters above is returned as it is, as is
// text that this function returned.
std::string ShownText(std::string_view text);
// The same for each of several lines; line breaks stay.
std::string ShownLines(std::string_view text);

}  // namespace sordino

#endif  // SORDINO_BASE_SHOWN_TEXT_H_
