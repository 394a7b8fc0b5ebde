#pragma once

namespace lathe::study {

/// The last of low, low + step, low + 2 step, ... that is not above `high`, computed on the decimal
/// digits in which a person writes these numbers: 0, 0.1, 0.2, 0.3 reach 0.3, while in binary three
/// steps of 0.1 go past it. `step` is positive and `low` not above `high`.
double last_step(double low, double high, double step);

}  // namespace lathe::study
