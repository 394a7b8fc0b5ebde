#include "lathe/study/option_reader.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/study/pruners/pruner.h"

namespace lathe::study {
namespace {

TEST(OptionReader, TakesANameAndItsOptionsApart) {
  const NamedOptions parsed = parse_named_options("tpe:gamma=0.2,candidates=48,group=true");
  EXPECT_EQ(parsed.name, "tpe");
  EXPECT_EQ(parsed.options, (Options{{"candidates", "48"}, {"gamma", "0.2"}, {"group", "true"}}));
  EXPECT_EQ(parse_named_options("random").name, "random");
  EXPECT_TRUE(parse_named_options("random:").options.empty());
}

TEST(OptionReader, RefusesWhatIsNotKeyAndValue) {
  EXPECT_EQ(error_text([] { parse_named_options("tpe:gamma"); }),
            "\"tpe:gamma\": expected key=value, not \"gamma\"");
  EXPECT_EQ(error_text([] { parse_named_options("tpe:a=1,,b=2"); }),
            "\"tpe:a=1,,b=2\": expected key=value, not \"\"");
  EXPECT_EQ(error_text([] { parse_named_options("tpe:a=1,a=2"); }),
            "\"tpe:a=1,a=2\": option \"a\" is given twice");
}

TEST(OptionReader, ReadsValuesOfEachKind) {
  const Options options = {{"on", "true"}, {"count", "12"}, {"rate", "2.5e-1"}, {"kind", "sobol"}};
  const OptionReader read(options);
  EXPECT_TRUE(read.flag("on", false));
  EXPECT_EQ(read.whole("count", 3), 12);
  EXPECT_EQ(read.number("rate", 1), 0.25);
  EXPECT_EQ(read.word("kind", "halton", {"halton", "sobol"}), "sobol");
  EXPECT_EQ(read.whole("absent", 3), 3);
  EXPECT_EQ(read.word("absent", "halton", {"halton", "sobol"}), "halton");
  EXPECT_FALSE(read.has("absent"));
}

TEST(OptionReader, NamesTheOptionTheValueAndWhatWasExpected) {
  const Options options = {{"on", "yes"}, {"count", "2x"}, {"rate", "nan"}, {"kind", "sobel"}};
  const OptionReader read(options);
  EXPECT_EQ(error_text([&] { read.flag("on", false); }),
            "option \"on\": \"yes\" is not true or false");
  EXPECT_EQ(error_text([&] { read.whole("count", 3, 1); }),
            "option \"count\": \"2x\" is not a whole number, at least 1");
  EXPECT_EQ(error_text([&] { read.number("rate", 0.5, 0, 1); }),
            "option \"rate\": \"nan\" is not a number from 0 to 1");
  EXPECT_EQ(error_text([&] {
              read.word("kind", "halton", {"halton", "sobol"});
            }),
            "unknown value of option \"kind\" \"sobel\"; known: halton, sobol\nhint: did you mean "
            "\"sobol\"?");
}

TEST(OptionReader, MakingAPrunerNamesTheNearestOfWhatIsUnknown) {
  EXPECT_NE(make_pruner("none"), nullptr);
  EXPECT_NE(error_text([] { make_pruner("nonne"); }).find("did you mean \"none\"?"),
            std::string::npos);
  EXPECT_EQ(error_text([] { make_pruner("none:patience=3"); }),
            "pruner \"none\": unknown option \"patience\"; it has no options");
  EXPECT_EQ(error_text([] {
              require_known({{"gama", "1"}}, {{"candidates", ""}, {"gamma", ""}});
            }),
            "unknown option \"gama\"; known: candidates, gamma\nhint: did you mean \"gamma\"?");
}

}  // namespace
}  // namespace lathe::study
