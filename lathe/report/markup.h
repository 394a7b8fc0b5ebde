#pragma once

#include <string>
#include <string_view>

namespace lathe::report {

/// Text that is safe between tags and inside quoted attributes of HTML, SVG and Graphviz labels:
/// the five special characters become entities. Bytes that are no UTF-8 and characters that XML
/// forbids become U+FFFD, so that a name out of an untrusted file cannot break a document.
std::string escape_markup(std::string_view text);

/// The same text as valid UTF-8 on one line: whatever could move a cursor, start a new line or
/// reverse the reading direction becomes U+FFFD.
std::string printable_line(std::string_view text);

/// How many characters a valid UTF-8 text has.
std::size_t num_characters(std::string_view text);

/// At most `limit` characters of a valid UTF-8 text, the middle replaced by an ellipsis.
std::string shorten(std::string_view text, std::size_t limit);

}  // namespace lathe::report
