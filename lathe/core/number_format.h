#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/isa.h"
#include "lathe/core/registry.h"
#include "lathe/core/rounding.h"

namespace lathe {

/// Where the scales of a format come from: it has none, somebody hands them in (constants of a
/// calibrated model, states that are learned), or each block of values makes its own.
enum class ScaleSource { None, Given, Local };

/// The values one scale covers: all, a row, or a run of a row's columns (or a tile of rows and
/// columns).
enum class Granularity { Tensor, Row, Block };

/// What a format is, apart from how it computes.
struct FormatFacts {
  std::string text;    ///< canonical spelling, "int:4,channel"
  std::string family;  ///< "int"
  int element_bits = 0;
  ScaleSource scale_source = ScaleSource::None;
  Granularity granularity = Granularity::Tensor;
  std::int64_t block_rows = 1;
  std::int64_t block_columns = 0;  ///< 0: the whole row
  int scale_bits = 0;              ///< of one scale, as stored
  bool has_zero_point = false;
  bool is_scale_power_of_two = false;  ///< a given scale is used as its nearest power of two
  /// The largest, the smallest and the smallest positive number at scale 1.
  double maximum = 0, minimum = 0, smallest_step = 0;
  /// Rows are independent: any run of rows can be quantized alone.
  bool is_row_local = true;
  /// Whether every value must be read before the first can be rounded.
  bool reads_twice = false;
  /// Whether a mask can keep values out of the scales that it makes itself: a format without a
  /// zero, where what is masked afterwards would count.
  bool takes_mask = false;
  /// The values, in units of the scale, that a straight-through gradient passes; outside it stops.
  double pass_minimum = -std::numeric_limits<double>::infinity();
  double pass_maximum = std::numeric_limits<double>::infinity();
};

/// Rows of a matrix to quantize. A tensor of any rank is a matrix whose columns are its last axis.
struct QuantizeArgs {
  std::int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  float* y = nullptr;  ///< may be x
  /// For given scales: one, one a row, or the blocks of each row in turn.
  const float* scales = nullptr;
  const float* zeros = nullptr;  ///< laid out like scales, whole numbers; only with a zero point
  /// As many as x, or null: where it is 0, x has no part in local scales. What comes out there is
  /// somebody else's to multiply with it. Only where the format takes one.
  const float* mask = nullptr;
  Rounding rounding = Rounding::NearestEven;
  std::uint64_t seed = 0;          ///< Stochastic: which random numbers
  std::int64_t first_element = 0;  ///< Stochastic: the index of x[0] in its tensor
  Isa isa = best_isa();            ///< every path gives the same bits
};

/// Codes of a matrix. Rows are little-endian bit streams, each padded to whole bytes.
struct EncodedMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::uint8_t> codes;  ///< rows x code_bytes(columns)
  /// Local scales only: scale_bytes(columns) for each row, for each row of tiles where a block
  /// spans several rows, or once where one block is the whole matrix.
  std::vector<std::uint8_t> scales;
};

/// A number format: which numbers there are and how any number becomes one of them.
///
/// `encode` and `decode` define it; `quantize` is decode(encode(x)) computed faster, bit for bit.
/// NaN stays NaN in `quantize`.
class NumberFormat {
 public:
  virtual ~NumberFormat() = default;
  virtual const FormatFacts& facts() const = 0;
  virtual void quantize(const QuantizeArgs& args) const = 0;
  /// `args.y` is not used.
  virtual EncodedMatrix encode(const QuantizeArgs& args) const = 0;
  /// Writes encoded.rows x encoded.columns values; scales and zeros as in QuantizeArgs.
  virtual void decode(const EncodedMatrix& encoded, const float* scales, const float* zeros,
                      float* y) const = 0;
  /// Bytes of a row's codes and of a row's local scales.
  virtual std::int64_t code_bytes(std::int64_t columns) const = 0;
  virtual std::int64_t scale_bytes(std::int64_t columns) const = 0;

  /// Scales of a matrix that are handed in; 0 unless they are.
  std::int64_t num_given_scales(std::int64_t rows, std::int64_t columns) const;
  /// Bits an element takes, its share of scales and zero points included.
  double bits_per_element(std::int64_t rows, std::int64_t columns) const;
};

/// A kind of number format, by name: one file each.
struct FormatFamily {
  std::string name;
  std::string summary;
  std::string syntax;  ///< "int:WIDTH[,channel|group=N][,asymmetric][,dynamic]"
  /// Reads what follows the colon; fails with the argument and what was expected.
  std::function<std::shared_ptr<const NumberFormat>(std::string_view arguments)> parse;
  std::vector<std::string> examples;  ///< documentation and tests run these
};

using FormatRegistry = Registry<FormatFamily>;

/// The power of two nearest to |scale| by ratio: what a format whose scales are powers of two makes
/// of any other. 2^-126 for what is smaller or no number.
float nearest_power_of_two(float scale);

/// The format written as `family:arguments`; nullptr for "float". Fails with the nearest name.
std::shared_ptr<const NumberFormat> parse_format(std::string_view text);

}  // namespace lathe
