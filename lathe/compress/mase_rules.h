#pragma once

#include <toml++/toml.h>

#include <string_view>

#include "lathe/compress/quantization_rules.h"

namespace lathe::compress {

/// The formats that a configuration of MASE means: `name = "integer"` with `data_in_width`,
/// `data_in_frac_width`, `weight_width`, `bias_frac_width`, `data_out_width` and so on. `data_in_*`
/// inside `av_matmul` is for the weights of attention. `name = "NA"` or `bypass = true` leaves
/// everything as it is.
///
/// MASE's formats become those of ours that have the same numbers and are right where MASE's are
/// wrong; where ours have no place for what a key asks, the twin that gives MASE's own values. A
/// key that would change nothing is refused by its name and that of its table.
RoleFormats mase_formats(const toml::table& config, std::string_view table);

}  // namespace lathe::compress
