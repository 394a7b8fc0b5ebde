#pragma once

#include <string>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/core/pass.h"
#include "lathe/core/thread_pool.h"
#include "lathe/io/model.h"

namespace lathe::experiment {

struct SampleOptions {
  std::string data = {};
  std::int64_t batches = 1;
  std::uint64_t seed = 0;  ///< of which examples are taken
};

/// A few batches of the split `train` in the form that the model's graph itself reads, which is
/// padded: what passes that measure are fed with.
std::vector<Feed> sample_feeds(const io::Model& model, const SampleOptions& options,
                               ThreadPool* pool, const ShouldStop& should_stop = {});

}  // namespace lathe::experiment
