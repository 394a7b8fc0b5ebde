#include "lathe/core/dtype.h"

#include <array>

#include "lathe/core/error.h"

namespace lathe {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
  bool floating;
};

constexpr std::array<Entry, 10> kEntries{{
    {DType::F64, "f64", 8, true},
    {DType::F32, "f32", 4, true},
    {DType::F16, "f16", 2, true},
    {DType::BF16, "bf16", 2, true},
    {DType::I64, "i64", 8, false},
    {DType::I32, "i32", 4, false},
    {DType::I16, "i16", 2, false},
    {DType::I8, "i8", 1, false},
    {DType::U8, "u8", 1, false},
    {DType::Bool, "bool", 1, false},
}};

const Entry& entry(DType dtype) {
  for (const Entry& candidate : kEntries)
    if (candidate.dtype == dtype) return candidate;
  throw InternalError("a dtype in the table", std::source_location::current());
}

}  // namespace

std::string_view name(DType dtype) {
  return entry(dtype).name;
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Entry& candidate : kEntries)
    if (candidate.name == text) return candidate.dtype;
  return std::nullopt;
}

std::int64_t size_of(DType dtype) {
  return entry(dtype).bytes;
}
bool is_floating(DType dtype) {
  return entry(dtype).floating;
}

}  // namespace lathe
