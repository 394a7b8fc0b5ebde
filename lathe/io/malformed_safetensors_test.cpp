// Files that break one rule of the format each, and what the user is told.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "lathe/io/safetensors.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/safetensors_text.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

using std::string_view_literals::operator""sv;

class MalformedSafetensors : public testing::Test {
 protected:
  // What opening a file with these bytes says, and reading every tensor we have a type for.
  std::string open(std::string_view content) const {
    const auto path = scratch_.write("m", content);
    return refusal(path.string(), [&] {
      const SafetensorsFile file = SafetensorsFile::open(path);
      expect_invariants(file, content.size());
    });
  }

  static void expect_invariants(const SafetensorsFile& file, std::size_t file_size) {
    std::uint64_t end = 0;
    for (const TensorInfo& info : file.tensors()) {
      EXPECT_EQ(info.begin, end);
      EXPECT_EQ(info.end - info.begin, num_stored_bytes(info.dtype, info.dims));
      EXPECT_LE(info.dims.size(), kMaxRank);
      EXPECT_EQ(file.bytes(info.name).size(), info.end - info.begin);
      if (dtype_of(info.dtype) && info.dtype != StoredType::Bool) {
        EXPECT_EQ(file.tensor(info.name).dims(), info.dims);
      }
      end = info.end;
    }
    EXPECT_LE(end, file_size);
  }

  ScratchDirectory scratch_;
};

TEST_F(MalformedSafetensors, LengthsThatDoNotFitTheFile) {
  EXPECT_EQ(open(""), "is 0 bytes long, expected at least the 8 of a safetensors header length");
  EXPECT_EQ(open("\2\0\0\0\0\0\0"sv),
            "is 7 bytes long, expected at least the 8 of a safetensors header length");
  EXPECT_EQ(open("\3\0\0\0\0\0\0\0{}"sv), "header length 3 exceeds the 2 bytes that follow it");
  EXPECT_EQ(open("\x01\xe1\xf5\x05\0\0\0\0{}"sv),
            "header length 100000001 exceeds the limit of 100000000 bytes");
  EXPECT_EQ(open("\xff\xff\xff\xff\xff\xff\xff\xff{}"sv),
            "header length 18446744073709551615 exceeds the limit of 100000000 bytes");
  EXPECT_EQ(open("\0\0\0\0\0\0\0\0{}"sv), "header begins with nothing, expected \"{\"");
  EXPECT_EQ(open("\2\0\0\0\0\0\0\0{}"sv), "accepted");
}

struct Case {
  std::string_view header;
  std::string_view message;
};

TEST_F(MalformedSafetensors, HeadersThatAreNotTheRightJson) {
  const Case cases[] = {
      {"[]", R"(header begins with "[", expected "{")"},
      {" {}", R"(header begins with " ", expected "{")"},
      {"\xef\xbb\xbf{}", R"(header begins with "\ufffd", expected "{")"},
      {"{", "header byte 2: invalid JSON: unexpected end of input; expected string literal"},
      {"{}x", "header byte 3: invalid JSON: invalid literal"},
      {"{}{}", "header byte 3: invalid JSON: unexpected '{'; expected end of input"},
      {"{}\0"sv, "header byte 3: invalid JSON: NUL byte"},
      {"{}\0junk"sv, "header byte 3: invalid JSON: NUL byte"},
      {"{\"\xff\":1}", "header byte 3: invalid JSON: invalid string: ill-formed UTF-8 byte"},
      {"{\"\xed\xa0\x80\":1}",
       "header byte 4: invalid JSON: invalid string: ill-formed UTF-8 byte"},
      {R"({"a":1})",
       R"(tensor "a": found 1, expected an object with dtype, shape and data_offsets)"},
      {R"({"a":null})",
       R"(tensor "a": found null, expected an object with dtype, shape and data_offsets)"},
      {R"({"a":[]})",
       R"(tensor "a": found an array, expected an object with dtype, shape and data_offsets)"},
      {R"({"\u001b[31m":1})",
       R"(tensor "\u001b[31m": found 1, expected an object with dtype, shape and data_offsets)"},
      {R"({"a":{}})", R"(tensor "a": has no dtype)"},
      {R"({"a":{"dtype":"U8"}})", R"(tensor "a": has no shape)"},
      {R"({"a":{"dtype":"U8","shape":[]}})", R"(tensor "a": has no data_offsets)"},
      {R"({"a":{"strides":[]}})",
       R"(tensor "a": unknown key "strides", expected dtype, shape and data_offsets)"},
      {R"({"__metadata__":"pt"})",
       "header: __metadata__: found a string, expected an object of strings"},
      {R"({"__metadata__":{"format":1}})",
       R"(header: __metadata__: key "format": found 1, expected a string)"},
      {R"({"__metadata__":{"format":{"nested":"x"}}})",
       R"(header: __metadata__: key "format": found an object, expected a string)"},
      {R"({"__metadata__":{"format":["x"]}})",
       R"(header: __metadata__: key "format": found an array, expected a string)"},
  };
  for (const auto& [header, message] : cases) EXPECT_EQ(open(file_of(header, "")), message);
}

TEST_F(MalformedSafetensors, DuplicateKeys) {
  const Case cases[] = {
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       R"(header: duplicate key "a")"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       R"(header: duplicate key "a")"},
      {R"({"a":{"dtype":"U8","dtype":"I8","shape":[2],"data_offsets":[0,2]}})",
       R"(tensor "a": duplicate key "dtype")"},
      {R"({"a":{"dtype":"U8","shape":[2],"shape":[2],"data_offsets":[0,2]}})",
       R"(tensor "a": duplicate key "shape")"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"data_offsets":[0,2]}})",
       R"(tensor "a": duplicate key "data_offsets")"},
      {R"({"__metadata__":{},"__metadata__":{}})", R"(header: duplicate key "__metadata__")"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", R"(header: __metadata__: duplicate key "k")"},
  };
  for (const auto& [header, message] : cases) EXPECT_EQ(open(file_of(header, "xy")), message);
}

// The three fields of one tensor over four bytes of data.
struct Fields {
  std::string_view dtype, shape, offsets, message;
};

TEST_F(MalformedSafetensors, FieldsOfOneTensor) {
  constexpr std::string_view kInteger =
      ", expected a whole number from 0 to 2^64 - 1, written in digits";
  const Fields valid[] = {
      {R"("F32")", "[1]", "[0,4]", ""},
      {R"("F32")", "[]", "[0,4]", ""},
      {R"("U8")", "[2,2]", "[0,4]", ""},
      {R"("F4")", "[8]", "[0,4]", ""},
  };
  const Fields malformed[] = {
      {"32", "[1]", "[0,4]", R"(dtype: found 32, expected a dtype name such as "F32")"},
      {"[]", "[1]", "[0,4]", R"(dtype: found an array, expected a dtype name such as "F32")"},
      {R"("F31")", "[1]", "[0,4]",
       "dtype: unknown dtype \"F31\"; known: BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, "
       "F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64"},
      {R"("F32")", "1", "[0,4]", "shape: found 1, expected an array of sizes"},
      {R"("F32")", "{}", "[0,4]", "shape: found an object, expected an array of sizes"},
      {R"("F32")", "[[1]]", "[0,4]", "shape: found an array"},
      {R"("F32")", "[\"1\"]", "[0,4]", "shape: found a string"},
      {R"("F32")", "[-1]", "[0,4]", "shape: found -1"},
      {R"("F32")", "[-0]", "[0,4]", "shape: found -0"},
      {R"("F32")", "[1.0]", "[0,4]", "shape: found 1.0"},
      {R"("F32")", "[1e0]", "[0,4]", "shape: found 1e0"},
      {R"("F32")", "[1e3]", "[0,4]", "shape: found 1e3"},
      {R"("F32")", "[true]", "[0,4]", "shape: found true"},
      {R"("F32")", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]", "shape: more than 16 sizes"},
      {R"("F32")", "[1]", "4", "data_offsets: found 4, expected an array [begin, end]"},
      {R"("F32")", "[1]", "[]", "data_offsets: 0 numbers, expected [begin, end]"},
      {R"("F32")", "[1]", "[4]", "data_offsets: 1 numbers, expected [begin, end]"},
      {R"("F32")", "[1]", "[0,4,8]", "data_offsets: 3 numbers, expected [begin, end]"},
      {R"("F32")", "[1]", "[-0,4]", "data_offsets: found -0"},
      {R"("F32")", "[1]", "[0,4.0]", "data_offsets: found 4.0"},
      {R"("F32")", "[1]", "[0,-4]", "data_offsets: found -4"},
      {R"("F32")", "[1]", "[0,null]", "data_offsets: found null"},
      {R"("F32")", "[1]", "[1,5]", "data_offsets [1, 5] leave a hole, expected to begin at 0"},
      {R"("F32")", "[1]", "[4,0]", "data_offsets [4, 0] leave a hole, expected to begin at 0"},
      {R"("F32")", "[2]", "[0,4]",
       "data_offsets [0, 4] hold 4 bytes, but F32 of shape [2] needs 8"},
      {R"("F64")", "[1]", "[0,4]",
       "data_offsets [0, 4] hold 4 bytes, but F64 of shape [1] needs 8"},
      {R"("F32")", "[0]", "[0,4]",
       "data_offsets [0, 4] hold 4 bytes, but F32 of shape [0] needs 0"},
      {R"("F4")", "[7]", "[0,4]",
       "shape [7] of F4 ends inside a byte: 28 bits, expected a multiple of 8"},
      {R"("F6_E3M2")", "[5]", "[0,4]",
       "shape [5] of F6_E3M2 ends inside a byte: 30 bits, expected a multiple of 8"},
      {R"("U8")", "[4294967296,4294967296]", "[0,0]",
       "shape [4294967296,4294967296] has more elements than 64 bits can count"},
      {R"("U8")", "[4294967296,4294967296,0]", "[0,0]",
       "shape [4294967296,4294967296,0] has more elements than 64 bits can count"},
      {R"("U8")", "[2305843009213693952]", "[0,0]",
       "shape [2305843009213693952] of U8 has more bits than 64 bits can count"},
  };
  const auto file = [](const Fields& fields) {
    return file_of(fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})",
                               fields.dtype, fields.shape, fields.offsets),
                   "data");
  };
  for (const Fields& fields : valid) EXPECT_EQ(open(file(fields)), "accepted");
  for (const Fields& fields : malformed) {
    std::string message = fmt::format("tensor \"a\": {}", fields.message);
    // Every wrong number is told the same, so the table leaves it out.
    const bool is_number = fields.message.find("found") != fields.message.npos &&
                           fields.message.find("expected") == fields.message.npos;
    if (is_number) message += kInteger;
    EXPECT_EQ(open(file(fields)), message);
  }
}

TEST_F(MalformedSafetensors, OffsetsOfTwoTensors) {
  struct Offsets {
    std::string_view a, b, message;
  };
  const Offsets cases[] = {
      {"[0,2]", "[2,4]", "accepted"},
      {"[2,4]", "[0,2]", "accepted"},
      {"[0,2]", "[0,2]",
       "tensor \"b\": data_offsets [0, 2] overlap the tensor before, expected to begin at 2"},
      {"[0,2]", "[1,3]",
       "tensor \"b\": data_offsets [1, 3] overlap the tensor before, expected to begin at 2"},
      {"[0,2]", "[3,5]", "tensor \"b\": data_offsets [3, 5] leave a hole, expected to begin at 2"},
      {"[0,2]", "[2,1]", "tensor \"b\": data_offsets [2, 1] end before they begin"},
      {"[1,3]", "[3,5]", "tensor \"a\": data_offsets [1, 3] leave a hole, expected to begin at 0"},
      {"[0,2]", "[2,18446744073709551615]",
       "tensor \"b\": data_offsets [2, 18446744073709551615] hold 18446744073709551613 bytes, but "
       "U8 of shape [2] needs 2"},
  };
  for (const auto& [a, b, message] : cases)
    EXPECT_EQ(open(file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},)"
                                       R"("b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
                                       a, b),
                           "data")),
              message);
}

TEST_F(MalformedSafetensors, DataThatIsTooShortOrTooLong) {
  const std::string_view header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_EQ(open(file_of(header, "data")), "accepted");
  EXPECT_EQ(open(file_of(header, "dat")),
            "tensors take 4 bytes, but 3 bytes of data follow the header");
  EXPECT_EQ(open(file_of(header, "data+")),
            "tensors take 4 bytes, but 5 bytes of data follow the header");
  EXPECT_EQ(open(file_of("{}", "PK")),
            "tensors take 0 bytes, but 2 bytes of data follow the header");
}

TEST_F(MalformedSafetensors, EmptyTensorsMayShareAnOffset) {
  EXPECT_EQ(open(file_of(R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                         R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[3,0],"data_offsets":[0,0]},)"
                         R"("c":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                         "xy")),
            "accepted");
}

TEST_F(MalformedSafetensors, LongNames) {
  const auto file = [](std::size_t length) {
    return file_of(fmt::format(R"({{"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}}})",
                               std::string(length, 'n')),
                   "");
  };
  EXPECT_EQ(open(file(4096)), "accepted");
  EXPECT_EQ(open(file(4097)), "tensor \"" + std::string(120, 'n') +
                                  "...\": name of 4097 bytes, expected at most 4096");
}

TEST_F(MalformedSafetensors, TooManyMetadataKeys) {
  const auto file = [](int num_keys) {
    std::string header = R"({"__metadata__":{"0":"")";
    for (int i = 1; i < num_keys; ++i) header += fmt::format(R"(,"{}":"")", i);
    return file_of(header + "}}", "");
  };
  EXPECT_EQ(open(file(100'000)), "accepted");
  EXPECT_EQ(open(file(100'001)), "header: __metadata__: more than 100000 keys");
}

// Each integer field in turn holds each of these; only the right value may be accepted.
TEST_F(MalformedSafetensors, BoundaryIntegersInEachField) {
  const std::string_view integers[] = {"-9223372036854775809",
                                       "-9223372036854775808",
                                       "-1",
                                       "0",
                                       "1",
                                       "2",
                                       "4",
                                       "5",
                                       "2147483647",
                                       "2147483648",
                                       "2147483649",
                                       "4294967295",
                                       "4294967296",
                                       "4294967297",
                                       "9007199254740991",
                                       "9007199254740992",
                                       "9007199254740993",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "9223372036854775809",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "340282366920938463463374607431768211456"};
  const std::string_view right[] = {"1", "4", "0", "4"};
  for (std::size_t field = 0; field < 4; ++field)
    for (const std::string_view integer : integers) {
      std::string_view v[] = {right[0], right[1], right[2], right[3]};
      v[field] = integer;
      const std::string message = open(
          file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[{},{}],"data_offsets":[{},{}]}}}})",
                              v[0], v[1], v[2], v[3]),
                  "data"));
      EXPECT_EQ(message == "accepted", integer == right[field]) << field << " " << integer;
      if (message != "accepted") {
        EXPECT_TRUE(message.starts_with("tensor \"a\": ")) << message;
      }
    }
}

TEST_F(MalformedSafetensors, BoundaryHeaderLengths) {
  const std::string_view header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const std::uint64_t right = header.size();
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{1}, right - 1, right, right + 1, right + 4, right + 5,
        (std::uint64_t{1} << 31) - 1, std::uint64_t{1} << 31, (std::uint64_t{1} << 32) - 1,
        std::uint64_t{1} << 32, (std::uint64_t{1} << 53) + 1, (std::uint64_t{1} << 63) - 1,
        std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max() - 8,
        std::numeric_limits<std::uint64_t>::max()}) {
    std::string file = file_of(header, "data");
    std::memcpy(file.data(), &length, 8);
    EXPECT_EQ(open(file) == "accepted", length == right) << length;
  }
}

// A small file with every part of the format in it.
std::string small_file() {
  return file_of(R"({"__metadata__":{"format":"pt"},)"
                 R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                 R"("empty":{"dtype":"I32","shape":[0],"data_offsets":[24,24]},)"
                 R"("n":{"dtype":"F16","shape":[],"data_offsets":[24,26]}}   )",
                 "0123456789abcdefghijklmnop");
}

TEST_F(MalformedSafetensors, EveryTruncationIsRefused) {
  const std::string file = small_file();
  ASSERT_EQ(open(file), "accepted");
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(open(file.substr(0, length)), "accepted") << length;
}

TEST_F(MalformedSafetensors, EveryBitFlipIsRefusedOrHarmless) {
  const std::string file = small_file();
  int num_refused = 0;
  for (std::size_t bit = 0; bit < 8 * (file.size() - 26); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    num_refused += open(flipped) != "accepted";  // `open` checks the invariants of the rest
  }
  // Flips inside names and metadata are another valid file; most others break a rule.
  EXPECT_GT(num_refused, 1000);
}

}  // namespace
}  // namespace lathe::io
