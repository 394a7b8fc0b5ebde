#include "lathe/study/storages/stored_parameter.h"

#include <cmath>

#include "lathe/core/error.h"

namespace lathe::study {

Parameter stored_parameter(std::string name, DistributionPtr distribution, double value) {
  const auto* categorical = std::get_if<CategoricalDistribution>(distribution.get());
  if (!std::isfinite(value) || (categorical != nullptr && !contains(*distribution, value)))
    fail("parameter \"{}\" is stored as {}, which is not one of its values", name, value);
  return {std::move(name), std::move(distribution), value};
}

}  // namespace lathe::study
