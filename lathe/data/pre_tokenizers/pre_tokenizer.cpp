#include "lathe/data/pre_tokenizers/pre_tokenizer.h"

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(const Json& description) {
    const Json* const list = member(description, "pretokenizers");
    if (!list || !list->is_array()) fail("pretokenizers is not a list");
    for (const Json& each : *list)
      if (auto part = make_pre_tokenizer(&each)) parts_.push_back(std::move(part));
  }
  void cut(CutText& text) const override {
    for (const auto& part : parts_) part->cut(text);
  }

 private:
  std::vector<std::unique_ptr<const PreTokenizer>> parts_;
};

const Register pre_tokenizer_sequence{PreTokenizerKind{
    .name = "Sequence",
    .make = [](const Json& description) -> std::unique_ptr<const PreTokenizer> {
      return std::make_unique<PreTokenizerSequence>(description);
    },
}};

}  // namespace

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Json* description) {
  if (!description || description->is_null()) return nullptr;
  const std::string type = described_type(*description);
  const PreTokenizerKind& kind = Registry<PreTokenizerKind>::instance().at(type, "pre-tokenizer");
  return with_place(type, [&] { return kind.make(*description); });
}

}  // namespace lathe::data
