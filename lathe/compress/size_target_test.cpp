#include "lathe/compress/size_target.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

TEST(SizeTarget, IsAFactorOrBytes) {
  EXPECT_EQ(parse_size_target("10x").bytes_for(17'800'009), 1'780'000);
  EXPECT_EQ(parse_size_target("1.5x").bytes_for(3), 2);
  EXPECT_EQ(parse_size_target("1MB").bytes_for(17'800'000), 1'000'000);
  EXPECT_EQ(parse_size_target("1.78MB").bytes_for(1), 1'780'000);
  EXPECT_EQ(parse_size_target("512KiB").bytes_for(1), 524'288);
  EXPECT_EQ(parse_size_target("4096").bytes_for(1), 4096);
  EXPECT_EQ(parse_size_target("4096B").bytes_for(1), 4096);
}

TEST(SizeTarget, RefusesWhatIsNeither) {
  EXPECT_EQ(error_text([] { parse_size_target("10y"); }),
            "a size of \"10y\": expected a factor such as 10x, or bytes such as 1.5MB or 512KiB");
  for (const char* text : {"", "x", "MB", "-1MB", "0", "nanMB", "1 MB", "1e30GB", "10xx"})
    EXPECT_NE(error_text([&] { parse_size_target(text); }), "no error") << text;
  EXPECT_EQ(error_text([] { parse_size_target("0.5x"); }),
            "a size of \"0.5x\": expected a factor of 1 or more");
}

TEST(SizeTarget, WritesBytesForPeople) {
  EXPECT_EQ(bytes_text(912), "912 bytes");
  EXPECT_EQ(bytes_text(23'151), "23.2 kB");
  EXPECT_EQ(bytes_text(1'780'000), "1.78 MB");
  EXPECT_EQ(bytes_text(440'000'000'000), "440.00 GB");
}

}  // namespace
}  // namespace lathe::compress
