#pragma once

#include <gtest/gtest.h>

#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/testing/opinions.h"

namespace lathe::experiment {

/// A tiny model that is trained on opinions, on which tests of training build.
class TinyTraining : public testing::Test {
 protected:
  TinyTraining() {
    options_.model = io::write_tiny_bert(scratch_, "m");
    options_.data = write_opinions(scratch_, "data");
    options_.trainer.cycles = 1;
    options_.trainer.batch_examples = 8;
    options_.trainer.learning_rate = 1e-2;
  }
  FineTuned run() { return fine_tune(options_, {}, callbacks_); }

  io::ScratchDirectory scratch_;
  FineTuneOptions options_;
  FineTuneCallbacks callbacks_;
};

}  // namespace lathe::experiment
