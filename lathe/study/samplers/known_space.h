#pragma once

#include <map>
#include <string>
#include <vector>

#include "lathe/study/samplers/sampler.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

/// What the finished trials of a study tell about its parameters where no space was declared.
///
/// Reads every trial once. What it says depends on the set of finished trials only, not on the
/// order in which they were learned of.
class KnownSpace {
 public:
  void update(const History& history);

  /// The parameters that every complete or pruned trial had, from one and the same distribution:
  /// those that can be chosen together before a trial starts. By name; those with only one value
  /// are left out.
  UnitSpace shared() const;
  /// Every parameter that a trial had, as the latest trial had it, in the order of first use. No
  /// condition is known, so each counts as always there.
  Space all() const;

 private:
  struct Known {
    DistributionPtr distribution;  // of the latest trial that had it
    int latest = -1;
    int first = 0;      // the earliest trial that had it
    int position = 0;   // and where in it
    int num_times = 0;  // in complete and pruned trials
    bool is_constant = true;
  };
  std::map<std::string, Known, std::less<>> known_;
  std::size_t num_read_ = 0;
  int num_results_ = 0;  // complete and pruned
};

/// The parameters that can be chosen together: the unconditional ones of the declared space, or
/// what `known` shares. Those with only one value are left out.
UnitSpace joint_space(const Proposal& proposal, const KnownSpace& known);
/// All parameters with their conditions: the declared space, or all that are known.
Space full_space(const Proposal& proposal, const KnownSpace& known);

}  // namespace lathe::study
