#include "lathe/io/storage/stored_weights.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/numerics/bit_stream.h"

namespace lathe::io {
namespace {

static_assert(std::endian::native == std::endian::little, "symbols are little-endian");

using numerics::BitReader;
using numerics::BitWriter;
using numerics::bytes_for_bits;
using Bytes = std::vector<std::uint8_t>;
using Symbols = std::vector<std::uint32_t>;

constexpr std::array<std::string_view, 3> kStorages{"plain", "sparse", "compact"};

// What is written must be smaller by a 32nd to be worth the reading, and by what describes it.
constexpr std::int64_t kDescriptionBytes = 120;
bool pays(std::int64_t bytes, std::int64_t instead_of) {
  return bytes < instead_of - instead_of / 32;
}

// A mask of large blocks or a tensor of one value are a few bytes that stand for many: no file may
// ask for more memory than this for them.
std::int64_t most_bytes(std::int64_t stored) {
  return (std::int64_t{1} << 24) + 4096 * std::min(stored, std::int64_t{1} << 48);
}

std::uint32_t checksum_of(const Tensor& tensor) {
  return static_cast<std::uint32_t>(crc32_z(crc32_z(0, nullptr, 0),
                                            reinterpret_cast<const Bytef*>(tensor.bytes()),
                                            static_cast<std::size_t>(tensor.num_bytes())));
}

// Calls body(bytes of a row) for each row of symbols.
template <typename Byte, typename Body>
void for_each_row(Byte* bytes, const SymbolShape& shape, const Body& body) {
  const std::int64_t row_bytes = bytes_for_bits(shape.columns * shape.width);
  for (std::int64_t row = 0; row < shape.rows; ++row) body(bytes + row * row_bytes);
}

// The symbols of a tensor; nothing where the bits behind a row's codes are not zero and would be
// lost.
std::optional<Symbols> read_symbols(const Tensor& tensor, const SymbolShape& shape) {
  Symbols symbols(static_cast<std::size_t>(shape.count()));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.bytes());
  if (shape.width % 8 == 0) {
    const auto size = static_cast<std::size_t>(shape.width / 8);
    for (std::size_t i = 0; i < symbols.size(); ++i)
      std::memcpy(&symbols[i], bytes + i * size, size);
    return symbols;
  }
  const int padding = static_cast<int>(-shape.columns * shape.width & 7);
  bool is_whole = true;
  auto symbol = symbols.begin();
  for_each_row(bytes, shape, [&](const std::uint8_t* row) {
    BitReader reader(row);
    for (std::int64_t column = 0; column < shape.columns; ++column)
      *symbol++ = reader.take(shape.width);
    is_whole = is_whole && (padding == 0 || reader.take(padding) == 0);
  });
  return is_whole ? std::optional(std::move(symbols)) : std::nullopt;
}

Tensor write_symbols(const Symbols& symbols, const SymbolShape& shape, const StoredForm& form) {
  Tensor tensor(form.dtype, form.dims);
  auto* bytes = reinterpret_cast<std::uint8_t*>(tensor.mutable_bytes());
  if (shape.width % 8 == 0) {
    const auto size = static_cast<std::size_t>(shape.width / 8);
    for (std::size_t i = 0; i < symbols.size(); ++i)
      std::memcpy(bytes + i * size, &symbols[i], size);
    return tensor;
  }
  auto symbol = symbols.begin();
  for_each_row(bytes, shape, [&](std::uint8_t* row) {
    BitWriter writer(row);
    for (std::int64_t column = 0; column < shape.columns; ++column)
      writer.put(*symbol++, shape.width);
  });
  return tensor;
}

// Where a mask is not zero, by the rows and columns of what it masks.
Bytes presence(const Tensor& mask, const SymbolShape& shape, bool is_transposed) {
  Bytes present(static_cast<std::size_t>(shape.count()));
  const std::int64_t size = size_of(mask.dtype());
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::byte* element =
        mask.bytes() +
        size * (is_transposed ? i % shape.columns * shape.rows + i / shape.columns : i);
    present[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(
        std::any_of(element, element + size, [](std::byte byte) { return byte != std::byte{0}; }));
  }
  return present;
}

bool is_present(const Bytes& present, std::size_t i) {
  return present.empty() || present[i] != 0;
}

// The one pattern of all symbols whose presence is `wanted`, if there is one.
std::optional<std::uint32_t> common_symbol(const Symbols& symbols, const Bytes& present,
                                           bool wanted) {
  std::optional<std::uint32_t> common;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (is_present(present, i) != wanted) continue;
    if (common && *common != symbols[i]) return std::nullopt;
    common = symbols[i];
  }
  return common;
}

// The bits of a symbol, from the top: planes of up to 8.
struct Plane {
  int bits, shift;
};
Plane plane(int width, std::size_t index) {
  const int left = width - 8 * static_cast<int>(index);
  return {std::min(8, left), std::max(0, left - 8)};
}

SymbolTable plane_table(const SymbolShape& shape, int bits, const Bytes& present,
                        const Bytes& beside) {
  return {.rows = shape.rows,
          .columns = shape.columns,
          .bits = bits,
          .symbols = Bytes(static_cast<std::size_t>(shape.count())),
          .present = present,
          .beside = beside};
}

void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Codes planes from the top as long as that pays; the rest lies bit by bit.
void store_symbols(const Symbols& symbols, const SymbolShape& shape, const Bytes& present,
                   bool may_code, StoredForm& form, Bytes& bytes) {
  const std::int64_t count = present.empty()
                                 ? shape.count()
                                 : std::accumulate(present.begin(), present.end(), std::int64_t{0});
  int rest = shape.width;
  Bytes beside;
  while (may_code && rest > 0) {
    const Plane next = plane(shape.width, form.coded.size());
    SymbolTable table = plane_table(shape, next.bits, present, beside);
    for (std::size_t i = 0; i < symbols.size(); ++i)
      table.symbols[i] = static_cast<std::uint8_t>(symbols[i] >> next.shift);
    if (form.coded.empty()) form.order = choose_order(table);
    const Bytes coded = encode_symbols(table, form.order);
    if (!pays(std::ssize(coded), bytes_for_bits(count * next.bits))) break;
    form.coded.push_back(std::ssize(coded));
    append(bytes, coded);
    rest = next.shift;
    beside = std::move(table.symbols);
  }
  if (form.coded.empty()) form.order = SymbolOrder::TwosComplement;
  Bytes packed(static_cast<std::size_t>(bytes_for_bits(count * rest)));
  BitWriter writer(packed.data());
  const std::uint64_t mask = (std::uint64_t{1} << rest) - 1;
  if (rest > 0)
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (is_present(present, i)) writer.put(static_cast<std::uint32_t>(symbols[i] & mask), rest);
  append(bytes, packed);
}

// Which symbols need not be stored: those under a mask that the file has anyway, or zeros.
Bytes choose_presence(const Symbols& symbols, const SymbolShape& shape, const StorageHint& hint,
                      const State& weights, bool may_code, StoredForm& form, Bytes& bytes) {
  if (const auto mask = weights.find(hint.mask);
      mask != weights.end() && mask->second.num_elements() == shape.count()) {
    Bytes present = presence(mask->second, shape, hint.is_transposed);
    const bool masks_any = std::find(present.begin(), present.end(), 0) != present.end();
    if (const auto fill = common_symbol(symbols, present, false); fill && masks_any) {
      form.mask = hint.mask;
      form.is_transposed = hint.is_transposed;
      form.fill = *fill;
      return present;
    }
  }
  const std::int64_t zeros = std::count(symbols.begin(), symbols.end(), 0u);
  // Narrow codes have their own statistics of zeros.
  if (shape.width < 8 || zeros == 0 || zeros == shape.count()) return {};
  Bytes present(symbols.size());
  std::transform(symbols.begin(), symbols.end(), present.begin(),
                 [](std::uint32_t symbol) { return symbol != 0 ? 1 : 0; });
  if (zeros * shape.width <= shape.count() && !common_symbol(symbols, present, true)) return {};
  StoredBits stored = store_bits(present, shape.columns, may_code);
  form.bits = stored.form;
  append(bytes, stored.bytes);
  return present;
}

struct StoredTensorForm {
  StoredForm form;
  Bytes bytes;
};

// Whether so many elements are zero that bits for all of them take less.
bool has_many_zeros(const Tensor& tensor) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    std::uint32_t element = 0;
    std::memcpy(&element, tensor.bytes() + static_cast<std::size_t>(i) * size, size);
    zeros += element == 0 ? 1 : 0;
  }
  return zeros * static_cast<std::int64_t>(8 * size) > tensor.num_elements();
}

std::optional<StoredTensorForm> store_tensor(const Tensor& tensor, const StorageHint* known,
                                             const State& weights, bool may_code) {
  if (size_of(tensor.dtype()) > 4 || tensor.num_bytes() <= kDescriptionBytes) return std::nullopt;
  if (known == nullptr && !may_code && !has_many_zeros(tensor)) return std::nullopt;
  const StorageHint hint = known != nullptr ? *known : StorageHint{};
  StoredTensorForm stored;
  StoredForm& form = stored.form;
  form.dtype = tensor.dtype();
  form.dims = tensor.dims();
  form.width = hint.width;
  form.columns = hint.columns;
  SymbolShape shape = symbol_shape(form);
  std::optional<Symbols> symbols = read_symbols(tensor, shape);
  if (!symbols) {
    form.width = 0;
    form.columns = 0;
    shape = symbol_shape(form);
    symbols = read_symbols(tensor, shape);
  }
  const Bytes present =
      choose_presence(*symbols, shape, hint, weights, may_code, form, stored.bytes);
  form.value = common_symbol(*symbols, present, true);
  if (!form.value) store_symbols(*symbols, shape, present, may_code, form, stored.bytes);
  form.checksum = checksum_of(tensor);
  const std::int64_t size = std::ssize(stored.bytes);
  if (!pays(size + kDescriptionBytes, tensor.num_bytes()) || tensor.num_bytes() > most_bytes(size))
    return std::nullopt;
  return stored;
}

// The parts of a tensor's stored bytes, one after the other.
class Parts {
 public:
  explicit Parts(const Tensor& stored) {
    if (stored.dtype() != DType::U8 || stored.rank() != 1)
      fail("is {} {}, expected a row of U8", name(stored.dtype()), to_text(stored.dims()));
    rest_ = stored.data<std::uint8_t>();
  }
  std::span<const std::uint8_t> take(std::int64_t count) {
    if (count > std::ssize(rest_)) fail("needs {} more bytes, but has {}", count, rest_.size());
    const auto part = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(part.size());
    return part;
  }
  void expect_end() const {
    if (!rest_.empty()) fail("has {} bytes more than its form needs", rest_.size());
  }

 private:
  std::span<const std::uint8_t> rest_;
};

Symbols restore_symbols(const StoredForm& form, const SymbolShape& shape, const Bytes& present,
                        Parts& parts) {
  Symbols symbols(static_cast<std::size_t>(shape.count()));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) count += is_present(present, i) ? 1 : 0;
  int rest = shape.width;
  Bytes beside;
  for (std::size_t index = 0; index < form.coded.size(); ++index) {
    if (rest == 0) fail("{} coded planes of {} bits", form.coded.size(), shape.width);
    const Plane next = plane(shape.width, index);
    if (count > most_symbols(form.coded[index], next.bits))
      fail("{} symbols of {} bits cannot be coded in {} bytes", count, next.bits,
           form.coded[index]);
    SymbolTable table = plane_table(shape, next.bits, present, beside);
    decode_symbols(parts.take(form.coded[index]), form.order, table);
    for (std::size_t i = 0; i < symbols.size(); ++i)
      symbols[i] |= std::uint32_t{table.symbols[i]} << next.shift;
    rest = next.shift;
    beside = std::move(table.symbols);
  }
  if (rest == 0) return symbols;
  BitReader reader(parts.take(bytes_for_bits(count * rest)).data());
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (is_present(present, i)) symbols[i] |= reader.take(rest);
  return symbols;
}

Tensor restore_tensor(const StoredForm& form, const Tensor& stored, const State& restored) {
  const SymbolShape shape = symbol_shape(form);
  Parts parts(stored);
  if (num_elements(form.dims) * size_of(form.dtype) > most_bytes(stored.num_bytes()))
    fail("{} {} cannot be what {} bytes stand for", name(form.dtype), to_text(form.dims),
         stored.num_bytes());
  if (shape.width < 32 &&
      (form.fill >> shape.width != 0 || form.value.value_or(0) >> shape.width != 0))
    fail("fill {} or value {} has more than {} bits", form.fill, form.value.value_or(0),
         shape.width);
  Bytes present;
  if (!form.mask.empty()) {
    const auto mask = restored.find(form.mask);
    if (mask == restored.end()) fail("mask {} is missing", quote_text(form.mask));
    if (mask->second.num_elements() != shape.count())
      fail("mask {} has {} elements, expected {}", quote_text(form.mask),
           mask->second.num_elements(), shape.count());
    present = presence(mask->second, shape, form.is_transposed);
  } else if (form.bits) {
    present =
        restore_bits(*form.bits, parts.take(num_bit_bytes(*form.bits, shape.rows, shape.columns)),
                     shape.rows, shape.columns);
  }
  Symbols symbols = form.value ? Symbols(static_cast<std::size_t>(shape.count()), *form.value)
                               : restore_symbols(form, shape, present, parts);
  parts.expect_end();
  for (std::size_t i = 0; i < present.size(); ++i)
    if (present[i] == 0) symbols[i] = form.fill;
  Tensor tensor = write_symbols(symbols, shape, form);
  if (checksum_of(tensor) != form.checksum)
    fail("its checksum differs from what was stored: the file was altered");
  if (form.dtype == DType::Bool)
    for (const std::uint32_t symbol : symbols)
      if (symbol > 1) fail("holds {}, expected 0 or 1", symbol);
  return tensor;
}

}  // namespace

std::string_view name(Storage storage) {
  return kStorages[static_cast<std::size_t>(storage)];
}

Storage parse_storage(std::string_view text) {
  for (std::size_t i = 0; i < kStorages.size(); ++i)
    if (kStorages[i] == text) return static_cast<Storage>(i);
  throw unknown_name("storage", text, {kStorages.begin(), kStorages.end()});
}

StoredWeights store_weights(const State& weights, const StorageHints& hints, Storage storage) {
  StoredWeights result{weights, {}};
  if (storage == Storage::Plain) return result;
  for (const auto& [name, tensor] : weights) {
    const auto hint = hints.find(name);
    std::optional<StoredTensorForm> stored =
        store_tensor(tensor, hint == hints.end() ? nullptr : &hint->second, weights,
                     storage == Storage::Compact);
    if (!stored) continue;
    result.tensors[name] = Tensor::from<std::uint8_t>({std::ssize(stored->bytes)}, stored->bytes);
    result.forms[name] = std::move(stored->form);
  }
  return result;
}

State restore_weights(const StoredWeights& stored) {
  State restored = stored.tensors;
  // Masks first: what they mask is counted by them.
  for (const bool is_under_mask : {false, true})
    for (const auto& [name, form] : stored.forms) {
      if (form.mask.empty() == is_under_mask) continue;
      with_place(fmt::format("tensor {}", quote_text(name)), [&] {
        const auto found = stored.tensors.find(name);
        if (found == stored.tensors.end()) fail("has a form, but is not there");
        const auto mask = stored.forms.find(form.mask);
        if (is_under_mask && mask != stored.forms.end() && !mask->second.mask.empty())
          fail("its mask {} is itself under a mask", quote_text(form.mask));
        restored[name] = restore_tensor(form, found->second, restored);
      });
    }
  return restored;
}

}  // namespace lathe::io
