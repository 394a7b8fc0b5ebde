// The model WordPiece where it stands behind other steps than BERT's.
#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/longest_pieces.h"
#include "lathe/data/token_models/token_model.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data::wordpiece_model {
namespace {

using Json = nlohmann::json;

class WordpieceModel final : public TokenModel {
 public:
  WordpieceModel(const std::vector<std::string>& tokens, const std::string& prefix,
                 const std::string& unknown, std::int64_t most_characters)
      : pieces_(tokens, prefix), most_characters_(most_characters) {
    const auto found = std::find(tokens.begin(), tokens.end(), unknown);
    if (found == tokens.end())
      fail("has no token {}, which stands for what has none", quote_text(unknown));
    unknown_id_ = static_cast<std::int32_t>(found - tokens.begin());
  }
  void append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    const std::size_t num_ids = ids.size();
    const auto num_characters =
        std::count_if(piece.begin(), piece.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
    if (num_characters <= most_characters_ && pieces_.append_ids(piece.data(), piece.size(), ids))
      return;
    ids.resize(num_ids);
    ids.push_back(unknown_id_);
  }
  std::int32_t unknown_id() const override { return unknown_id_; }

 private:
  LongestPieces pieces_;
  std::int64_t most_characters_;
  std::int32_t unknown_id_ = -1;
};

LoadedModel load(const Json& model, bool& reads_bytes) {
  reads_bytes = false;
  const Json* const vocabulary = member(model, "vocab");
  LoadedModel loaded{.model = {}, .tokens = tokens_by_id(vocabulary ? *vocabulary : Json())};
  std::string unknown = "[UNK]", prefix = "##";
  read_member(model, "unk_token", unknown);
  read_member(model, "continuing_subword_prefix", prefix);
  std::int64_t most_characters = 100;
  read_member(model, "max_input_chars_per_word", most_characters, 0, 1'000'000);
  loaded.model = std::make_unique<WordpieceModel>(loaded.tokens, prefix, unknown, most_characters);
  return loaded;
}

const Register wordpiece{TokenModelKind{.name = "WordPiece", .load = load}};

}  // namespace
}  // namespace lathe::data::wordpiece_model
