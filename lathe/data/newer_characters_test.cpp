#include "lathe/data/newer_characters.h"

#include <gtest/gtest.h>

#include "lathe/data/unicode_classes.h"

namespace lathe::data {
namespace {

// Code points in lines whose ids differed from those of Hugging Face's tokenizers 0.23.2, of the
// ends of runs, and beside them.
TEST(NewerCharacters, AreWordsWhateverTheTablesOfTheMachine) {
  for (const char32_t c : {0x2ED3E, 0x13737, 0x13D5E, 0x2EC0F, 0x1612B, 0x2ED05, 0x10D75, 0x14127,
                           0x11391, 0x0897, 0x13460, 0x143FA, 0x2EBF0, 0x2EE5D, 0x1E5FA})
    EXPECT_TRUE(is_word_character(c)) << std::hex << static_cast<std::uint32_t>(c);
  for (const char32_t c :
       {0x10D6E, 0x1138A, 0x113D4, 0x11BE1, 0x16D6D, 0x143FB, 0x2EE5E, 0x1CC00, 0x1E5FF, 0x10FFFD})
    EXPECT_FALSE(is_word_character(c)) << std::hex << static_cast<std::uint32_t>(c);
}

}  // namespace
}  // namespace lathe::data
