#include "sordino/report/kernel_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(KernelPicture, ShowsWhatHoldsAndWhatTheStepDid) {
  const std::string svg = KernelSvg({{.clipping = "none",
                                      .symmetric = true,
                                      .positive_form = true,
                                      .positive_eigenvalues = true,
                                      .predicted = 1e-3,
                                      .measured = 1e-3},
                                     {.clipping = "local-flat",
                                      .symmetric = false,
                                      .positive_form = false,
                                      .positive_eigenvalues = true,
                                      .least_form = -0.25,
                                      .predicted = -1e-4,
                                      .measured = -1e-4}},
                                    "two <clippings>");
  EXPECT_THAT(svg, HasSubstr("local-flat"));
  EXPECT_THAT(svg, HasSubstr("least -0.25"));
  EXPECT_THAT(svg, HasSubstr("class=\"gain\""));
  EXPECT_THAT(svg, HasSubstr("class=\"loss\""));
  EXPECT_THAT(svg, HasSubstr("+0.0001"));  // the loss rises
  EXPECT_THAT(svg, HasSubstr("two &lt;clippings&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
}

TEST(KernelPicture, OfNothingButZerosIsStillOne) {
  const std::string svg = KernelSvg({{.clipping = "none"}}, "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace sordino
