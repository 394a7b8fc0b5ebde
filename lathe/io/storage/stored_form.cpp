#include "lathe/io/storage/stored_form.h"

#include <array>
#include <set>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/core/quote_text.h"
#include "lathe/core/tensor.h"
#include "lathe/io/safetensors_header.h"
#include "lathe/numerics/bit_stream.h"

namespace lathe::io {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kOrders{"twos-complement", "sign-magnitude"};

// Reads the keys of an object one by one, and sees in the end that there were no others.
class KeyReader {
 public:
  explicit KeyReader(const json& object) : object_(object) {
    if (!object.is_object()) fail("found {}, expected an object", object.type_name());
  }

  bool has(const char* key) const { return object_.contains(key); }
  const json& at(const char* key) {
    const auto found = object_.find(key);
    if (found == object_.end()) fail("has no {}", key);
    read_.insert(key);
    return *found;
  }
  std::string text(const char* key) {
    const json& value = at(key);
    if (!value.is_string()) fail("{}: found {}, expected a text", key, value.type_name());
    return value.get<std::string>();
  }
  std::int64_t number(const char* key, std::uint64_t most = kMostNumber) {
    return whole(key, at(key), most);
  }
  std::uint32_t word(const char* key) {
    return static_cast<std::uint32_t>(number(key, 0xffffffff));
  }
  std::vector<std::int64_t> numbers(const char* key) {
    const json& list = at(key);
    if (!list.is_array()) fail("{}: found {}, expected an array", key, list.type_name());
    std::vector<std::int64_t> result;
    for (const json& item : list) result.push_back(whole(key, item, kMostNumber));
    return result;
  }
  void refuse_others() const {
    for (const auto& [key, value] : object_.items())
      if (!read_.contains(key)) fail("unknown key {}", quote_text(key));
  }

 private:
  static constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 48;

  static std::int64_t whole(const char* key, const json& value, std::uint64_t most) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
      fail("{}: found {}, expected a whole number up to {}", key,
           value.is_number() ? value.dump() : value.type_name(), most);
    return value.get<std::int64_t>();
  }

  const json& object_;
  std::set<std::string, std::less<>> read_;
};

BitForm read_bits(const json& object) {
  KeyReader keys(object);
  BitForm form;
  if (keys.has("block")) {
    const std::vector<std::int64_t> block = keys.numbers("block");
    if (block.size() != 2) fail("block: found {} sizes, expected 2", block.size());
    form.block_rows = block[0];
    form.block_columns = block[1];
  }
  if (keys.has("group")) {
    form.group = static_cast<int>(keys.number("group", 64));
    form.kept = static_cast<int>(keys.number("kept", 64));
  }
  if (keys.has("coded")) form.coded_bytes = keys.number("coded");
  keys.refuse_others();
  return form;
}

SymbolOrder read_order(const std::string& text) {
  for (std::size_t i = 0; i < kOrders.size(); ++i)
    if (kOrders[i] == text) return static_cast<SymbolOrder>(i);
  fail("order {} is unknown, expected one of {}", quote_text(text), fmt::join(kOrders, ", "));
}

StoredForm read_form(const json& object) {
  KeyReader keys(object);
  StoredForm form;
  const std::string type_name = keys.text("dtype");
  const std::optional<StoredType> type = parse_stored_type(type_name);
  const std::optional<DType> dtype = type ? dtype_of(*type) : std::nullopt;
  if (!dtype) fail("dtype {} cannot be computed with", quote_text(type_name));
  form.dtype = *dtype;
  form.dims = keys.numbers("shape");
  if (form.dims.size() > kMaxRank)
    fail("shape of rank {}, expected at most {}", form.dims.size(), kMaxRank);
  if (keys.has("width")) {
    form.width = static_cast<int>(keys.number("width", 32));
    form.columns = keys.number("columns");
    if (form.width < 1 || form.columns < 1)
      fail("rows of {} codes of {} bits: expected at least 1", form.columns, form.width);
  }
  if (keys.has("mask")) {
    form.mask = keys.text("mask");
    if (keys.has("transposed")) form.is_transposed = keys.number("transposed", 1) == 1;
  }
  if (keys.has("bits")) form.bits = read_bits(keys.at("bits"));
  if (form.bits && !form.mask.empty()) fail("both mask and bits say which symbols are there");
  if (keys.has("fill")) form.fill = keys.word("fill");
  if (keys.has("value")) form.value = keys.word("value");
  if (keys.has("coded")) form.coded = keys.numbers("coded");
  if (form.value && !form.coded.empty()) fail("both value and coded say what the symbols are");
  if (keys.has("order")) form.order = read_order(keys.text("order"));
  form.checksum = keys.word("crc32");
  keys.refuse_others();
  return form;
}

json to_json(const BitForm& bits) {
  json object = json::object();
  if (bits.block_rows != 1 || bits.block_columns != 1)
    object["block"] = {bits.block_rows, bits.block_columns};
  if (bits.group > 0) {
    object["group"] = bits.group;
    object["kept"] = bits.kept;
  }
  if (bits.coded_bytes > 0) object["coded"] = bits.coded_bytes;
  return object;
}

json to_json(const StoredForm& form) {
  json object{
      {"dtype", name(stored_type_of(form.dtype))}, {"shape", form.dims}, {"crc32", form.checksum}};
  if (form.width > 0) {
    object["width"] = form.width;
    object["columns"] = form.columns;
  }
  if (!form.mask.empty()) object["mask"] = form.mask;
  if (form.is_transposed) object["transposed"] = 1;
  if (form.bits) object["bits"] = to_json(*form.bits);
  if (form.fill != 0) object["fill"] = form.fill;
  if (form.value) object["value"] = *form.value;
  if (!form.coded.empty()) object["coded"] = form.coded;
  if (form.order != SymbolOrder::TwosComplement)
    object["order"] = kOrders[static_cast<std::size_t>(form.order)];
  return object;
}

}  // namespace

SymbolShape symbol_shape(const StoredForm& form) {
  const std::int64_t elements = num_elements(form.dims);
  // The elements of a vector have no column in common with anything: it is a column itself.
  SymbolShape shape{0, form.dims.size() < 2 ? 1 : form.dims.back(),
                    static_cast<int>(8 * size_of(form.dtype))};
  if (form.width > 0) {
    if (form.dtype != DType::U8 || form.dims.empty() ||
        form.dims.back() != numerics::bytes_for_bits(form.columns * form.width))
      fail("rows of {} codes of {} bits do not fill {} of {}", form.columns, form.width,
           to_text(form.dims), name(form.dtype));
    shape = {elements / form.dims.back(), form.columns, form.width};
  } else {
    if (shape.width > 32) fail("symbols of {} bits: expected at most 32", shape.width);
    if (elements > 0) shape.rows = elements / shape.columns;
  }
  return shape;
}

std::string print_forms(const StoredForms& forms) {
  json object = json::object();
  for (const auto& [name, form] : forms) object[name] = to_json(form);
  return object.dump();
}

StoredForms parse_forms(std::string_view text) {
  const json object = parse_json(text);
  if (!object.is_object()) fail("found {}, expected an object", object.type_name());
  StoredForms forms;
  for (const auto& [name, form] : object.items())
    with_place(fmt::format("tensor {}", quote_text(name)), [&] { forms[name] = read_form(form); });
  return forms;
}

std::string describe(const StoredForm& form) {
  std::vector<std::string> parts;
  if (!form.mask.empty()) parts.push_back("under " + form.mask);
  if (form.bits) {
    std::string text = "bits";
    if (form.bits->block_rows != 1 || form.bits->block_columns != 1)
      text += fmt::format(" of {}x{}", form.bits->block_rows, form.bits->block_columns);
    if (form.bits->group > 0) text += fmt::format(" {}:{}", form.bits->kept, form.bits->group);
    if (form.bits->coded_bytes > 0) text += " coded";
    parts.push_back(text);
  }
  if (!form.coded.empty()) parts.emplace_back("coded");
  return parts.empty() ? "one value" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace lathe::io
