// Unicode's normalization forms.
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/normalizers/normalizer.h"

namespace lathe::data::unicode_form {
namespace {

bool is_ascii(std::string_view text) {
  for (const char byte : text)
    if (static_cast<unsigned char>(byte) >= 0x80) return false;
  return true;
}

// The library's tables are those of Unicode 9; what came later stays as it is.
const icu::UnicodeSet& known_characters() {
  static const icu::UnicodeSet known = [] {
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeSet set(icu::UnicodeString(u"[:age=9.0:]"), status);
    check(U_SUCCESS(status), "ICU to know the ages of characters");
    set.freeze();
    return set;
  }();
  return known;
}

const icu::Normalizer2& whole_form(const icu::Normalizer2* (*instance)(UErrorCode&)) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const form = instance(status);
  check(U_SUCCESS(status) && form != nullptr, "ICU to have its normalization data");
  return *form;
}

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(const icu::Normalizer2* (*instance)(UErrorCode&))
      : form_(whole_form(instance), known_characters()) {}
  void normalize(NormalizedText& text) const override {
    if (is_ascii(text.text)) return;  // no form changes it
    UErrorCode status = U_ZERO_ERROR;
    std::string result;
    icu::StringByteSink<std::string> sink(&result, static_cast<std::int32_t>(text.text.size()));
    form_.normalizeUTF8(0, text.text, sink, nullptr, status);
    if (U_FAILURE(status))
      fail("a text of {} bytes cannot be normalized: {}", text.text.size(), u_errorName(status));
    text.text = std::move(result);
  }

 private:
  icu::FilteredNormalizer2 form_;
};

template <const icu::Normalizer2* (*instance)(UErrorCode&)>
std::unique_ptr<const Normalizer> make(const nlohmann::json&) {
  return std::make_unique<UnicodeForm>(instance);
}

const Register nfc{NormalizerKind{.name = "NFC", .make = make<icu::Normalizer2::getNFCInstance>}};
const Register nfd{NormalizerKind{.name = "NFD", .make = make<icu::Normalizer2::getNFDInstance>}};
const Register nfkc{
    NormalizerKind{.name = "NFKC", .make = make<icu::Normalizer2::getNFKCInstance>}};
const Register nfkd{
    NormalizerKind{.name = "NFKD", .make = make<icu::Normalizer2::getNFKDInstance>}};

}  // namespace
}  // namespace lathe::data::unicode_form
