#include "sordino/experiments/reproduction_page.h"

#include <fmt/format.h>

#include "sordino/base/progress.h"
#include "sordino/experiments/internal/result_table.h"
#include "sordino/experiments/results.h"
#include "sordino/report/svg.h"

namespace sordino {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The documents, repeated</title>
<style>
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
section{border-top:1px solid #8886;margin-top:3rem}
.table{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:left;padding:.2rem .7rem;border-bottom:1px solid #8884;white-space:nowrap}
svg{max-width:100%;height:auto}
.source,.spent{color:#777}
.failed{font-weight:bold}
</style>
</head>
<body>
<main>
<h1>The documents, repeated</h1>
)";

std::string Paragraph(std::string_view kind, std::string_view text) {
  return text.empty()
             ? ""
             : fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                           SvgEscaped(text));
}

std::string Headed(std::string_view heading, std::string_view text) {
  return fmt::format("<h3>{}</h3>\n{}", heading, Paragraph("", text));
}

std::string TableHtml(const internal::ResultTable& table) {
  std::string html = "<div class=\"table\"><table>\n<thead><tr>";
  for (const std::string& name : table.head) {
    html += fmt::format("<th scope=\"col\">{}</th>", SvgEscaped(name));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const internal::ResultTable::Row& row : table.rows) {
    html += "<tr>";
    for (const std::string& cell : row.cells) {
      html += fmt::format("<td>{}</td>", SvgEscaped(cell));
    }
    if (row.failed > 0) html += fmt::format("<td class=\"failed\">{} failed</td>", row.failed);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string MeasuredHtml(const ReproducedExperiment& reproduced) {
  const Experiment& experiment = reproduced.experiment;
  if (!reproduced.refusal.empty()) return Paragraph("failed", reproduced.refusal);
  const auto [seconds, failed] = internal::TotalsOf(reproduced.results);
  std::string html = Paragraph("", experiment.about);
  html += fmt::format("<pre>{}</pre>\n", SvgEscaped(reproduced.command));
  html += Paragraph("spent", fmt::format("The {} form: {} cells, {} repeats, {} in all. {}",
                                         experiment.quick ? "quick" : "full",
                                         reproduced.results.size(), experiment.repeats,
                                         HumanDuration(seconds), SpendingSentence(experiment)));
  if (failed > 0) html += Paragraph("failed", fmt::format("{} of the cells failed.", failed));
  for (const Picture& picture : experiment.pictures) {
    html +=
        fmt::format("<figure>{}</figure>\n", PictureSvg(experiment, picture, reproduced.results));
  }
  for (std::size_t part = 0; part < experiment.parts.size(); ++part) {
    if (experiment.parts.size() > 1) {
      html += fmt::format("<h4>{}</h4>\n", SvgEscaped(experiment.parts[part].name));
    }
    html += TableHtml(internal::ResultTableOf(experiment, part, reproduced.results));
  }
  return html;
}

}  // namespace

std::string ReproductionPage(std::span<const ReproducedExperiment> experiments) {
  std::string html(kHead);
  html += "<nav><ol>\n";
  for (const ReproducedExperiment& reproduced : experiments) {
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", SvgEscaped(reproduced.experiment.name),
                        SvgEscaped(reproduced.experiment.title));
  }
  html += "</ol></nav>\n";
  for (const ReproducedExperiment& reproduced : experiments) {
    const Experiment& experiment = reproduced.experiment;
    html += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", SvgEscaped(experiment.name),
                        SvgEscaped(experiment.title));
    html += Paragraph("source", experiment.source);
    if (!experiment.document.empty()) html += Headed("The document says", experiment.document);
    html += Headed("We measured", "") + MeasuredHtml(reproduced);
    if (!experiment.differs.empty()) html += Headed("Why they differ", experiment.differs);
    html += "</section>\n";
  }
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace sordino
