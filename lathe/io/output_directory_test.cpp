#include "lathe/io/output_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_lock.h"
#include "lathe/io/model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

void make_run(const ScratchDirectory& scratch, const std::string& name) {
  fs::create_directories(scratch / name);
  scratch.write(name + "/run.json", "{\"format\": \"lathe-run\"}");
}

TEST(ContainsPath, GoesByThePartsOfThePaths) {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "abc/inner");
  fs::create_directories(scratch / "abc-base");
  EXPECT_TRUE(contains_path(scratch / "abc", scratch / "abc"));
  EXPECT_TRUE(contains_path(scratch / "abc/", scratch / "abc/inner"));
  EXPECT_TRUE(contains_path(scratch / "abc", scratch / "abc-base/../abc/inner/missing"));
  EXPECT_FALSE(contains_path(scratch / "abc", scratch / "abc-base"));
  EXPECT_FALSE(contains_path(scratch / "abc/inner", scratch / "abc"));
}

TEST(ContainsPath, LooksThroughLinks) {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "abc/inner");
  fs::create_directory_symlink(scratch / "abc", scratch / "link");
  EXPECT_TRUE(contains_path(scratch / "link", scratch / "abc/inner"));
  EXPECT_TRUE(contains_path(scratch / "abc", scratch / "link/inner"));
}

TEST(RecognizedAs, KnowsWhatThisProgramWritesAndReads) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "nothing");
  EXPECT_EQ(recognized_as(scratch / "nothing"), "empty");
  make_run(scratch, "run");
  EXPECT_EQ(recognized_as(scratch / "run"), "a run");
  EXPECT_EQ(recognized_as(write_tiny_bert(scratch, "m")), "a model");
  write_checkpoint(scratch / "c", load_model("mlp:4,8"));
  EXPECT_EQ(recognized_as(scratch / "c"), "a checkpoint");
  fs::create_directory(scratch / "sweep");
  scratch.write("sweep/results.json", "{\"configuration\": {}, \"points\": {}}");
  EXPECT_EQ(recognized_as(scratch / "sweep"), "a sweep");
  fs::create_directory(scratch / "compression");
  scratch.write("compression/results.json", "{\"format\": \"lathe-compression\"}");
  EXPECT_EQ(recognized_as(scratch / "compression"), "a compression");
  fs::create_directory(scratch / "demo");
  for (const char* name : {"demo/index.html", "demo/graph.svg"}) scratch.write(name, "");
  scratch.write("demo/graph.txt", "lathe-ir 2\n");
  EXPECT_EQ(recognized_as(scratch / "demo"), "a demo");
}

TEST(RecognizedAs, DoesNotGoByNamesThatOtherProgramsUseToo) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "project");
  for (const char* name :
       {"run.json", "results.json", "manifest.json", "config.json", "graph.txt", "index.html"})
    scratch.write(std::string("project/") + name, "{}");
  EXPECT_EQ(recognized_as(scratch / "project"), "");
}

TEST(CheckOutputDirectory, ReplacesNothingUnasked) {
  const ScratchDirectory scratch;
  make_run(scratch, "run");
  const std::string target = (scratch / "run").string();
  EXPECT_EQ(refusal(target, [&] { check_output_directory(target, false); }), "exists already");
  EXPECT_NO_THROW(check_output_directory(target, true));
  EXPECT_NO_THROW(check_output_directory(scratch / "new", false));
}

TEST(CheckOutputDirectory, LeavesWhatItDoesNotKnowAlone) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "photos");
  scratch.write("photos/one.png", "");
  const std::string target = (scratch / "photos").string();
  const std::string expected = "holds neither a run nor a model nor results and is not replaced";
  EXPECT_EQ(refusal(target, [&] { check_output_directory(target, true); }), expected);
  EXPECT_EQ(refusal(target, [&] { clear_output_directory(target, true); }), expected);
  EXPECT_EQ(refusal(target, [&] { write_output_directory(target, true, [](const auto&) {}); }),
            expected);
  EXPECT_TRUE(fs::exists(scratch / "photos/one.png"));
}

TEST(CheckOutputDirectory, StopsAtTheLockOfAProcessAtWork) {
  const ScratchDirectory scratch;
  make_run(scratch, "run");
  const std::string target = (scratch / "run").string();
  const DirectoryLock at_work(target);
  EXPECT_EQ(refusal(target, [&] { check_output_directory(target, true); }),
            "another process is at work there");
  EXPECT_EQ(refusal(target, [&] { clear_output_directory(target, true); }),
            "another process is at work there");
  EXPECT_TRUE(fs::exists(scratch / "run/run.json"));
}

TEST(ClearOutputDirectory, KeepsWhatTheWorkReads) {
  const ScratchDirectory scratch;
  make_run(scratch, "abc");
  make_run(scratch, "abc-base");
  const std::string target = (scratch / "abc").string();
  const fs::path inside = scratch / "abc/run.json";
  EXPECT_EQ(refusal(target, [&] { clear_output_directory(target, true, {inside}); }),
            fmt::format("holds {}, which is needed", inside.string()));
  clear_output_directory(target, true, {scratch / "abc-base"});
  EXPECT_THAT(scratch.names(), ElementsAre("abc-base"));
}

TEST(WriteOutputDirectory, ReplacesOnlyByWhatIsComplete) {
  const ScratchDirectory scratch;
  make_run(scratch, "run");
  const auto fails = [&](const fs::path& path) {
    fs::create_directory(path);
    fail("no space");
  };
  EXPECT_EQ(refusal("", [&] { write_output_directory(scratch / "run", true, fails); }), "no space");
  EXPECT_THAT(scratch.names(), ElementsAre("run"));
  EXPECT_TRUE(fs::exists(scratch / "run/run.json"));
  write_output_directory(scratch / "run/", true, [](const fs::path& path) {
    fs::create_directory(path);
    write_atomically(path / "new", "");
  });
  EXPECT_THAT(scratch.names(), ElementsAre("run"));
  EXPECT_TRUE(fs::exists(scratch / "run/new"));
  EXPECT_FALSE(fs::exists(scratch / "run/run.json"));
}

}  // namespace
}  // namespace lathe::io
