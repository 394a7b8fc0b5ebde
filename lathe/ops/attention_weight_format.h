#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "lathe/core/number_format.h"
#include "lathe/core/op.h"
#include "lathe/numerics/calibration_range.h"

namespace lathe::ops {

/// The number format of attention's weights, the softmax of each query's scores.
///
/// They lie between 0 and 1, so a format that is handed a scale gets the one for that range, and
/// nothing is measured or learned. A row is what one query of one head makes of the keys it sees:
/// keys that are masked or yet to come are no part of it, so that blocks and local scales are the
/// same in padded and packed batches.
class AttentionWeightFormat {
 public:
  /// The one that the attribute `weight_format` names; nullopt where it is empty. Fails on formats
  /// that have no way to round a row alone.
  static std::optional<AttentionWeightFormat> of(const AttributeReader& attributes);

  /// Reads the name of a format, with the same failures.
  explicit AttentionWeightFormat(std::string_view text);

  const NumberFormat& format() const { return *format_; }

  /// Rounds a row in place. Keys whose `keep` is 0 weigh 0 before and after; a row that keeps none
  /// is rounded whole. `keep` may be null.
  void round(std::span<float> weights, const std::uint8_t* keep, Isa isa) const;

  /// The same by the format's definition, for the reference.
  void round_by_definition(std::span<double> weights, std::span<const std::uint8_t> keep) const;

 private:
  QuantizeArgs row(const float* weights, std::size_t count) const;

  std::shared_ptr<const NumberFormat> format_;
  numerics::ScaleAndZero scale_;
};

}  // namespace lathe::ops
