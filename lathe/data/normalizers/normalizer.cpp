#include "lathe/data/normalizers/normalizer.h"

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const Json& description) {
    const Json* const list = member(description, "normalizers");
    if (!list || !list->is_array()) fail("normalizers is not a list");
    for (const Json& each : *list)
      if (auto part = make_normalizer(&each)) parts_.push_back(std::move(part));
  }
  void normalize(NormalizedText& text) const override {
    for (const auto& part : parts_) part->normalize(text);
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> parts_;
};

const Register normalizer_sequence{NormalizerKind{
    .name = "Sequence",
    .make = [](const Json& description) -> std::unique_ptr<const Normalizer> {
      return std::make_unique<NormalizerSequence>(description);
    },
}};

}  // namespace

std::unique_ptr<const Normalizer> make_normalizer(const Json* description) {
  if (!description || description->is_null()) return nullptr;
  const std::string type = described_type(*description);
  const NormalizerKind& kind = Registry<NormalizerKind>::instance().at(type, "normalizer");
  return with_place(type, [&] { return kind.make(*description); });
}

}  // namespace lathe::data
