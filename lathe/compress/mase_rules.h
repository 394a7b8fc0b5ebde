#pragma once

#include <toml++/toml.h>

#include "lathe/compress/quantization_rules.h"

namespace lathe::compress {

/// The formats that a configuration of MASE means: `name = "integer"` with `data_in_width`,
/// `data_in_frac_width`, `weight_width`, `bias_frac_width`, `data_out_width` and so on. Its formats
/// become those of ours that are right where they are wrong. `data_in_*` inside
/// `av_matmul` is for the weights of attention. `name = "NA"` or `bypass = true` leaves everything
/// as it is.
RoleFormats mase_formats(const toml::table& config);

}  // namespace lathe::compress
