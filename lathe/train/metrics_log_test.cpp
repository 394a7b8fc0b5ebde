#include "lathe/train/metrics_log.h"

#include <gtest/gtest.h>

#include "lathe/io/testing/scratch_directory.h"

namespace lathe::train {
namespace {

TEST(MetricsLog, WritesOneObjectALine) {
  const io::ScratchDirectory scratch;
  MetricsLog log(scratch / "metrics.jsonl", 0);
  log.write({{"step", 1}, {"loss", 0.5}});
  EXPECT_EQ(scratch.read("metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n");
  log.write({{"step", 2}, {"loss", 0.25}});
  EXPECT_EQ(scratch.read("metrics.jsonl"),
            "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.25}\n");
}

TEST(MetricsLog, ForgetsStepsAfterTheCheckpointAndATornLine) {
  const io::ScratchDirectory scratch;
  scratch.write("metrics.jsonl",
                "{\"step\":1}\n{\"step\":2,\"loss\":1}\n{\"step\":2,\"accuracy\":0.5}\n"
                "{\"step\":3}\nnot json\n{\"step\":2,\"lo");
  MetricsLog log(scratch / "metrics.jsonl", 2);
  log.write({{"step", 3}});
  EXPECT_EQ(scratch.read("metrics.jsonl"),
            "{\"step\":1}\n{\"step\":2,\"loss\":1}\n{\"step\":2,\"accuracy\":0.5}\n"
            "{\"step\":3}\n");
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"metrics.jsonl"});
}

}  // namespace
}  // namespace lathe::train
