#include "sordino/data/image_folder.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/progress.h"
#include "sordino/data/image_codec.h"
#include "sordino/data/image_resize.h"
#include "sordino/data/internal/array_bytes.h"
#include "sordino/data/internal/data_format.h"
#include "sordino/data/internal/format_declaration.h"
#include "sordino/data/internal/parallel_items.h"
#include "sordino/tables/compressed_file.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxImageFile = std::uint64_t{256} << 20;
constexpr std::size_t kShares = 1000;  // that progress is shown in

struct LabelledFile {
  fs::path path;
  std::int64_t label = 0;
};

bool IsHidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool HasClassFolders(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !IsHidden(entry.path())) return true;
  }
  return false;
}

bool IsImageName(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

// What is in a folder is private, its names too: a file may have the name of a person.
std::string EntryText(const fs::path& path) {
  return fmt::format("it is {}", QuotedText(path.string(), 4096));
}

std::vector<fs::path> Entries(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> entries;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    if (!IsHidden(at->path())) entries.push_back(at->path());
  }
  if (failure) {
    throw DataError(fmt::format("the folder '{}' cannot be read: {}.", name, failure.message()),
                    EntryText(folder));
  }
  std::sort(entries.begin(), entries.end(), [](const fs::path& a, const fs::path& b) {
    return a.filename().native() < b.filename().native();
  });
  return entries;
}

// `root` is canonical. Follows every link of `path`.
void CheckStaysInside(const fs::path& root, const fs::path& path, const std::string& name) {
  std::error_code failure;
  const fs::path real = fs::canonical(path, failure);
  if (failure) {
    throw DataError(
        fmt::format("a link in the folder '{}' cannot be followed: {}.", name, failure.message()),
        EntryText(path));
  }
  const auto parts = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (parts.first != root.end()) {
    throw DataError(
        fmt::format("the folder '{}' has a link that leads out of it; copy the file instead.",
                    name),
        EntryText(path));
  }
}

void AddImages(const fs::path& root, const fs::path& folder, const std::string& name,
               std::int64_t label, std::vector<LabelledFile>& files) {
  for (const fs::path& entry : Entries(folder, name)) {
    CheckStaysInside(root, entry, name);
    std::error_code failure;
    if (!fs::is_regular_file(entry, failure) || !IsImageName(entry)) {
      throw DataError(
          fmt::format("the folder '{}' has something that is not an image file; only .png, .jpg "
                      "and .jpeg files belong there.",
                      name),
          EntryText(entry));
    }
    files.push_back({entry, label});
  }
}

std::vector<std::string> ClassNames(const DatasetDeclaration& declaration) {
  std::vector<std::string> names = declaration.class_names;
  if (names.empty()) {
    for (std::int64_t i = 0; i < declaration.classes; ++i) names.push_back(std::to_string(i));
  }
  return names;
}

std::vector<LabelledFile> FindFiles(const fs::path& root, const fs::path& folder,
                                    const std::vector<std::string>& names) {
  std::vector<std::pair<std::int64_t, fs::path>> classes;
  const std::string shown = folder.string();
  for (const fs::path& entry : Entries(folder, shown)) {
    CheckStaysInside(root, entry, shown);
    std::error_code failure;
    if (!fs::is_directory(entry, failure)) {
      throw DataError(
          fmt::format("the folder '{}' has something that is not a folder; images belong into the "
                      "subfolder of their class.",
                      shown),
          EntryText(entry));
    }
    const auto name = std::find(names.begin(), names.end(), entry.filename().string());
    if (name == names.end()) {
      throw DataError(
          fmt::format("the folder '{}' has a subfolder that is not one of the {} declared classes; "
                      "declare it or remove it.",
                      shown, names.size()),
          EntryText(entry));
    }
    classes.emplace_back(name - names.begin(), entry);
  }
  if (classes.empty()) {
    throw Error(fmt::format(
        "the folder '{}' has no subfolder of a declared class; images belong into such subfolders.",
        shown));
  }
  std::sort(classes.begin(), classes.end());
  std::vector<LabelledFile> files;
  for (const auto& [label, path] : classes) AddImages(root, path, shown, label, files);
  return files;
}

class Loader {
 public:
  // `name` is what errors call an image.
  Loader(std::string name, const DatasetDeclaration& declaration, const ImageFolderOptions& options)
      : name_(std::move(name)),
        resize_{
            .width = declaration.shape[2], .height = declaration.shape[1], .rule = options.resize} {
    image_options_.channels = declaration.shape[0];
    image_options_.background = options.background;
  }

  // uint8 [c, h, w] of the declared size.
  at::Tensor Load(const fs::path& path) const {
    try {
      return Read(path);
    } catch (const DataError& error) {
      throw DataError(error.what(), fmt::format("{}; {}", EntryText(path), error.detail()));
    } catch (const Error& error) {
      throw DataError(error.what(), EntryText(path));
    }
  }

 private:
  at::Tensor Read(const fs::path& path) const {
    const std::vector<std::byte> bytes = ReadImageFile(path);
    return Resized(DecodeImage(bytes, name_, image_options_), resize_);
  }

  // The errors of reading name the file.
  std::vector<std::byte> ReadImageFile(const fs::path& path) const {
    try {
      return ReadWholeFile(path, kMaxImageFile);
    } catch (const Error& error) {
      throw DataError(fmt::format("the image '{}' cannot be read or decompressed.", name_),
                      QuotedText(error.what(), 4096));
    }
  }

  std::string name_;
  Resize resize_;
  ImageOptions image_options_;
};

void CheckRequest(const DatasetDeclaration& declaration) {
  const std::vector<std::int64_t>& shape = declaration.shape;
  const bool fits = declaration.kind == InputKind::kImage && shape.size() == 3 &&
                    (shape[0] == 1 || shape[0] == 3) && shape[1] > 0 && shape[2] > 0;
  if (!fits) {
    throw Error(
        fmt::format("the declared shape is {}; a folder of images needs channels (1 or "
                    "3), height and width.",
                    internal::ShapeText(shape)));
  }
  const auto names = static_cast<std::int64_t>(declaration.class_names.size());
  if (names != 0 && names != declaration.classes) {
    throw Error(fmt::format("{} class names were declared for {} classes; give one for each.",
                            names, declaration.classes));
  }
}

}  // namespace

Dataset ReadOneImage(const std::filesystem::path& file, const DatasetDeclaration& declaration,
                     const ImageFolderOptions& options) {
  CheckRequest(declaration);
  const Loader loader(file.string(), declaration, options);
  Dataset data{declaration, loader.Load(file).unsqueeze(0), {}};
  data.ids.push_back(file.filename().string());
  return data;
}

Dataset ReadImageFolder(const std::filesystem::path& folder, const DatasetDeclaration& declaration,
                        const ImageFolderOptions& options) {
  CheckRequest(declaration);
  std::error_code failure;
  const fs::path root = fs::canonical(folder, failure);
  if (failure || !fs::is_directory(root)) {
    throw Error(fmt::format("'{}' is not a folder that can be read.", folder.string()));
  }
  std::vector<LabelledFile> files;
  if (options.labelled) {
    files = FindFiles(root, folder, ClassNames(declaration));
  } else {
    AddImages(root, folder, folder.string(), 0, files);
  }
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(files.size())};
  shape.insert(shape.end(), declaration.shape.begin(), declaration.shape.end());
  if (!internal::ArrayBytes(shape, 1)) {
    throw DataError(fmt::format("the images of the declared shape {} in '{}' are more than can be "
                                "counted.",
                                internal::ShapeText(declaration.shape), folder.string()),
                    fmt::format("they are {}", files.size()));
  }

  const Loader loader((folder / "...").string(), declaration, options);
  Dataset data{declaration, at::empty(shape, at::kByte), {}};
  // In shares, and for people only: how many images there are is private.
  const bool on_terminal = Progress::DetectStyle() == Progress::Style::kBar;
  Progress progress("reading images", kShares, std::cerr,
                    on_terminal ? Progress::Style::kBar : Progress::Style::kSilent);
  internal::ForEachItem(
      files.size(),
      [&](std::size_t i) {
        data.inputs.select(0, static_cast<std::int64_t>(i)).copy_(loader.Load(files[i].path));
      },
      [&](std::size_t done) { progress.Update(kShares * done / files.size()); });
  progress.Update(kShares);
  progress.Finish();
  if (options.named) {
    for (const LabelledFile& file : files) {
      data.ids.push_back(file.path.lexically_relative(folder).generic_string());
    }
  }
  if (!options.labelled) return data;
  data.labels = at::empty({shape[0]}, at::kLong);
  auto* const label = data.labels.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < files.size(); ++i) label[i] = files[i].label;
  CheckDeclaration(data);
  return data;
}

namespace internal {
namespace {

// Of any size: --resize declares the size and the rule, or --shape the size alone.
ResizeRule DeclareImages(const DataRequest& request, DatasetDeclaration& declaration) {
  DataRequest full = request;
  if (request.resize.empty()) {
    DeclareShape(full, false, declaration);
    return ResizeRule::kStretch;
  }
  const Resize resize = ParseResize(request.resize);
  if (full.shape.empty()) full.shape = {3, resize.height, resize.width};
  DeclareShape(full, false, declaration);
  if (full.shape[1] != resize.height || full.shape[2] != resize.width) {
    throw Error(fmt::format(
        "--resize {} makes pictures of the height {} and the width {}, and --shape declares {}; "
        "leave --shape out for colours, or give {}.",
        request.resize, resize.height, resize.width, internal::ShapeText(full.shape),
        internal::ShapeText(
            std::vector<std::int64_t>{full.shape[0], resize.height, resize.width})));
  }
  return resize.rule;
}

}  // namespace

const DataFormat& ImagesFormat() {
  static const DataFormat format = {
      .name = "images",
      .help = "a folder FOLDER/<class>/*.png or .jpg",
      .endings = {".png", ".jpg", ".jpeg"},
      .is_folder = [](const fs::path&) { return true; },
      .takes = {"shape", "resize", "classes", "class-names"},
      .needs = {{"shape", "the shape of an example", "--resize 64x64", "or --shape 3,64,64"},
                {"classes", "the classes", "--class-names cat,dog"}},
      .open = [](const DataRequest& request, DatasetDeclaration& declaration) -> DatasetReader {
        const ResizeRule rule = DeclareImages(request, declaration);
        return [rule](const SplitFiles& files, const DatasetDeclaration& declared,
                      const ReadOptions& options) {
          const fs::path& folder = files.inputs.front();
          ImageFolderOptions how;
          how.resize = rule;
          std::error_code failure;
          if (fs::is_regular_file(folder, failure)) {
            if (!options.labelled) return ReadOneImage(folder, declared, how);
            throw Error(
                fmt::format("'{}' is one image without a label; give a folder with a "
                            "subfolder for each class, or apply a model to it with "
                            "'sordino predict'.",
                            folder.string()));
          }
          how.named = !options.labelled;
          how.labelled = options.labelled || HasClassFolders(folder);
          return ReadImageFolder(folder, declared, how);
        };
      },
      .record_names = "file"};
  return format;
}

}  // namespace internal

}  // namespace sordino
