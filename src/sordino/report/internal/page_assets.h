// The files that every page holds, embedded when the program is built (cmake/SordinoPage.cmake).
#ifndef SORDINO_REPORT_INTERNAL_PAGE_ASSETS_H_
#define SORDINO_REPORT_INTERNAL_PAGE_ASSETS_H_

#include <string_view>

namespace sordino::internal {

std::string_view ChartLibrary();  // Chart.js
std::string_view PageScript();    // page/*.js
std::string_view PageStyle();     // page/page.css

}  // namespace sordino::internal

#endif  // SORDINO_REPORT_INTERNAL_PAGE_ASSETS_H_
