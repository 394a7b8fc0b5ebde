#include "lathe/report/graph_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(GraphPage, HoldsThePictureAndItsTools) {
  const std::string page =
      graph_page("a <b>", "<?xml version=\"1.0\"?>\n<svg width=\"9\"><g class=\"node\"/></svg>\n");
  EXPECT_THAT(page, HasSubstr("<title>a &lt;b&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("<main>\n<svg width=\"9\"><g class=\"node\"/></svg>"));
  EXPECT_THAT(page, Not(HasSubstr("<?xml")));
  EXPECT_THAT(page, HasSubstr("type=\"search\""));
  EXPECT_THAT(page, HasSubstr("default-src 'none'")) << "nothing is loaded";
}

}  // namespace
}  // namespace lathe::report
