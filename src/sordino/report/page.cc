#include "sordino/report/page.h"

#include <fmt/format.h>

#include <string_view>

#include "sordino/base/sha256.h"
#include "sordino/report/internal/page_assets.h"

namespace sordino {
namespace {

// "sha256-..." as a content security policy names a script or style.
std::string SourceHash(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = Sha256Hex(text);
  std::string base64;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << 4U | static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    base64 += kDigits[bits >> static_cast<unsigned>(count) & 63U];
  }
  // 256 bits leave four, and two more are zero.
  base64 += kDigits[bits << 2U & 63U];
  return "'sha256-" + base64 + "='";
}

// JSON inside a script element: it must not end it, nor begin a comment in it.
std::string ScriptSafe(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string ReportPage(const ReportContent& content) {
  const std::string_view chart = internal::ChartLibrary();
  const std::string_view script = internal::PageScript();
  const std::string_view style = internal::PageStyle();
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; "
      "form-action 'none'{}",
      SourceHash(chart), SourceHash(script), SourceHash(style),
      content.is_watched ? "; connect-src 'self'" : "");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>Sordino report</title>\n"
      "<style>{}</style>\n</head>\n<body{}>\n<noscript>This page draws its data with a script of "
      "its own, and your browser runs none.</noscript>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      policy, style, content.is_watched ? " data-watched" : "", ScriptSafe(ReportJson(content)),
      chart, script);
}

}  // namespace sordino
