// Normalizers that put texts in the place of others or in front.
#include "lathe/core/registry.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/normalizers/normalizer.h"
#include "lathe/data/replace_matches.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data::replacing_normalizers {
namespace {

using Json = nlohmann::json;

class Replace final : public Normalizer {
 public:
  explicit Replace(const Json& description) : pattern_(read_pattern(description, "pattern")) {
    read_member(description, "content", content_);
  }
  void normalize(NormalizedText& text) const override {
    replace_matches(*pattern_, content_, text.text);
  }

 private:
  std::unique_ptr<const TextPattern> pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const Json& description) { read_member(description, "prepend", text_); }
  void normalize(NormalizedText& text) const override {
    if (!text.text.empty()) text.text.insert(0, text_);
  }

 private:
  std::string text_;
};

class ByteLevel final : public Normalizer {
 public:
  explicit ByteLevel(const Json&) {}
  void normalize(NormalizedText& text) const override {
    text.text = write_in_byte_alphabet(text.text);
  }
};

template <typename Kind>
std::unique_ptr<const Normalizer> make(const Json& description) {
  return std::make_unique<Kind>(description);
}

const Register replace{NormalizerKind{.name = "Replace", .make = make<Replace>}};
const Register prepend{NormalizerKind{.name = "Prepend", .make = make<Prepend>}};
const Register byte_level{NormalizerKind{.name = "ByteLevel", .make = make<ByteLevel>}};

}  // namespace
}  // namespace lathe::data::replacing_normalizers
