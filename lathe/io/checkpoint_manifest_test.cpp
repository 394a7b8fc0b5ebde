#include "lathe/io/checkpoint_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/json_file.h"
#include "lathe/io/model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::io {
namespace {

using nlohmann::json;

// A checkpoint "c" of the smallest model there is, to be damaged.
class Checkpoint : public testing::Test {
 protected:
  Checkpoint() {
    Model model = load_model("mlp:2,2");
    model.tokenizer = tiny_tokenizer();
    write_checkpoint(scratch_ / "c", model);
  }
  std::string directory() const { return (scratch_ / "c").string(); }
  std::string refusal_now() const {
    return refusal(directory(), [&] { load_model(directory()); });
  }
  std::string read(const std::string& name) const { return scratch_.read("c/" + name); }
  void write(const std::string& name, std::string_view text) const {
    scratch_.write("c/" + name, text);
  }
  json manifest() const { return read_json(scratch_ / "c/manifest.json"); }

  ScratchDirectory scratch_;
};

const std::vector<std::string> kFiles{"config.json", "graph.txt", "model.safetensors",
                                      "tokenizer_config.json", "vocab.txt"};

TEST_F(Checkpoint, ListsEveryFileButTheManifest) {
  ASSERT_EQ(refusal_now(), "accepted");
  std::vector<std::string> names;
  for (const auto& [name, file] : read_manifest(directory()).files) names.push_back(name);
  EXPECT_EQ(names, kFiles);
}

TEST_F(Checkpoint, IsRefusedForAnyAlteredByte) {
  for (const std::string& name : kFiles) {
    const std::string original = read(name);
    for (std::size_t i = 0; i < original.size(); ++i) {
      std::string altered = original;
      altered[i] = static_cast<char>(altered[i] ^ 1);
      write(name, altered);
      ASSERT_EQ(refusal_now(),
                name + ": its SHA-256 differs from the manifest's: the file was altered")
          << "byte " << i;
    }
    write(name, original);
  }
  EXPECT_EQ(refusal_now(), "accepted");
}

TEST_F(Checkpoint, IsRefusedWhenAFileIsCutOrGrown) {
  for (const std::string& name : kFiles) {
    const std::string original = read(name);
    for (const std::string& other : {original.substr(0, original.size() - 1), original + "x"}) {
      write(name, other);
      EXPECT_EQ(refusal_now(), fmt::format("{}: has {} bytes, but the manifest says {}", name,
                                           other.size(), original.size()));
    }
    write(name, original);
  }
}

TEST_F(Checkpoint, IsRefusedWhenAFileIsMissing) {
  std::vector<std::string> names = kFiles;
  names.emplace_back("manifest.json");
  for (const std::string& name : names) {
    const std::string original = read(name);
    std::filesystem::remove(scratch_ / ("c/" + name));
    EXPECT_EQ(refusal_now(), name + ": cannot open: no such file or directory");
    write(name, original);
  }
  EXPECT_EQ(refusal_now(), "accepted");
}

TEST_F(Checkpoint, IsRefusedWhenItsWeightsAreNotListed) {
  json text = manifest();
  text["files"].erase("model.safetensors");
  write("manifest.json", text.dump());
  EXPECT_EQ(refusal_now(), "model.safetensors: is not listed in the manifest");
}

TEST_F(Checkpoint, IsRefusedWhenOtherWeightsAreAdded) {
  const std::string weights = read("model.safetensors");
  json text = manifest();
  text["files"]["model-00001-of-00001.safetensors"] = text["files"]["model.safetensors"];
  text["files"].erase("model.safetensors");
  write("manifest.json", text.dump());
  write("model-00001-of-00001.safetensors", weights);
  EXPECT_EQ(refusal_now(), "model.safetensors: is not listed in the manifest");
}

TEST_F(Checkpoint, IsRefusedWhenItIsOfALaterVersion) {
  for (const char* version : {"2", "4294967297", "-1"}) {
    json text = manifest();
    text["version"] = parse_json(version);
    write("manifest.json", text.dump());
    EXPECT_EQ(refusal_now(), fmt::format("manifest.json: version {} with op set 1 cannot be read: "
                                         "this program reads version 1 up to op set 1",
                                         version));
  }
  json text = manifest();
  text["version"] = 1;
  text["op_set"] = 2;
  write("manifest.json", text.dump());
  EXPECT_EQ(refusal_now(),
            "manifest.json: version 1 with op set 2 cannot be read: this program reads version 1 "
            "up to op set 1");
}

TEST_F(Checkpoint, IsRefusedWhenTheManifestLacksAKeyOrHasTheWrongKind) {
  const json original = manifest();
  const std::map<std::string, std::string> expected{
      {"version", "a number"}, {"op_set", "a number"},        {"family", "a text"},
      {"task", "a text"},      {"labels", "a list of texts"}, {"files", "an object"}};
  for (const auto& [key, kind] : expected) {
    json text = original;
    text.erase(key);
    write("manifest.json", text.dump());
    EXPECT_EQ(refusal_now(), fmt::format("manifest.json: \"{}\": expected {}", key, kind));
    text[key] = true;
    write("manifest.json", text.dump());
    EXPECT_EQ(refusal_now(), fmt::format("manifest.json: \"{}\": expected {}", key, kind));
  }
  write("manifest.json", "{\"format\": \"other\"}");
  EXPECT_EQ(refusal_now(), "manifest.json: \"format\" is not \"lathe-checkpoint\"");
}

TEST_F(Checkpoint, IsRefusedWhenTheManifestLeavesTheDirectory) {
  json text = manifest();
  text["files"]["../outside"] = text["files"]["graph.txt"];
  scratch_.write("outside", read("graph.txt"));
  write("manifest.json", text.dump());
  EXPECT_THAT(refusal_now(), testing::HasSubstr("../outside"));
}

TEST_F(Checkpoint, IsNeverMoreThanRefusedForAnAlteredManifest) {
  const std::string original = read("manifest.json");
  for (std::size_t i = 0; i < original.size(); ++i) {
    std::string altered = original;
    altered[i] = static_cast<char>(altered[i] ^ (i % 3 == 0 ? 0x01 : i % 3 == 1 ? 0x10 : 0x7f));
    write("manifest.json", altered);
    EXPECT_NO_THROW(refusal_now()) << "byte " << i;
  }
}

TEST(IsCheckpoint, IsNotFooledByAManifestOfSomethingElse) {
  const ScratchDirectory scratch;
  const std::string directory = write_tiny_bert(scratch, "m");
  scratch.write("m/manifest.json", "{\"name\": \"web app\"}");
  EXPECT_FALSE(is_checkpoint(directory));
  EXPECT_NO_THROW(load_model(directory));
}

}  // namespace
}  // namespace lathe::io
