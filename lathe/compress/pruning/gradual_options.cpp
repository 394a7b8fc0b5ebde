#include "lathe/compress/pruning/gradual_options.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/number_setting.h"
#include "lathe/compress/pruning/method.h"
#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

constexpr std::int64_t kPrunings = 50;

// The first and the last step before which something is pruned.
struct Span {
  std::int64_t first = 0, last = 0;
};

Span span_of(const GradualOptions& options, std::int64_t num_steps) {
  const auto step = [&](double share) {
    const double at = std::floor(share * static_cast<double>(num_steps));
    return std::clamp(static_cast<std::int64_t>(at), std::int64_t{0},
                      std::max(num_steps - 1, std::int64_t{0}));
  };
  return {step(options.begin), step(options.end)};
}

// With time to recover, layers that can spare more should; but for what only training tells, the
// method knows which scores compare.
PruningScope default_scope(const PruningSettings& settings) {
  if (!settings.method) return PruningScope::Global;
  const PruningMethod& method = find_pruning_method(*settings.method);
  return method.evidence == PruningEvidence::Training ? method.scope : PruningScope::Global;
}

}  // namespace

GradualOptions parse_gradual_options(std::string_view text) {
  GradualOptions options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string_view key = item.substr(0, equals);
    if (key == "embeddings" && key.size() == item.size()) {
      options.embeddings = true;
      continue;
    }
    const std::string_view value = item.substr(std::min(equals + 1, item.size()));
    if (equals == item.size() && key != "embeddings")
      throw unknown_name("setting", key,
                         {"begin=", "embeddings",
                          "end=", "every=", "granularity=", "method=", "scope=", "sparsity="});
    if (key == "sparsity")
      options.settings.sparsity = number_setting(key, value);
    else if (key == "method")
      options.settings.method = std::string(value);
    else if (key == "scope")
      options.settings.scope = parse_pruning_scope(value);
    else if (key == "granularity")
      options.settings.granularity = parse_granularity(value);
    else if (key == "begin")
      options.begin = number_setting(key, value);
    else if (key == "end")
      options.end = number_setting(key, value);
    else if (key == "every") {
      const double every = number_setting(key, value);
      if (every != std::floor(every) || every < 1 || every > 1e9)
        fail("every={}: expected a whole number of steps, 1 or more", value);
      options.every = static_cast<std::int64_t>(every);
    } else {
      throw unknown_name(
          "setting", key,
          {"begin", "embeddings", "end", "every", "granularity", "method", "scope", "sparsity"});
    }
  }
  if (!(options.begin >= 0 && options.begin <= options.end && options.end <= 1))
    fail("begin={}, end={}: expected shares of the steps, 0 <= begin <= end <= 1", options.begin,
         options.end);
  check_settings(options.settings);
  if (!options.settings.scope) options.settings.scope = default_scope(options.settings);
  return options;
}

std::optional<double> gradual_share(const GradualOptions& options, std::int64_t done,
                                    std::int64_t num_steps) {
  const auto [first, last] = span_of(options, num_steps);
  if (done == last) return 1.0;
  if (done <= first || done > last) return std::nullopt;
  const std::int64_t every =
      options.every > 0 ? options.every : std::max<std::int64_t>(1, (last - first) / kPrunings);
  if ((done - first) % every != 0) return std::nullopt;
  const double left = 1 - static_cast<double>(done - first) / static_cast<double>(last - first);
  return 1 - left * left * left;
}

bool is_fully_pruned(const GradualOptions& options, std::int64_t done, std::int64_t num_steps) {
  return done > span_of(options, num_steps).last;
}

}  // namespace lathe::compress
