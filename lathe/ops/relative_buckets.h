#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lathe/core/attribute.h"

/// Rows of a table of relative positions, as DeBERTa counts them (He et al. 2021).
namespace lathe::ops {

/// Where a distance, a query's position less a key's, is found in a table of 2 * span rows.
struct RelativeBuckets {
  std::int64_t span = 0;
  /// 0: a row for each distance. Otherwise distances up to half of it have rows of their own, and
  /// longer ones share rows by their logarithm, up to `max_distance`.
  std::int64_t buckets = 0, max_distance = 0;

  static RelativeBuckets of(const AttributeReader& attributes, std::int64_t rows) {
    return {rows / 2, attributes.integer("buckets"), attributes.integer("max_distance")};
  }

  /// In float, as other programs have it, so that a distance between two rows goes to the same.
  std::int64_t bucket(std::int64_t distance) const {
    const std::int64_t middle = buckets / 2, far = std::abs(distance);
    if (buckets == 0 || far <= middle) return distance;
    const auto half = static_cast<float>(middle);
    const float share = std::log(static_cast<float>(far) / half) /
                        std::log(static_cast<float>(max_distance - 1) / half);
    const auto steps = static_cast<std::int64_t>(std::ceil(share * static_cast<float>(middle - 1)));
    return distance < 0 ? -(middle + steps) : middle + steps;
  }
  std::int64_t row(std::int64_t distance) const {
    return std::clamp<std::int64_t>(bucket(distance) + span, 0, 2 * span - 1);
  }
  /// The rows of distances -(length - 1) to length - 1.
  std::vector<std::int32_t> rows(std::int64_t length) const {
    std::vector<std::int32_t> all;
    for (std::int64_t distance = 1 - length; distance < length; ++distance)
      all.push_back(static_cast<std::int32_t>(row(distance)));
    return all;
  }
};

}  // namespace lathe::ops
