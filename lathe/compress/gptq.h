#pragma once

#include <string>
#include <vector>

#include "lathe/compress/input_products.h"
#include "lathe/io/model.h"

namespace lathe::compress {

/// GPTQ (Frantar et al. 2023): rounds the columns of each layer's weight one after another and
/// moves those that are still to come so that the output changes least. The weights become the
/// rounded ones; what a mask took out stays out.
///
/// A weight that others read too is rounded plainly, for moving it would move them; so is that of a
/// layer without products. Returns a line for each of those.
std::vector<std::string> apply_gptq(io::Model& model, const InputProducts& products);

}  // namespace lathe::compress
