#pragma once

#include <string>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// A parameter that was read from a storage; fails when the value is none that it could have.
///
/// Numbers outside the range pass, since a user may enqueue them; choices that are not there and
/// numbers that are not finite do not.
Parameter stored_parameter(std::string name, DistributionPtr distribution, double value);

}  // namespace lathe::study
