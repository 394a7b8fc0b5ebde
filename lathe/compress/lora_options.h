#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lathe::compress {

/// Matches the linears of layers that a model has one after another, by their numbers: in every
/// family all but heads, poolers and projections of tables.
inline constexpr const char* kNumberedLayers = R"(\.[0-9]+(\.|$))";

/// Which paths of low rank a model gets.
struct LoraOptions {
  int rank = 8;
  double alpha = 16;
  double dropout = 0;                                    ///< of what A reads, in training
  std::vector<std::string> targets = {kNumberedLayers};  ///< patterns (RE2) in names of linears
};

/// Reads `rank=8,alpha=16,dropout=0.05,targets=query|value`; whatever is left out keeps its
/// default. Patterns may hold commas, so the targets come last.
LoraOptions parse_lora_options(std::string_view text);

/// Fails on a rank, alpha, dropout or targets that no path can have.
void check_lora_options(const LoraOptions& options);

}  // namespace lathe::compress
