#include "lathe/ops/cache_rows.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "lathe/core/number_format.h"
#include "lathe/numerics/row_codes.h"
#include "lathe/ops/elements.h"

namespace lathe::ops {

bool can_hold(DType cache, DType keys) {
  return cache == keys || (keys == DType::F32 && (cache == DType::BF16 || cache == DType::I8));
}

std::vector<double> read_cache(const Tensor& cache, const CacheLayout& layout) {
  if (!layout.has_scales()) return read_elements(cache);
  std::vector<double> values;
  for (std::int64_t row = 0; row < cache.dim(0); ++row) {
    const std::byte* const bytes = cache.bytes() + row * layout.row_bytes();
    for (std::int64_t i = 0; i < layout.heads * layout.d; ++i) {
      float scale = 0;
      std::memcpy(&scale, bytes + layout.first_scale() + i / layout.d * 4, sizeof scale);
      values.push_back(double{scale} * static_cast<std::int8_t>(bytes[i]));
    }
  }
  return values;
}

void write_cache_row(Tensor& cache, const CacheLayout& layout, std::int64_t row,
                     const double* features) {
  const std::int64_t count = layout.heads * layout.d;
  std::byte* const bytes = cache.mutable_bytes() + row * layout.row_bytes();
  if (!layout.has_scales()) {
    Tensor rounded(layout.dtype, {count});
    write_elements(rounded, {features, static_cast<std::size_t>(count)});
    std::memcpy(bytes, rounded.bytes(), static_cast<std::size_t>(layout.row_bytes()));
    return;
  }
  const std::vector<float> floats(features, features + count);
  const std::shared_ptr<const NumberFormat> format = parse_format("int:8,dynamic");
  QuantizeArgs args{};
  args.x = floats.data();
  args.rows = layout.heads;
  args.columns = layout.d;
  numerics::RowCodes codes = numerics::read_codes(*format, format->encode(args), nullptr, nullptr);
  // As in `encode`: what meets a NaN becomes one.
  for (std::int64_t i = 0; i < count; ++i)
    if (std::isnan(features[i]))
      codes.scales[static_cast<std::size_t>(i / layout.d)] =
          std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes, codes.numbers.data(), codes.numbers.size());
  std::memcpy(bytes + layout.first_scale(), codes.scales.data(), codes.scales.size() * 4);
}

}  // namespace lathe::ops
