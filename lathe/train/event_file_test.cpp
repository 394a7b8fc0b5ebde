#include "lathe/train/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "lathe/io/testing/scratch_directory.h"

namespace lathe::train {
namespace {

// Bit by bit, from the polynomial 0x1EDC6F41 itself: shares nothing with the writer's table.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t register_ = 0xFFFFFFFF;
  for (const char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {  // least significant bit first
      const std::uint32_t in = static_cast<std::uint8_t>(byte) >> bit & 1;
      const std::uint32_t out = register_ >> 31;
      register_ = register_ << 1 ^ (in != out ? 0x1EDC6F41u : 0);
    }
  }
  std::uint32_t reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (register_ >> bit & 1) << (31 - bit);
  return ~reversed;
}

std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xA282EAD8u;
  return rotated << 15 | rotated >> 17;
}

template <typename T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

struct Field {
  std::uint64_t number = 0;
  std::uint64_t integer = 0;
  double real = 0;
  std::string_view bytes;
};

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.at(0));
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const std::uint64_t tag = take_varint(message);
    Field field{.number = tag >> 3, .bytes = {}};
    if ((tag & 7) == 0) field.integer = take_varint(message);
    if ((tag & 7) == 1) field.real = take<double>(message);
    if ((tag & 7) == 5) field.real = take<float>(message);
    if ((tag & 7) == 2) {
      const std::uint64_t size = take_varint(message);
      field.bytes = message.substr(0, size);
      message.remove_prefix(size);
    }
    fields.push_back(field);
  }
  return fields;
}

struct Event {
  std::int64_t step = -1;
  std::string file_version = {};
  bool is_restart = false;
  std::map<std::string, double> scalars = {};
  bool operator==(const Event&) const = default;
};

std::vector<Event> read_events(std::string_view file) {
  std::vector<Event> events;
  while (!file.empty()) {
    const std::string_view header = file.substr(0, 8);
    const auto length = take<std::uint64_t>(file);
    EXPECT_EQ(unmasked(take<std::uint32_t>(file)), crc32c(header));
    const std::string_view payload = file.substr(0, length);
    file.remove_prefix(length);
    EXPECT_EQ(unmasked(take<std::uint32_t>(file)), crc32c(payload));
    Event event;
    for (const Field& field : fields_of(payload)) {
      if (field.number == 1) {
        EXPECT_GT(field.real, 1.6e9) << "seconds since 1970";
      }
      if (field.number == 2) event.step = static_cast<std::int64_t>(field.integer);
      if (field.number == 3) event.file_version = field.bytes;
      if (field.number == 7) event.is_restart = fields_of(field.bytes).at(0).integer == 1;
      if (field.number != 5) continue;
      for (const Field& value : fields_of(field.bytes)) {
        const std::vector<Field> parts = fields_of(value.bytes);
        event.scalars[std::string(parts.at(0).bytes)] = parts.at(1).real;
      }
    }
    events.push_back(event);
  }
  return events;
}

TEST(MaskedCrc32c, MatchesThePublishedCheckValue) {
  EXPECT_EQ(unmasked(masked_crc32c("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

TEST(EventFile, IsReadBackByAnIndependentReader) {
  const io::ScratchDirectory scratch;
  EventFile file(scratch.path(), 0);
  file.write(1, {{"train/loss", 0.5}, {"train/learning_rate", 0.25}});
  file.write(300, {{"validation/accuracy", 0.875}});

  const std::string name = file.path().filename().string();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.")) << name;
  const std::vector<Event> expected{
      {.step = 0, .file_version = "brain.Event:2"},
      {.step = 1, .scalars = {{"train/loss", 0.5}, {"train/learning_rate", 0.25}}},
      {.step = 300, .scalars = {{"validation/accuracy", 0.875}}}};
  EXPECT_EQ(read_events(scratch.read(name)), expected);
}

TEST(EventFile, SaysFromWhichStepAResumedRunGoesOn) {
  const io::ScratchDirectory scratch;
  const EventFile first(scratch.path(), 0);
  const EventFile second(scratch.path(), 20);
  EXPECT_NE(first.path(), second.path());
  const std::vector<Event> expected{{.step = 0, .file_version = "brain.Event:2"},
                                    {.step = 21, .is_restart = true}};
  EXPECT_EQ(read_events(scratch.read(second.path().filename().string())), expected);
}

}  // namespace
}  // namespace lathe::train
