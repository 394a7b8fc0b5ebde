#pragma once

#include "lathe/core/graph.h"

namespace lathe {

/// How `pack-sequences` lays a padded batch out: the run of all tokens, and where sequences start.
struct PackedSequences {
  Value offsets;             ///< i32[S+1]: sequence s is tokens offsets[s] to offsets[s+1]
  std::string rows = "B";    ///< padded batch size, becomes `sequences`
  std::string length = "L";  ///< padded length; [B,L] becomes [T]
  std::string tokens = "T";
  std::string sequences = "S";
};

}  // namespace lathe
