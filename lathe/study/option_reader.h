#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// `name:key=value,...` taken apart.
struct NamedOptions {
  std::string name;
  Options options;
};
NamedOptions parse_named_options(std::string_view text);

/// Fails on a key that is not among the known ones, with the nearest.
void require_known(const Options& options, const std::vector<KindOption>& known);

/// Reads options as what they should be; each fails naming the option, the value and what was
/// expected. An option that is not given is `otherwise`.
class OptionReader {
 public:
  explicit OptionReader(const Options& options) : options_(options) {}

  bool has(std::string_view key) const { return options_.contains(key); }
  bool flag(std::string_view key, bool otherwise) const;
  std::int64_t whole(std::string_view key, std::int64_t otherwise, std::int64_t least = 0,
                     std::int64_t most = std::numeric_limits<int>::max()) const;
  double number(std::string_view key, double otherwise,
                double least = -std::numeric_limits<double>::infinity(),
                double most = std::numeric_limits<double>::infinity()) const;
  std::string word(std::string_view key, std::string_view otherwise,
                   const std::vector<std::string>& known) const;
  /// As it was written; for what only the reader's owner understands.
  std::optional<std::string> text(std::string_view key) const;

 private:
  const Options& options_;
};

}  // namespace lathe::study
