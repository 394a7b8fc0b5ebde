// The table of replacements that SentencePiece's models carry: a trie of what is replaced, as a
// double array (darts-clone), and behind it the replacements, each ended by a zero byte.
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/base64.h"
#include "lathe/data/grapheme.h"
#include "lathe/data/normalizers/normalizer.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/utf8.h"

namespace lathe::data::precompiled {
namespace {

using Json = nlohmann::json;

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const Json& description) {
    std::string encoded;
    read_member(description, "precompiled_charsmap", encoded);
    const std::optional<std::string> bytes = decode_base64(encoded);
    if (!bytes) fail("precompiled_charsmap is not base64");
    std::uint32_t size = 0;
    if (bytes->size() >= 4) std::memcpy(&size, bytes->data(), 4);
    if (size == 0 || size % 4 != 0 || bytes->size() - 4 < size)
      fail("precompiled_charsmap has {} bytes, and says that {} of them are a trie", bytes->size(),
           size);
    units_.resize(size / 4);
    std::memcpy(units_.data(), bytes->data() + 4, size);
    replacements_ = bytes->substr(4 + std::size_t{size});
    if (!is_utf8(replacements_)) fail("precompiled_charsmap has replacements that are not UTF-8");
    for (unsigned byte = 0; byte < 128; ++byte) {
      const char one = static_cast<char>(byte);
      is_plain_[byte] = !replacement_of({&one, 1});
    }
  }

  // A cluster of less than six bytes is looked up as a whole, of which the shortest beginning that
  // is in the table counts and stands for all of it; other clusters, character by character. Models
  // were trained on texts made so.
  void normalize(NormalizedText& text) const override {
    std::string result;
    result.reserve(text.text.size() + 8);
    const std::string_view all = text.text;
    for (std::size_t at = 0; at < all.size();) {
      const auto byte = static_cast<unsigned char>(all[at]);
      const unsigned char after = at + 1 < all.size() ? static_cast<unsigned char>(all[at + 1]) : 0;
      if (byte < 0x80 && after < 0x80 && is_plain_[byte]) {
        result += all[at++];
        continue;
      }
      const std::size_t length = grapheme_length(all.substr(at));
      append_cluster(all.substr(at, length), result);
      if (result.empty()) text.is_at_start = false;
      at += length;
    }
    text.text = std::move(result);
  }

 private:
  void append_cluster(std::string_view cluster, std::string& result) const {
    if (cluster.size() < 6)
      if (const auto whole = replacement_of(cluster)) {
        result += *whole;
        return;
      }
    for (const char *next = cluster.data(), *end = next + cluster.size(); next != end;) {
      const char* const begin = next;
      next_code_point(next, end);
      const std::string_view character(begin, static_cast<std::size_t>(next - begin));
      result += replacement_of(character).value_or(character);
    }
  }

  // What the shortest beginning of `text` that is in the table becomes. An index outside of the
  // array, which only a damaged table has, ends the search.
  std::optional<std::string_view> replacement_of(std::string_view text) const {
    std::size_t at = offset_of(units_[0]);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return std::nullopt;
      at ^= byte;
      if (at >= units_.size()) return std::nullopt;
      const std::uint32_t unit = units_[at];
      if ((unit & 0x800000FFu) != byte) return std::nullopt;
      at ^= offset_of(unit);
      if ((unit >> 8 & 1) == 0) continue;
      if (at >= units_.size()) return std::nullopt;
      const std::size_t begin = units_[at] & 0x7FFFFFFFu;
      if (begin > replacements_.size()) return std::nullopt;
      const std::size_t end = replacements_.find('\0', begin);
      const std::string_view found =
          std::string_view(replacements_)
              .substr(begin, end == std::string::npos ? end : end - begin);
      // A damaged index may point into the middle of a character.
      if (!is_utf8(found)) return std::nullopt;
      return found;
    }
    return std::nullopt;
  }
  static std::size_t offset_of(std::uint32_t unit) {
    return std::size_t{unit >> 10} << ((unit & 0x200u) >> 6);
  }

  std::vector<std::uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> is_plain_{};
};

const Register precompiled{NormalizerKind{
    .name = "Precompiled",
    .make = [](const Json& description) -> std::unique_ptr<const Normalizer> {
      return std::make_unique<Precompiled>(description);
    },
}};

}  // namespace
}  // namespace lathe::data::precompiled
