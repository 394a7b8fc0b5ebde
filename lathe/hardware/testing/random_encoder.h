#pragma once

#include <string>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/hardware_profile.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/hardware/mapping/design.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/io/model.h"

namespace lathe::hardware::testing {

/// Draws a BERT of one layer, a head or two of eight elements and texts of a few tokens, in 6 to 8
/// bits, for one pace or another.
inline Design random_encoder(std::uint64_t seed) {
  Random random(seed);
  const auto any = [&](std::int64_t low, std::int64_t high) { return draw(random, low, high); };
  const std::int64_t heads = any(1, 2), hidden = 8 * heads, tokens = any(3, 8);
  io::Model model = io::load_model("bert-tiny", {.task = "classify",
                                                 .config = {{"vocab_size", std::int64_t{30}},
                                                            {"hidden_size", hidden},
                                                            {"num_hidden_layers", std::int64_t{1}},
                                                            {"num_attention_heads", heads},
                                                            {"intermediate_size", 4 * any(2, 6)},
                                                            {"max_position_embeddings", tokens},
                                                            {"initializer_range", 0.3}},
                                                 .seed = seed});
  const std::int64_t bits = any(6, 8);
  const compress::HardwareFormats formats{
      .weights = "fixed:" + std::to_string(bits) + ",5",
      .activations = "fixed:" + std::to_string(bits) + "," + std::to_string(bits - 3),
      .residuals = "fixed:" + std::to_string(any(10, 16)) + ",7"};
  compress::insert_quantizers(model.graph, model.state,
                              compress::hardware_rules(model.graph, formats));
  compress::set_parameter_scales(model.graph, model.state, {});
  compress::lower_to_integer(model.graph, model.state);
  return design_hardware(model.graph, model.state,
                         {.name = "encoder",
                          .goal = {.cycles = tokens * hidden * any(12, 40)},
                          .symbols = {{"L", tokens}}});
}

}  // namespace lathe::hardware::testing
