#include "lathe/data/decoders/decoder.h"

#include <charconv>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/metaspace.h"
#include "lathe/data/replace_matches.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace decoder_kinds {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<std::string>;

class Sequence final : public Decoder {
 public:
  explicit Sequence(const Json& description) {
    const Json* const list = member(description, "decoders");
    if (!list || !list->is_array()) fail("decoders is not a list");
    for (const Json& each : *list)
      if (auto part = make_decoder(&each)) parts_.push_back(std::move(part));
  }
  void decode(Tokens& tokens) const override {
    for (const auto& part : parts_) part->decode(tokens);
  }

 private:
  std::vector<std::unique_ptr<const Decoder>> parts_;
};

// Bytes that are not UTF-8 become U+FFFD, since characters may end in a token behind.
class ByteLevel final : public Decoder {
 public:
  explicit ByteLevel(const Json&) {}
  void decode(Tokens& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += read_byte_alphabet(token).value_or(token);
    tokens = {as_utf8(bytes)};
  }
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(const Json& description) : metaspace_(read_metaspace(description)) {}
  void decode(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool drops = i == 0 && metaspace_.prepend != Metaspace::Prepend::Never;
      std::string& token = tokens[i];
      for (std::size_t at = 0; (at = token.find(metaspace_.replacement, at)) != token.npos;) {
        token.replace(at, metaspace_.replacement.size(), drops ? "" : " ");
        if (!drops) ++at;
      }
    }
  }

 private:
  Metaspace metaspace_;
};

// Tokens such as <0xE4>, as many in a row as there are, are one text; where they are not UTF-8,
// one U+FFFD each.
class ByteFallback final : public Decoder {
 public:
  explicit ByteFallback(const Json&) {}
  void decode(Tokens& tokens) const override {
    Tokens result;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_utf8(bytes)) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      unsigned value = 0;
      const bool is_byte = token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
                           std::from_chars(&token[3], &token[5], value, 16).ptr == &token[5];
      if (is_byte) {
        bytes += static_cast<char>(value);
        continue;
      }
      flush();
      result.push_back(std::move(token));
    }
    flush();
    tokens = std::move(result);
  }
};

void replace_all(std::string_view from, std::string_view to, std::string& text) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

class Wordpiece final : public Decoder {
 public:
  explicit Wordpiece(const Json& description) {
    read_member(description, "prefix", prefix_);
    read_member(description, "cleanup", cleans_);
  }
  void decode(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix_) ? token.substr(prefix_.size()) : " " + token;
      if (cleans_) clean(token);
    }
  }

 private:
  // English as it is usually written.
  static void clean(std::string& token) {
    static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kRules) replace_all(from, to, token);
  }

  std::string prefix_ = "##";
  bool cleans_ = true;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(const Json& description) {
    read_member(description, "suffix", suffix_);
    if (suffix_.empty()) fail("suffix is empty");
  }
  void decode(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(suffix_, i + 1 == tokens.size() ? "" : " ", tokens[i]);
  }

 private:
  std::string suffix_ = "</w>";
};

class Fuse final : public Decoder {
 public:
  explicit Fuse(const Json&) {}
  void decode(Tokens& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  }
};

class Replace final : public Decoder {
 public:
  explicit Replace(const Json& description) : pattern_(read_pattern(description, "pattern")) {
    read_member(description, "content", content_);
  }
  void decode(Tokens& tokens) const override {
    for (std::string& token : tokens) replace_matches(*pattern_, content_, token);
  }

 private:
  std::unique_ptr<const TextPattern> pattern_;
  std::string content_;
};

// Takes a character from the beginning and the end of each token, up to so many times.
class Strip final : public Decoder {
 public:
  explicit Strip(const Json& description) {
    read_member(description, "content", content_);
    if (content_.empty()) fail("content is empty");
    read_member(description, "start", most_before_, 0, 1 << 20);
    read_member(description, "stop", most_behind_, 0, 1 << 20);
  }
  void decode(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::int64_t i = 0; i < most_before_ && rest.starts_with(content_); ++i)
        rest.remove_prefix(content_.size());
      for (std::int64_t i = 0; i < most_behind_ && rest.ends_with(content_); ++i)
        rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_ = " ";
  std::int64_t most_before_ = 0, most_behind_ = 0;
};

template <typename Kind>
std::unique_ptr<const Decoder> make(const Json& description) {
  return std::make_unique<Kind>(description);
}

const Register sequence{DecoderKind{.name = "Sequence", .make = make<Sequence>}};
const Register byte_level{DecoderKind{.name = "ByteLevel", .make = make<ByteLevel>}};
const Register metaspace{DecoderKind{.name = "Metaspace", .make = make<MetaspaceDecoder>}};
const Register byte_fallback{DecoderKind{.name = "ByteFallback", .make = make<ByteFallback>}};
const Register wordpiece{DecoderKind{.name = "WordPiece", .make = make<Wordpiece>}};
const Register bpe{DecoderKind{.name = "BPEDecoder", .make = make<BpeDecoder>}};
const Register fuse{DecoderKind{.name = "Fuse", .make = make<Fuse>}};
const Register replace{DecoderKind{.name = "Replace", .make = make<Replace>}};
const Register strip{DecoderKind{.name = "Strip", .make = make<Strip>}};

}  // namespace
}  // namespace decoder_kinds

std::unique_ptr<const Decoder> make_decoder(const nlohmann::json* description) {
  if (!description || description->is_null()) return nullptr;
  const std::string type = described_type(*description);
  const DecoderKind& kind = Registry<DecoderKind>::instance().at(type, "decoder");
  return with_place(type, [&] { return kind.make(*description); });
}

}  // namespace lathe::data
