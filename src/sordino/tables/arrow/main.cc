// sordino-arrow: a Parquet or Arrow file as CSV in UTF-8 on standard output (tables/arrow_file.h).
//
//   sordino-arrow --header|--no-header FILE
//
// Exits with 1, and what Arrow says on standard error, where the file cannot be read. What it says
// may hold cells: sordino shows it only to those who may see the data.
#include <arrow/array.h>
#include <arrow/compute/cast.h>
#include <arrow/csv/writer.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Batches = std::function<arrow::Result<std::shared_ptr<arrow::RecordBatch>>()>;
struct Table {
  std::shared_ptr<arrow::Schema> schema;
  Batches next;  // nullptr behind the last
};

arrow::Result<Table> OpenParquet(const std::shared_ptr<arrow::io::RandomAccessFile>& file) {
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(file));
  std::unique_ptr<parquet::arrow::FileReader> opened;
  ARROW_RETURN_NOT_OK(builder.Build(&opened));
  const std::shared_ptr<parquet::arrow::FileReader> reader = std::move(opened);
  std::vector<int> groups(static_cast<std::size_t>(reader->num_row_groups()));
  std::iota(groups.begin(), groups.end(), 0);
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatchReader> batches,
                        reader->GetRecordBatchReader(groups));
  return Table{batches->schema(), [reader, batches]() { return batches->Next(); }};
}

arrow::Result<Table> OpenArrow(const std::shared_ptr<arrow::io::RandomAccessFile>& file) {
  ARROW_ASSIGN_OR_RAISE(const auto reader, arrow::ipc::RecordBatchFileReader::Open(file));
  const auto place = std::make_shared<int>(0);
  return Table{reader->schema(),
               [reader, place]() -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
                 if (*place == reader->num_record_batches()) return nullptr;
                 return reader->ReadRecordBatch((*place)++);
               }};
}

// As what a column is written; nullptr for lists and records, which are no cells.
std::shared_ptr<arrow::DataType> WrittenType(const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::DICTIONARY) {
    return WrittenType(static_cast<const arrow::DictionaryType&>(*type).value_type());
  }
  // Whole seconds of the same moment, in UTC.
  if (type->id() == arrow::Type::TIMESTAMP) return arrow::timestamp(arrow::TimeUnit::SECOND);
  return arrow::is_nested(type->id()) ? nullptr : type;
}

arrow::Result<std::shared_ptr<arrow::RecordBatch>> Written(
    const std::shared_ptr<arrow::RecordBatch>& batch) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> columns;
  arrow::compute::CastOptions options = arrow::compute::CastOptions::Safe();
  options.allow_time_truncate = true;
  for (int i = 0; i < batch->num_columns(); ++i) {
    const std::shared_ptr<arrow::DataType> type = WrittenType(batch->column(i)->type());
    if (type == nullptr) continue;
    std::shared_ptr<arrow::Array> column = batch->column(i);
    if (!column->type()->Equals(*type)) {
      ARROW_ASSIGN_OR_RAISE(column, arrow::compute::Cast(*column, type, options));
    }
    fields.push_back(arrow::field(batch->schema()->field(i)->name(), type));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch->num_rows(),
                                  std::move(columns));
}

arrow::Status WriteTable(const std::string& path, bool header) {
  ARROW_ASSIGN_OR_RAISE(const auto file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(const auto beginning, file->ReadAt(0, 4));
  const bool is_parquet = std::string_view(*beginning) == "PAR1";
  ARROW_ASSIGN_OR_RAISE(const Table table, is_parquet ? OpenParquet(file) : OpenArrow(file));
  ARROW_ASSIGN_OR_RAISE(const auto out, arrow::io::FileOutputStream::Open(STDOUT_FILENO));
  arrow::csv::WriteOptions options = arrow::csv::WriteOptions::Defaults();
  options.batch_size = 1 << 14;
  options.include_header = header;
  ARROW_ASSIGN_OR_RAISE(auto batch, arrow::RecordBatch::MakeEmpty(table.schema));
  while (batch != nullptr) {
    ARROW_ASSIGN_OR_RAISE(const auto written, Written(batch));
    ARROW_RETURN_NOT_OK(arrow::csv::WriteCSV(*written, options, out.get()));
    options.include_header = false;  // stood in front of the empty batch
    ARROW_ASSIGN_OR_RAISE(batch, table.next());
  }
  return out->Close();
}

}  // namespace

int main(int count, char** words) {
  const std::string_view header = count == 3 ? words[1] : "";
  if (header != "--header" && header != "--no-header") {
    std::cerr << "sordino-arrow --header|--no-header FILE writes a Parquet or Arrow file as CSV.\n";
    return 2;
  }
  const arrow::Status status = WriteTable(words[2], header == "--header");
  if (status.ok()) return 0;
  std::cerr << status.ToString() << '\n';
  return 1;
}
