#include "lathe/data/metaspace.h"

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

Metaspace read_metaspace(const nlohmann::json& description) {
  Metaspace metaspace;
  read_member(description, "replacement", metaspace.replacement);
  const char* next = metaspace.replacement.data();
  const char* const end = next + metaspace.replacement.size();
  if (next != end) next_code_point(next, end);
  if (metaspace.replacement.empty() || next != end)
    fail("replacement is {}, expected one character", quote_text(metaspace.replacement));
  // Older files say only whether.
  bool adds_space = true;
  read_member(description, "add_prefix_space", adds_space);
  if (!adds_space) metaspace.prepend = Metaspace::Prepend::Never;
  std::string scheme;
  read_member(description, "prepend_scheme", scheme);
  if (scheme == "never") {
    metaspace.prepend = Metaspace::Prepend::Never;
  } else if (scheme == "first") {
    metaspace.prepend = Metaspace::Prepend::First;
  } else if (scheme == "always") {
    metaspace.prepend = Metaspace::Prepend::Always;
  } else if (!scheme.empty()) {
    throw unknown_name("prepend_scheme", plain_name(scheme), {"always", "first", "never"});
  }
  read_member(description, "split", metaspace.is_split);
  return metaspace;
}

}  // namespace lathe::data
