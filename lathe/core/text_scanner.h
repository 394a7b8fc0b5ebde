#pragma once

#include <string>
#include <string_view>

#include "lathe/core/attribute.h"
#include "lathe/core/type.h"

namespace lathe {

/// Reads the pieces of the text form from one line: names, types, attributes, punctuation.
///
/// Shared by everything written in that notation: graphs, patterns, pipelines of passes.
class TextScanner {
 public:
  explicit TextScanner(std::string_view text) : text_(text) {}

  bool at_end();
  /// Skips blanks and takes `symbol` if it comes next.
  bool take(std::string_view symbol);
  void expect(std::string_view symbol);
  bool next_is(std::string_view symbol);
  /// Whether a name comes next, quoted or not.
  bool next_is_name();
  /// A name: letters, digits and _ . / : - , or anything in quotes.
  std::string name();
  std::int64_t integer();
  Type type();
  Attribute attribute();
  /// `{a=1, b="x"}`; nothing when no brace comes next.
  Attributes attributes();
  /// `a=1, b="x"` up to what is no longer an assignment.
  Attributes assignments();
  /// What is left, for an error message.
  std::string rest();

 private:
  void skip_blanks();
  std::string quoted();
  std::string_view text_;
  std::size_t position_ = 0;
};

/// The name as the text form writes it: bare when it can be, quoted otherwise.
std::string name_text(std::string_view name);

}  // namespace lathe
