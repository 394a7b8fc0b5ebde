#include "lathe/io/pytorch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lathe/core/testing/num_mutants.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/io/testing/torch_file.h"

namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch_file::archive;
using torch_file::bytes_of;
using torch_file::pickled;
using torch_file::pickled_tensor;
using torch_file::pickled_weights;
using torch_file::TorchTensor;

// A new file each time: replacing the bytes of an old one makes the system write them out.
State read(const std::string& bytes) {
  static const ScratchDirectory scratch;
  static int count = 0;
  const auto file = scratch.write(fmt::format("{}.bin", ++count), bytes);
  const auto mapped = MappedFile::open(file);
  std::filesystem::remove(file);
  return read_pytorch_file(mapped);
}

std::string refusal_of(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const UserError& error) {
    return error.message();
  }
  return "accepted";
}

std::string weights_archive(const std::string& program,
                            const std::vector<float>& values = {1, 2, 3, 4, 5, 6}) {
  return archive({{"m/data.pkl", program}, {"m/data/0", bytes_of(values)}, {"m/version", "3\n"}});
}

const TorchTensor kMatrix{.storage_size = 6, .dims = {2, 3}, .strides = {3, 1}};

std::string valid_file() {
  return weights_archive(pickled_weights({{"w", pickled_tensor(kMatrix)}}));
}

// The form of torch.save before it made archives.
std::string old_file() {
  TorchTensor tensor = kMatrix;
  tensor.is_old = true;
  const std::string start = "\x80\x02";
  return start + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + start + pickled(1001) + "." +
         start + "}(" + pickled("little_endian") + "\x88u." +
         pickled_weights({{"w", pickled_tensor(tensor)}}) + start + "](" + pickled("0") + "e." +
         bytes_of<std::int64_t>(6) + bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST(PytorchFile, ReadsTheTensorsOfAnArchive) {
  const State weights = read(weights_archive(pickled_weights(
      {{"w", pickled_tensor(kMatrix)},
       {"transposed", pickled_tensor({.storage_size = 6, .dims = {3, 2}, .strides = {1, 3}})},
       {"part", pickled_tensor({.storage_size = 6, .offset = 4, .dims = {2}, .strides = {1}})},
       {"scalar", pickled_tensor({.storage_size = 6, .offset = 2})},
       {"none", pickled_tensor({.storage_size = 6, .dims = {0}, .strides = {1}})}})));
  ASSERT_EQ(weights.size(), 5);
  EXPECT_THAT(weights.at("w").dims(), ElementsAre(2, 3));
  EXPECT_THAT(weights.at("w").data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(weights.at("transposed").dims(), ElementsAre(3, 2));
  EXPECT_THAT(weights.at("transposed").data<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(weights.at("part").data<float>(), ElementsAre(5, 6));
  EXPECT_THAT(weights.at("scalar").data<float>(), ElementsAre(3));
  EXPECT_THAT(weights.at("none").dims(), ElementsAre(0));
}

TEST(PytorchFile, ReadsParametersAndOtherTypes) {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + pickled_tensor(kMatrix) +
                                "\x88"
                                "ccollections\nOrderedDict\n)RtR";
  const State weights =
      read(archive({{"m/data.pkl", pickled_weights({{"p", parameter},
                                                    {"ids", pickled_tensor({.type = "LongStorage",
                                                                            .key = "1",
                                                                            .storage_size = 2,
                                                                            .dims = {2},
                                                                            .strides = {1}})}})},
                    {"m/data/0", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6})},
                    {"m/data/1", bytes_of(std::vector<std::int64_t>{7, -8})}}));
  EXPECT_EQ(weights.at("p").num_elements(), 6);
  EXPECT_THAT(weights.at("ids").data<std::int64_t>(), ElementsAre(7, -8));
}

TEST(PytorchFile, ReadsTheOlderForm) {
  EXPECT_THAT(read(old_file()).at("w").data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(PytorchFile, RunsNothing) {
  const auto with = [](const std::string& value) {
    return refusal_of(weights_archive(pickled_weights({{"w", value}})));
  };
  for (const char* const name :
       {"os\nsystem", "posix\nsystem", "builtins\neval", "builtins\ngetattr", "subprocess\nPopen",
        "torch\nload", "torch._utils\n_rebuild_qtensor", "torch.hub\nload"})
    EXPECT_THAT(with("c" + std::string(name) + "\n(" + pickled("touch /tmp/x") + "tR"),
                HasSubstr("which is neither a tensor nor a part of one: nothing of it was run"))
        << name;
  EXPECT_THAT(with(pickled("os") + pickled("system") + "\x93"), HasSubstr("names \"os.system\""));
  EXPECT_THAT(with(pickled_tensor(kMatrix) + pickled_tensor(kMatrix) + "b"),
              HasSubstr("a dictionary"));
  EXPECT_THAT(with(pickled("x") + ")R"), HasSubstr("calls what is no function"));
}

// Instructions that make objects, import by number or read lines are not among those of weights.
TEST(PytorchFile, RefusesEveryInstructionItDoesNotKnow) {
  const std::string known =
      "\x80\x95N\x88\x89JKM\x8aGXTU\x8c)]}(t\x85\x86\x87"
      "aesuqr\x94hjc\x93RbQ.";
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (known.find(static_cast<char>(opcode)) != known.npos) continue;
    EXPECT_THAT(refusal_of(weights_archive("\x80\x02" + std::string(1, static_cast<char>(opcode)))),
                HasSubstr(fmt::format("instruction 0x{:02x} is refused", opcode)));
  }
}

TEST(PytorchFile, RefusesTensorsThatLeaveTheirStorage) {
  const auto with = [](const TorchTensor& tensor) {
    return refusal_of(weights_archive(pickled_weights({{"w", pickled_tensor(tensor)}})));
  };
  const std::string outside = "outside its storage of 6 elements";
  EXPECT_THAT(with({.storage_size = 6, .dims = {7}, .strides = {1}}), HasSubstr(outside));
  EXPECT_THAT(with({.storage_size = 6, .offset = 5, .dims = {2}, .strides = {1}}),
              HasSubstr(outside));
  EXPECT_THAT(with({.storage_size = 6, .offset = -1, .dims = {2}, .strides = {1}}),
              HasSubstr(outside));
  EXPECT_THAT(with({.storage_size = 6, .dims = {1 << 30, 4}, .strides = {0, 0}}),
              HasSubstr(outside));
  EXPECT_THAT(with({.storage_size = 6, .dims = {2}, .strides = {-1}}), HasSubstr("a stride of -1"));
  EXPECT_THAT(with({.storage_size = 7, .dims = {2}, .strides = {1}}),
              HasSubstr("its storage has 24 bytes, too few for 7 elements of f32"));
  EXPECT_THAT(with({.key = "1", .storage_size = 6, .dims = {2}, .strides = {1}}),
              HasSubstr("has no entry \"m/data/1\""));
}

TEST(PytorchFile, SaysWhatItFoundInstead) {
  EXPECT_THAT(refusal_of(""), HasSubstr("the pickle ends"));
  EXPECT_THAT(refusal_of("\x80\x02K\x01."), HasSubstr("is no file of torch.save"));
  EXPECT_THAT(refusal_of(weights_archive("\x80\x02K\x01.")), HasSubstr("no dictionary of tensors"));
  EXPECT_THAT(refusal_of(weights_archive(pickled_weights({{"epoch", "K\x03"}}))),
              HasSubstr("tensor \"epoch\": is none: expected tensors alone"));
  EXPECT_THAT(refusal_of(archive({{"m/data.pkl", "x"}}, 8)), HasSubstr("compressed or encrypted"));
  EXPECT_THAT(refusal_of(archive({{"m/other", "x"}})), HasSubstr("has no entry \"/data.pkl\""));
}

TEST(PytorchFile, RefusesEveryPrefix) {
  for (const std::string& whole : {valid_file(), old_file()})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(refusal_of(whole.substr(0, size)), "accepted") << size;
}

// Bytes changed at random may still be a file; whatever they are, it ends in tensors or one line.
TEST(PytorchFile, SurvivesMutants) {
  std::mt19937 random(1);
  for (const std::string& whole : {valid_file(), old_file()})
    for (int i = 0; i < num_mutants(10'000) / 2; ++i) {
      std::string mutant = whole;
      for (unsigned changes = 1 + random() % 4; changes > 0; --changes)
        mutant[random() % mutant.size()] = static_cast<char>(random());
      refusal_of(mutant);
    }
}

}  // namespace
}  // namespace lathe::io
