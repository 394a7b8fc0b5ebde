#include "lathe/report/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

bool is_installed(const char* program) {
  return run_program({program, "--version"}, "").has_value();
}

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

// Programs are looked up on PATH, so an empty one is a machine without them.
class WithoutPrograms {
 public:
  WithoutPrograms() : path_(std::getenv("PATH")) { setenv("PATH", "/nonexistent", 1); }
  ~WithoutPrograms() { setenv("PATH", path_.c_str(), 1); }

 private:
  std::string path_;
};

TEST(RenderSvg, DrawsDotText) {
  if (!is_installed("dot")) GTEST_SKIP() << "graphviz is not installed";
  EXPECT_THAT(render_svg("digraph { a -> b }"), HasSubstr("<svg"));
}

TEST(RenderSvg, RepeatsWhatGraphvizSaysAboutBadText) {
  if (!is_installed("dot")) GTEST_SKIP() << "graphviz is not installed";
  EXPECT_THAT(message_of([] { render_svg("digraph {"); }),
              testing::AllOf(StartsWith("dot ended with status 1: "), HasSubstr("syntax error")));
}

TEST(RenderSvg, SaysHowToInstallGraphviz) {
  const WithoutPrograms without;
  EXPECT_EQ(message_of([] { render_svg("digraph {}"); }),
            "graphviz is not installed: apt-get install graphviz");
}

TEST(SvgToPng, MakesAPngFile) {
  if (!is_installed("rsvg-convert")) GTEST_SKIP() << "rsvg-convert is not installed";
  const std::string png =
      svg_to_png("<svg xmlns='http://www.w3.org/2000/svg' width='8' height='4'/>");
  EXPECT_THAT(png, StartsWith("\x89PNG\r\n"));
}

TEST(SvgToPng, SaysHowToInstallTheConverter) {
  const WithoutPrograms without;
  EXPECT_EQ(message_of([] { svg_to_png("<svg/>"); }),
            "rsvg-convert is not installed: apt-get install librsvg2-bin");
}

TEST(SvgToPng, RefusesADocumentThatIsNoSvg) {
  if (!is_installed("rsvg-convert")) GTEST_SKIP() << "rsvg-convert is not installed";
  EXPECT_THAT(message_of([] { svg_to_png("no markup"); }),
              StartsWith("rsvg-convert ended with status"));
}

}  // namespace
}  // namespace lathe::report
