#include "lathe/io/storage/stored_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/core/testing/error_text.h"
#include "lathe/numerics/bit_stream.h"

namespace lathe::io {
namespace {

constexpr Storage kEvery[] = {Storage::Plain, Storage::Sparse, Storage::Compact};

Tensor normal_numbers(std::vector<std::int64_t> dims, unsigned seed) {
  Tensor tensor(DType::F32, std::move(dims));
  std::mt19937 random(seed);
  // A normal number by twelve even ones: the library's own differ from machine to machine.
  for (float& value : tensor.mutable_data<float>()) {
    value = -6;
    for (int i = 0; i < 12; ++i) value += static_cast<float>(random() % 65536) / 65536.0f;
  }
  return tensor;
}

Tensor random_mask(std::vector<std::int64_t> dims, unsigned kept_of_100, unsigned seed) {
  Tensor mask(DType::F32, std::move(dims));
  std::mt19937 random(seed);
  for (float& value : mask.mutable_data<float>()) value = random() % 100 < kept_of_100 ? 1 : 0;
  return mask;
}

Tensor masked(Tensor tensor, const Tensor& mask) {
  for (std::size_t i = 0; i < tensor.mutable_data<float>().size(); ++i)
    if (mask.data<float>()[i] == 0) tensor.mutable_data<float>()[i] = 0;
  return tensor;
}

// Rows of codes, two's complement, small ones more often; zero where the mask is.
Tensor random_codes(std::int64_t rows, std::int64_t columns, int width, const Tensor* mask,
                    unsigned seed) {
  Tensor codes(DType::U8, {rows, numerics::bytes_for_bits(columns * width)});
  const Tensor numbers = normal_numbers({rows, columns}, seed);
  for (std::int64_t r = 0; r < rows; ++r) {
    numerics::BitWriter writer(codes.mutable_data<std::uint8_t>().data() + r * codes.dim(1));
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(r * columns + c);
      const auto number = static_cast<std::int32_t>(std::lround(numbers.data<float>()[i]));
      const bool is_kept = mask == nullptr || mask->data<float>()[i] != 0;
      writer.put(is_kept ? static_cast<std::uint32_t>(number) & ((1u << width) - 1) : 0, width);
    }
  }
  return codes;
}

// Stores, prints, parses and restores; expects every tensor back to the bit.
StoredWeights round_trip(const State& weights, const StorageHints& hints, Storage storage) {
  StoredWeights stored = store_weights(weights, hints, storage);
  EXPECT_EQ(parse_forms(print_forms(stored.forms)), stored.forms);
  const State restored = restore_weights(stored);
  EXPECT_EQ(restored.size(), weights.size());
  for (const auto& [name, tensor] : weights)
    EXPECT_TRUE(identical(restored.at(name), tensor)) << name;
  return stored;
}

TEST(StoredWeights, GiveBackWeightsUnderAMask) {
  const Tensor mask = random_mask({64, 128}, 30, 1);
  const State weights{{"w", masked(normal_numbers({64, 128}, 2), mask)}, {"w.mask", mask}};
  const StorageHints hints{{"w", {.mask = "w.mask"}}, {"w.mask", {}}};
  for (const Storage storage : kEvery) round_trip(weights, hints, storage);
  const StoredWeights stored = store_weights(weights, hints, Storage::Sparse);
  EXPECT_EQ(describe(stored.forms.at("w.mask")), "bits");
  EXPECT_EQ(describe(stored.forms.at("w")), "under w.mask");
  EXPECT_EQ(stored.tensors.at("w.mask").num_bytes(), 64 * 128 / 8);
  std::int64_t kept = 0;
  for (const float value : mask.data<float>()) kept += value != 0 ? 1 : 0;
  EXPECT_EQ(stored.tensors.at("w").num_bytes(), 4 * kept);
}

TEST(StoredWeights, GiveBackCodesUnderAMask) {
  const Tensor mask = random_mask({50, 37}, 20, 1);
  for (const int width : {2, 3, 4, 8, 12}) {
    const State weights{{"w.codes", random_codes(50, 37, width, &mask, 3)}, {"w.mask", mask}};
    const StorageHints hints{{"w.codes", {.width = width, .columns = 37, .mask = "w.mask"}}};
    for (const Storage storage : kEvery) round_trip(weights, hints, storage);
    const StoredWeights stored = store_weights(weights, hints, Storage::Sparse);
    std::int64_t kept = 0;
    for (const float value : mask.data<float>()) kept += value != 0 ? 1 : 0;
    EXPECT_EQ(stored.tensors.at("w.codes").num_bytes(), (kept * width + 7) / 8) << width;
  }
}

TEST(StoredWeights, CodeWhatIsUnevenAndLeaveWhatIsNot) {
  const State weights{{"codes", random_codes(200, 64, 4, nullptr, 1)},
                      {"noise", [] {
                         Tensor noise(DType::U8, {4096});
                         std::mt19937 random(5);
                         for (std::uint8_t& byte : noise.mutable_data<std::uint8_t>())
                           byte = static_cast<std::uint8_t>(random());
                         return noise;
                       }()}};
  const StorageHints hints{{"codes", {.width = 4, .columns = 64}}};
  const StoredWeights stored = round_trip(weights, hints, Storage::Compact);
  // Rounded normal numbers have an entropy of 2.1 bits.
  EXPECT_LT(stored.tensors.at("codes").num_bytes(), 200 * 64 * 2.2 / 8);
  EXPECT_FALSE(stored.forms.contains("noise"));
  EXPECT_TRUE(store_weights(weights, hints, Storage::Sparse).forms.empty());
}

TEST(StoredWeights, StoreAMaskThatTransposesWhatItMasks) {
  const Tensor mask = random_mask({64, 40}, 25, 1);
  Tensor weight = normal_numbers({40, 64}, 2);
  for (std::size_t r = 0; r < 40; ++r)
    for (std::size_t c = 0; c < 64; ++c)
      if (mask.data<float>()[c * 40 + r] == 0) weight.mutable_data<float>()[r * 64 + c] = 0;
  const State weights{{"w", weight}, {"m", mask}};
  const StoredWeights stored =
      round_trip(weights, {{"w", {.mask = "m", .is_transposed = true}}}, Storage::Sparse);
  EXPECT_TRUE(stored.forms.at("w").is_transposed);
}

TEST(StoredWeights, FindZerosThatNobodyMentioned) {
  const Tensor mask = random_mask({64, 64}, 50, 1);
  const State weights{{"w", masked(normal_numbers({64, 64}, 2), mask)}};
  for (const Storage storage : kEvery) round_trip(weights, {}, storage);
  EXPECT_EQ(describe(store_weights(weights, {}, Storage::Sparse).forms.at("w")), "bits");
}

TEST(StoredWeights, KeepWhatAMaskHides) {
  // Weights that are not zero under their mask, and a mask of nearly all ones.
  const State weights{{"w", normal_numbers({32, 32}, 2)}, {"m", random_mask({32, 32}, 99, 1)}};
  const StorageHints hints{{"w", {.mask = "m"}}, {"m", {}}};
  for (const Storage storage : kEvery) round_trip(weights, hints, storage);
  const StoredWeights stored = store_weights(weights, hints, Storage::Sparse);
  EXPECT_FALSE(stored.forms.contains("w"));
  EXPECT_EQ(stored.tensors.at("m").num_bytes(), 128);
}

TEST(StoredWeights, GiveBackEveryKindOfTensor) {
  State weights{{"scalar", Tensor::from<float>({}, {2.5f})}, {"empty", Tensor(DType::F32, {0, 7})}};
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32,
                            DType::I16, DType::I8, DType::U8, DType::Bool}) {
    weights["ones " + std::string(name(dtype))] = random_mask({40, 40}, 50, 1).converted(dtype);
    weights["zeros " + std::string(name(dtype))] = Tensor(dtype, {30, 50});
  }
  weights["wide codes"] = random_codes(30, 30, 4, nullptr, 1);  // taken for rows of 3 bits below
  weights["minus zero"] = Tensor::from<float>({64}, std::vector<float>(64, -0.0f));
  for (const Storage storage : kEvery)
    round_trip(weights, {{"wide codes", {.width = 4, .columns = 29}}}, storage);
}

TEST(StoredWeights, AreTheSameEverywhere) {
  const Tensor mask = random_mask({16, 24}, 40, 1);
  const State weights{{"w", random_codes(16, 24, 4, &mask, 3)}, {"m", mask}};
  const StorageHints hints{{"w", {.width = 4, .columns = 24, .mask = "m"}}};
  const StoredWeights stored = store_weights(weights, hints, Storage::Compact);
  EXPECT_EQ(
      print_forms(stored.forms),
      R"({"m":{"bits":{},"crc32":531264533,"dtype":"F32","shape":[16,24],"value":1065353216},)"
      R"("w":{"coded":[56],"columns":24,"crc32":2028092546,"dtype":"U8","mask":"m",)"
      R"("order":"sign-magnitude","shape":[16,12],"width":4}})");
}

class AlteredWeights : public testing::Test {
 protected:
  AlteredWeights() {
    const Tensor mask = random_mask({16, 24}, 40, 1);
    stored_ = store_weights({{"w", random_codes(16, 24, 4, &mask, 3)}, {"m", mask}},
                            {{"w", {.width = 4, .columns = 24, .mask = "m"}}}, Storage::Compact);
  }
  template <typename Change>
  std::string refused(const Change& change) const {
    StoredWeights altered = stored_;
    change(altered);
    return error_text([&] { restore_weights(altered); });
  }
  StoredWeights stored_;
};

TEST_F(AlteredWeights, AreRefusedByName) {
  EXPECT_EQ(refused([](StoredWeights& s) { s.tensors.erase("w"); }),
            "tensor \"w\": has a form, but is not there");
  EXPECT_EQ(refused([](StoredWeights& s) { s.forms.at("w").mask = "other"; }),
            "tensor \"w\": mask \"other\" is missing");
  EXPECT_EQ(refused([](StoredWeights& s) { s.forms.at("w").mask = "w"; }),
            "tensor \"w\": its mask \"w\" is itself under a mask");
  EXPECT_EQ(
      refused([](StoredWeights& s) { s.tensors.at("m").mutable_data<std::uint8_t>()[3] ^= 1; }),
      "tensor \"m\": its checksum differs from what was stored: the file was altered");
  EXPECT_EQ(refused([](StoredWeights& s) {
              s.forms.at("w").dims = {16, 13};
            }),
            "tensor \"w\": rows of 24 codes of 4 bits do not fill [16,13] of u8");
  EXPECT_EQ(refused([](StoredWeights& s) {
              s.forms.at("m").dims = {1 << 24, 1 << 24};
            }),
            "tensor \"m\": f32 [16777216,16777216] cannot be what 48 bytes stand for");
  EXPECT_EQ(refused([](StoredWeights& s) {
              s.tensors["m"] = Tensor(DType::F32, {16, 24});
            }),
            "tensor \"m\": is f32 [16,24], expected a row of U8");
  EXPECT_EQ(refused([](StoredWeights& s) { s.tensors["m"] = Tensor(DType::U8, {3}); }),
            "tensor \"m\": needs 48 more bytes, but has 3");
  EXPECT_EQ(refused([](StoredWeights& s) { s.tensors["m"] = Tensor(DType::U8, {300}); }),
            "tensor \"m\": has 252 bytes more than its form needs");
  EXPECT_EQ(refused([](StoredWeights& s) { s.forms.at("w").fill = 16; }),
            "tensor \"w\": fill 16 or value 0 has more than 4 bits");
}

// Whatever happens to a file, reading it ends with tensors of the shapes it states or with a line
// that says why not.
TEST_F(AlteredWeights, NeverEndOtherwiseThanInAnError) {
  std::mt19937 random(1);
  const std::string forms = print_forms(stored_.forms);
  int accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    StoredWeights altered = stored_;
    std::string text = forms;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      if (random() % 2 == 0) {
        // Digits become digits, so that many texts are still sound.
        char& letter = text[random() % text.size()];
        letter = letter >= '0' && letter <= '9' ? static_cast<char>('0' + random() % 10)
                                                : static_cast<char>(32 + random() % 95);
      } else {
        Tensor& tensor = altered.tensors.at(random() % 2 == 0 ? "w" : "m");
        if (random() % 8 == 0)
          tensor = Tensor(DType::U8, {static_cast<std::int64_t>(random() % 200)});
        else if (tensor.num_bytes() > 0)
          tensor.mutable_data<std::uint8_t>()[random() %
                                              static_cast<std::size_t>(tensor.num_bytes())] =
              static_cast<std::uint8_t>(random());
      }
    }
    const std::string result = error_text([&] {
      altered.forms = parse_forms(text);
      const State restored = restore_weights(altered);
      for (const auto& [name, form] : altered.forms) EXPECT_EQ(restored.at(name).dims(), form.dims);
    });
    if (result == "no error") ++accepted;
    EXPECT_NE(result, "internal error");
    EXPECT_EQ(result.find('\n'), std::string::npos) << result;
  }
  // Only where a change changed nothing.
  EXPECT_LT(accepted, 600);
}

TEST(StoredForms, AreRefusedWhereTheyAreNoForms) {
  const auto refused = [](std::string_view text) { return error_text([&] { parse_forms(text); }); };
  EXPECT_EQ(refused("[]"), "found array, expected an object");
  EXPECT_EQ(refused(R"({"a":1})"), "tensor \"a\": found number, expected an object");
  EXPECT_EQ(refused(R"({"a":{"shape":[1],"crc32":0}})"), "tensor \"a\": has no dtype");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F4","shape":[1],"crc32":0}})"),
            "tensor \"a\": dtype \"F4\" cannot be computed with");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","shape":[-1],"crc32":0}})"),
            "tensor \"a\": shape: found -1, expected a whole number up to 281474976710656");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","shape":[1],"crc32":0,"x":1}})"),
            "tensor \"a\": unknown key \"x\"");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","shape":[1],"crc32":0,"value":1,"coded":[3]}})"),
            "tensor \"a\": both value and coded say what the symbols are");
  EXPECT_EQ(refused(R"({"a":{"dtype":"F32","shape":[1],"crc32":0,"mask":"m","bits":{}}})"),
            "tensor \"a\": both mask and bits say which symbols are there");
}

TEST(Storages, AreKnownByName) {
  for (const Storage storage : kEvery) EXPECT_EQ(parse_storage(name(storage)), storage);
  EXPECT_EQ(error_text([] { parse_storage("compakt"); }),
            "unknown storage \"compakt\"; known: plain, sparse, compact\n"
            "hint: did you mean \"compact\"?");
}

}  // namespace
}  // namespace lathe::io
