// A folder of images with one subfolder for each class: FOLDER/<class name>/*.{png,jpg,jpeg}.
//
// The class names are declared (without them they are "0", "1", ...): a subfolder that was not
// declared is refused, because the set of classes must not be found out from private data. A
// declared class without a subfolder has no examples. Images of another size than the declared one
// are resized to it by a declared rule (image_resize.h): a refusal would reveal that there is such
// a record. Files whose names start with a dot are skipped; any other file that is not an image is
// refused rather than left out silently. Links that lead out of the folder are refused.
#ifndef SORDINO_DATA_IMAGE_FOLDER_H_
#define SORDINO_DATA_IMAGE_FOLDER_H_

#include <cstdint>
#include <filesystem>

#include "sordino/data/dataset.h"
#include "sordino/data/image_resize.h"

namespace sordino {

struct ImageFolderOptions {
  // The images lie in subfolders of classes. Without it they lie in the folder itself and the
  // labels of the dataset are undefined.
  bool labelled = true;
  std::uint8_t background = 0;  // below transparent pixels
  bool named = false;           // the names of the files are kept
  ResizeRule resize = ResizeRule::kStretch;
};

// One image, without a label.
Dataset ReadOneImage(const std::filesystem::path& file, const DatasetDeclaration& declaration,
                     const ImageFolderOptions& options = {});

// Classes in their declared order, the files of a class in the order of their names (by bytes).
// Records to predict are named by their files, relative to the folder (Dataset::ids).
Dataset ReadImageFolder(const std::filesystem::path& folder, const DatasetDeclaration& declaration,
                        const ImageFolderOptions& options = {});

}  // namespace sordino

#endif  // SORDINO_DATA_IMAGE_FOLDER_H_
