#pragma once

namespace lathe::study {

/// Random numbers in [0, 1), one after the other: from one running generator, as Optuna has it, or
/// from a stream that belongs to one trial and purpose.
class UniformSource {
 public:
  virtual ~UniformSource() = default;
  virtual double next() = 0;
};

}  // namespace lathe::study
