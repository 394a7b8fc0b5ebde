#include "lathe/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/safetensors_text.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

TEST(SafetensorsFile, ListsAndReadsTensors) {
  const ScratchDirectory scratch;
  const auto path =
      scratch.write("m", file_of(R"({"__metadata__":{"format":"pt"},)"
                                 R"("b":{"dtype":"I16","shape":[2],"data_offsets":[4,8]},)"
                                 R"("a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})",
                                 std::string("\1\2\3\4\5\0\6\0", 8)));
  const SafetensorsFile file = SafetensorsFile::open(path);

  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0], (TensorInfo{"a", StoredType::U8, {2, 2}, 0, 4}));
  EXPECT_EQ(file.tensors()[1], (TensorInfo{"b", StoredType::I16, {2}, 4, 8}));
  EXPECT_TRUE(identical(file.tensor("a"), Tensor::from<std::uint8_t>({2, 2}, {1, 2, 3, 4})));
  EXPECT_TRUE(identical(file.tensor("b"), Tensor::from<std::int16_t>({2}, {5, 6})));
  EXPECT_TRUE(file.has("a"));
  EXPECT_FALSE(file.has("c"));
  EXPECT_EQ(refusal(path.string(), [&] { file.tensor("c"); }), "has no tensor \"c\"");
}

TEST(SafetensorsFile, TensorsOutliveTheFileObject) {
  const ScratchDirectory scratch;
  write_safetensors(scratch / "m", State{{"a", Tensor::from<float>({2}, {1, 2})}});
  Tensor tensor = SafetensorsFile::open(scratch / "m").tensor("a");
  std::filesystem::remove(scratch / "m");
  EXPECT_TRUE(identical(tensor, Tensor::from<float>({2}, {1, 2})));
  tensor.mutable_data<float>()[0] = 3;  // clones: the mapping is read-only
  EXPECT_TRUE(identical(tensor, Tensor::from<float>({2}, {3, 2})));
}

TEST(SafetensorsFile, ViewsAlignedTensorsAndCopiesOthers) {
  const ScratchDirectory scratch;
  const std::string_view json = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  for (const int padding : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const auto path = scratch.write("m", file_of(std::string(json) + std::string(padding, ' '),
                                                 std::string("\0\0\x80\x3f", 4)));
    const SafetensorsFile file = SafetensorsFile::open(path);
    const Tensor tensor = file.tensor("a");
    EXPECT_EQ(tensor.data<float>()[0], 1.0f);
    EXPECT_EQ(tensor.bytes() == file.bytes("a").data(), (8 + json.size() + padding) % 4 == 0);
  }
}

TEST(SafetensorsFile, GivesTypesWeLackAsBytesOnly) {
  const ScratchDirectory scratch;
  const auto path = scratch.write(
      "m", file_of(R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", "xyz"));
  const SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_EQ(std::memcmp(file.bytes("a").data(), "xyz", 3), 0);
  EXPECT_EQ(refusal(path.string(), [&] { file.tensor("a"); }),
            "tensor \"a\": dtype F6_E2M3 cannot be computed with, expected one of BOOL, U8, I8, "
            "I16, I32, I64, F16, BF16, F32, F64");
}

TEST(SafetensorsFile, RefusesABoolThatIsNeitherZeroNorOne) {
  const ScratchDirectory scratch;
  const auto path = scratch.write(
      "m", file_of(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", "\1\1\2"));
  EXPECT_EQ(refusal(path.string(), [&] { SafetensorsFile::open(path).tensor("a"); }),
            "tensor \"a\": element 2 is 2, expected 0 or 1");
}

TEST(WriteSafetensors, WritesTheBytesOfTheReferenceImplementation) {
  const ScratchDirectory scratch;
  write_safetensors(scratch / "m",
                    State{{"b", Tensor::from<std::uint8_t>({1}, {7})},
                          {"z", Tensor::from<float>({2}, {1, 2})},
                          {"a", Tensor::from<float>({}, {3})},
                          {"c", Tensor::from<std::int64_t>({0, 4}, {})}},
                    {{"format", "pt"}});
  // Wide types first, then by name; metadata in front; spaces to a multiple of 8.
  const std::string json = R"({"__metadata__":{"format":"pt"},)"
                           R"("c":{"dtype":"I64","shape":[0,4],"data_offsets":[0,0]},)"
                           R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                           R"("z":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                           R"("b":{"dtype":"U8","shape":[1],"data_offsets":[12,13]}})"
                           " ";
  ASSERT_EQ(json.size() % 8, 0u);
  EXPECT_EQ(scratch.read("m"),
            file_of(json, std::string("\0\0\x40\x40\0\0\x80\x3f\0\0\0\x40\x07", 13)));
}

TEST(WriteSafetensors, OfNothingIsAnEmptyObject) {
  const ScratchDirectory scratch;
  write_safetensors(scratch / "m", State{});
  EXPECT_EQ(scratch.read("m"), file_of("{}      ", ""));
  EXPECT_TRUE(SafetensorsFile::open(scratch / "m").tensors().empty());
}

TEST(WriteSafetensors, EscapesNamesAsTheReferenceDoes) {
  const ScratchDirectory scratch;
  write_safetensors(scratch / "m", State{{"q\"\\/\n\x01\x7f é", Tensor(DType::U8, {0})}});
  EXPECT_EQ(scratch.read("m").substr(8, 27), "{\"q\\\"\\\\/\\n\\u0001\x7f é\":{\"dty");
  EXPECT_TRUE(SafetensorsFile::open(scratch / "m").has("q\"\\/\n\x01\x7f é"));
}

TEST(WriteSafetensors, KeepsEveryTypeAndShape) {
  const ScratchDirectory scratch;
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {1}, {8}, {0}, {2, 0, 3}, {2, 3, 4}, std::vector<std::int64_t>(16, 1)};
  State written;
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32,
                            DType::I16, DType::I8, DType::U8, DType::Bool})
    for (const auto& dims : shapes) {
      Tensor tensor(dtype, dims);
      for (std::int64_t i = 0; i < tensor.num_bytes(); ++i)
        tensor.mutable_bytes()[i] = static_cast<std::byte>(dtype == DType::Bool ? i % 2 : i * 37);
      written.emplace(fmt::format("{}{}", name(dtype), to_text(dims)), tensor);
    }
  write_safetensors(scratch / "m", written);

  const SafetensorsFile file = SafetensorsFile::open(scratch / "m");
  ASSERT_EQ(file.tensors().size(), written.size());
  for (const auto& [tensor_name, tensor] : written)
    EXPECT_TRUE(identical(file.tensor(tensor_name), tensor)) << tensor_name;
}

TEST(WriteSafetensors, KeepsTheBytesOfEveryStoredType) {
  const ScratchDirectory scratch;
  const std::string data(64, 'd');
  std::map<std::string, StoredTensor, std::less<>> written;
  for (int i = 0; i <= static_cast<int>(StoredType::U64); ++i) {
    const auto type = static_cast<StoredType>(i);
    EXPECT_EQ(parse_stored_type(name(type)), type);
    const auto num_bytes = static_cast<std::size_t>(bits_of(type));  // of eight elements
    written.emplace(name(type),
                    StoredTensor{type, {8}, std::as_bytes(std::span(data)).first(num_bytes)});
  }
  write_safetensors(scratch / "m", written);
  const SafetensorsFile file = SafetensorsFile::open(scratch / "m");
  for (const auto& [tensor_name, tensor] : written) {
    EXPECT_EQ(file.info(tensor_name).dtype, tensor.dtype);
    EXPECT_EQ(file.bytes(tensor_name).size(), tensor.bytes.size());
  }
}

TEST(WriteSafetensors, RefusesWhatItsReaderWould) {
  const ScratchDirectory scratch;
  const auto message = [&](std::string_view tensor_name, std::vector<std::int64_t> dims) {
    return refusal((scratch / "m").string(), [&] {
      write_safetensors(scratch / "m", State{{std::string(tensor_name), Tensor(DType::U8, dims)}});
    });
  };
  EXPECT_EQ(message("__metadata__", {1}), "tensor \"__metadata__\": the name is reserved");
  EXPECT_EQ(message("\xff", {1}), "\"\\ufffd\" is not UTF-8");
  EXPECT_EQ(message("a", std::vector<std::int64_t>(17, 1)),
            "tensor \"a\": rank 17, expected at most 16");
  EXPECT_EQ(
      message(std::string(4097, 'n'), {1}),
      "tensor \"" + std::string(120, 'n') + "...\": name of 4097 bytes, expected at most 4096");
  EXPECT_EQ(scratch.names(), std::vector<std::string>{});
}

// Real files written by the reference implementation, when they are at hand.
TEST(WriteSafetensors, ReproducesFilesOfTheReferenceByteForByte) {
  const std::filesystem::path data = std::filesystem::path(LATHE_SHARED_DIR) / "data";
  const ScratchDirectory scratch;
  int num_compared = 0;
  for (const char* file :
       {"bert-tiny-imdb-mlm/model.safetensors", "llama-260k-fixture/model.safetensors"}) {
    if (!std::filesystem::exists(data / file)) continue;
    const SafetensorsFile original = SafetensorsFile::open(data / file);
    ASSERT_LE(original.metadata().size(), 1u);
    State tensors;
    for (const TensorInfo& info : original.tensors())
      tensors.emplace(info.name, original.tensor(info.name));
    write_safetensors(scratch / "copy", tensors, original.metadata());
    EXPECT_TRUE(MappedFile::open(scratch / "copy")->text() == MappedFile::open(data / file)->text())
        << file;
    ++num_compared;
  }
  if (num_compared == 0) GTEST_SKIP() << "no safetensors files under " << data;
}

}  // namespace
}  // namespace lathe::io
