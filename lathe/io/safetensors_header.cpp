#include "lathe/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/core/quote_text.h"

namespace lathe::io {
namespace {

using nlohmann::json;

std::vector<std::string> stored_type_names() {
  std::vector<std::string> names;
  for (auto type = StoredType::Bool; type <= StoredType::U64;
       type = static_cast<StoredType>(static_cast<int>(type) + 1))
    names.emplace_back(name(type));
  return names;
}

// Reads a header as parser events, without a document in between: memory stays in proportion to the
// header, and the text of a number such as 1e3 or -0 is still there to be judged.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  SafetensorsHeader read(std::string_view text) {
    if (text.empty() || text.front() != '{')
      fail("header begins with {}, expected \"{{\"",
           text.empty() ? "nothing" : quote_text(text.substr(0, 1)));
    // The parser takes a NUL for the end of its input and would not look at what follows.
    if (const std::size_t nul = text.find('\0'); nul != text.npos)
      fail("header byte {}: invalid JSON: NUL byte", nul + 1);
    json::sax_parse(text, this);
    return std::move(header_);
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override {
    // Only numbers with a minus sign come here, so zero was written -0.
    unexpected(value == 0 ? "-0" : std::to_string(value));
  }
  bool number_float(double, const std::string& text) override {
    // Integers beyond 64 bits come here too; all keep the text they were written with.
    unexpected(text.size() > 40 ? text.substr(0, 40) + "..." : text);
  }
  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::ShapeItem) return add_size(value);
    if (place_ != Place::OffsetItem) unexpected(std::to_string(value));
    if (num_offsets_ == 0) tensor_.begin = value;
    if (num_offsets_ == 1) tensor_.end = value;
    ++num_offsets_;
    return true;
  }
  bool string(std::string& value) override {
    if (place_ == Place::MetadataValue) {
      header_.metadata[key_] = std::move(value);
      place_ = Place::Metadata;
      return true;
    }
    if (place_ != Place::Dtype) unexpected("a string");
    const std::optional<StoredType> type = parse_stored_type(value);
    if (!type) {
      static constexpr std::size_t kLongestShown = 120;
      value.resize(std::min(value.size(), kLongestShown));
      throw unknown_name("dtype", value, stored_type_names()).at(where());
    }
    tensor_.dtype = *type;
    place_ = Place::Tensor;
    return true;
  }
  bool binary(json::binary_t&) override { return false; }  // text never holds any

  bool start_object(std::size_t) override {
    if (place_ == Place::Start) return go(Place::Top);
    if (place_ == Place::MetadataObject) return go(Place::Metadata);
    if (place_ != Place::TensorObject) unexpected("an object");
    return go(Place::Tensor);
  }
  bool end_object() override {
    if (place_ == Place::Metadata) return go(Place::Top);
    if (place_ == Place::Top) return true;
    if (!has_dtype_) fail_here("has no dtype");
    if (!has_shape_) fail_here("has no shape");
    if (!has_offsets_) fail_here("has no data_offsets");
    header_.tensors.push_back(std::move(tensor_));
    return go(Place::Top);
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::Shape) return go(Place::ShapeItem);
    if (place_ != Place::Offsets) unexpected("an array");
    return go(Place::OffsetItem);
  }
  bool end_array() override {
    if (place_ == Place::OffsetItem && num_offsets_ != 2)
      fail_here(fmt::format("{} numbers, expected [begin, end]", num_offsets_));
    return go(Place::Tensor);
  }

  bool key(std::string& value) override {
    if (place_ == Place::Top) return open_tensor(value);
    key_ = value;
    if (place_ == Place::Metadata) {
      if (header_.metadata.contains(key_))
        fail("header: {}: duplicate key {}", kMetadataKey, quote_text(key_));
      // A map entry takes ten times the bytes of the shortest key.
      if (header_.metadata.size() >= kMaxMetadataKeys)
        fail("header: {}: more than {} keys", kMetadataKey, kMaxMetadataKeys);
      return go(Place::MetadataValue);
    }
    if (value == "dtype") return field(has_dtype_, Place::Dtype);
    if (value == "shape") return field(has_shape_, Place::Shape);
    if (value == "data_offsets") return field(has_offsets_, Place::Offsets);
    fail("tensor {}: unknown key {}, expected dtype, shape and data_offsets",
         quote_text(tensor_.name), quote_text(value));
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    fail("header byte {}: {}", position, describe_json_problem(problem));
  }

 private:
  // Where in the header the next event belongs.
  enum class Place {
    Start,
    Top,
    MetadataObject,
    Metadata,
    MetadataValue,
    TensorObject,
    Tensor,
    Dtype,
    Shape,
    ShapeItem,
    Offsets,
    OffsetItem,
  };

  bool go(Place place) {
    place_ = place;
    return true;
  }

  bool open_tensor(std::string& tensor_name) {
    if (tensor_name == kMetadataKey) {
      if (std::exchange(has_metadata_, true))
        fail("header: duplicate key {}", quote_text(tensor_name));
      return go(Place::MetadataObject);
    }
    if (tensor_name.size() > kMaxTensorName)
      fail("tensor {}: name of {} bytes, expected at most {}", quote_text(tensor_name),
           tensor_name.size(), kMaxTensorName);
    if (header_.tensors.size() >= kMaxTensors)
      fail("header lists more than {} tensors", kMaxTensors);
    tensor_ = TensorInfo();
    tensor_.name = std::move(tensor_name);
    has_dtype_ = has_shape_ = has_offsets_ = false;
    num_offsets_ = 0;
    return go(Place::TensorObject);
  }

  bool field(bool& seen, Place place) {
    if (std::exchange(seen, true))
      fail("tensor {}: duplicate key {}", quote_text(tensor_.name), quote_text(key_));
    return go(place);
  }

  bool add_size(std::uint64_t value) {
    if (tensor_.dims.size() >= kMaxRank) fail_here(fmt::format("more than {} sizes", kMaxRank));
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail_here(fmt::format("{} is too large, expected less than 2^63", value));
    tensor_.dims.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  std::string where() const {
    switch (place_) {
      case Place::Start:
      case Place::Top:
        return "header";
      case Place::MetadataObject:
      case Place::Metadata:
        return fmt::format("header: {}", kMetadataKey);
      case Place::MetadataValue:
        return fmt::format("header: {}: key {}", kMetadataKey, quote_text(key_));
      case Place::TensorObject:
      case Place::Tensor:
        return fmt::format("tensor {}", quote_text(tensor_.name));
      default:
        return fmt::format("tensor {}: {}", quote_text(tensor_.name), key_);
    }
  }

  std::string_view expected() const {
    switch (place_) {
      case Place::MetadataObject:
        return "an object of strings";
      case Place::MetadataValue:
        return "a string";
      case Place::TensorObject:
        return "an object with dtype, shape and data_offsets";
      case Place::Dtype:
        return "a dtype name such as \"F32\"";
      case Place::Shape:
        return "an array of sizes";
      case Place::Offsets:
        return "an array [begin, end]";
      case Place::ShapeItem:
      case Place::OffsetItem:
        return "a whole number from 0 to 2^64 - 1, written in digits";
      default:
        return "an object";
    }
  }

  [[noreturn]] void fail_here(std::string_view problem) const { fail("{}: {}", where(), problem); }
  [[noreturn]] void unexpected(std::string_view found) const {
    fail("{}: found {}, expected {}", where(), found, expected());
  }

  SafetensorsHeader header_;
  Place place_ = Place::Start;
  TensorInfo tensor_;
  std::string key_;
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::size_t num_offsets_ = 0;
};

void refuse_duplicate_names(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  if (const auto twin = std::ranges::adjacent_find(names); twin != names.end())
    fail("header: duplicate key {}", quote_text(*twin));
}

// Every byte of the data belongs to exactly one tensor, so nothing can hide between or behind them.
void check_offsets(const std::vector<TensorInfo>& tensors, std::uint64_t num_data_bytes) {
  std::uint64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != end)
      fail("tensor {}: data_offsets [{}, {}] {}, expected to begin at {}", quote_text(tensor.name),
           tensor.begin, tensor.end,
           tensor.begin > end ? "leave a hole" : "overlap the tensor before", end);
    if (tensor.end < tensor.begin)
      fail("tensor {}: data_offsets [{}, {}] end before they begin", quote_text(tensor.name),
           tensor.begin, tensor.end);
    end = tensor.end;
  }
  for (const TensorInfo& tensor : tensors) {
    with_place(fmt::format("tensor {}", quote_text(tensor.name)), [&] {
      const std::uint64_t num_bytes = num_stored_bytes(tensor.dtype, tensor.dims);
      if (tensor.end - tensor.begin != num_bytes)
        fail("data_offsets [{}, {}] hold {} bytes, but {} of shape [{}] needs {}", tensor.begin,
             tensor.end, tensor.end - tensor.begin, name(tensor.dtype), fmt::join(tensor.dims, ","),
             num_bytes);
    });
  }
  if (end != num_data_bytes)
    fail("tensors take {} bytes, but {} bytes of data follow the header", end, num_data_bytes);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t num_data_bytes) {
  SafetensorsHeader header = HeaderReader().read(text);
  refuse_duplicate_names(header.tensors);
  // Empty tensors share their offset with the next one and come before it.
  std::ranges::sort(header.tensors, {}, [](const TensorInfo& tensor) {
    return std::tuple<std::uint64_t, std::uint64_t, std::string_view>(tensor.begin, tensor.end,
                                                                      tensor.name);
  });
  check_offsets(header.tensors, num_data_bytes);
  return header;
}

std::string print_safetensors_header(const SafetensorsHeader& header) {
  const auto text_of = [](const std::string& text) {
    try {
      return json(text).dump();
    } catch (const json::exception&) {
      fail("{} is not UTF-8", quote_text(text));
    }
  };
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += fmt::format("\"{}\":{{", kMetadataKey);
    for (const auto& [key, value] : header.metadata)
      text += fmt::format("{}:{},", text_of(key), text_of(value));
    text.back() = '}';
    text += ',';
  }
  for (const TensorInfo& tensor : header.tensors)
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                        text_of(tensor.name), name(tensor.dtype), fmt::join(tensor.dims, ","),
                        tensor.begin, tensor.end);
  if (text.back() == ',') text.pop_back();
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data after it is aligned
  return text;
}

}  // namespace lathe::io
