// BERT's normalizer as a step of its own; a whole BERT tokenizer has it folded into its cutter.
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/character_table.h"
#include "lathe/data/normalizers/character_steps.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/unicode_classes.h"

namespace lathe::data::bert_normalizer {
namespace {

using Json = nlohmann::json;

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const Json& description) {
    read_member(description, "clean_text", options_.clean_text);
    read_member(description, "handle_chinese_chars", options_.isolate_chinese_characters);
    read_member(description, "lowercase", options_.lowercase);
    options_.strip_accents = options_.lowercase;
    read_member(description, "strip_accents", options_.strip_accents);
    Json form;
    form["type"] = "NFD";
    decompose_ = make_normalizer(&form);
  }

  void normalize(NormalizedText& text) const override {
    if (options_.clean_text || options_.isolate_chinese_characters)
      replace_characters(text, [this](char32_t c, std::string_view bytes, std::string& result) {
        if (options_.clean_text) {
          if (!is_kept_by_cleaning(c)) return;
          if (is_white_space(c)) {
            result += ' ';
            return;
          }
        }
        const bool is_isolated = options_.isolate_chinese_characters && is_chinese_character(c);
        if (is_isolated) result += ' ';
        result += bytes;
        if (is_isolated) result += ' ';
      });
    if (options_.strip_accents) {
      decompose_->normalize(text);
      replace_characters(text, [](char32_t c, std::string_view bytes, std::string& result) {
        if (!is_nonspacing_mark(c)) result += bytes;
      });
    }
    if (options_.lowercase) replace_characters(text, append_lowercase);
  }

 private:
  NormalizerOptions options_;
  std::unique_ptr<const Normalizer> decompose_;
};

const Register bert_normalizer{NormalizerKind{
    .name = "BertNormalizer",
    .make = [](const Json& description) -> std::unique_ptr<const Normalizer> {
      return std::make_unique<BertNormalizer>(description);
    },
}};

}  // namespace
}  // namespace lathe::data::bert_normalizer
