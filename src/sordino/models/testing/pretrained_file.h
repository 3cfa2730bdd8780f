// The pretrained MobileNet among the real datasets.
#ifndef SORDINO_MODELS_TESTING_PRETRAINED_FILE_H_
#define SORDINO_MODELS_TESTING_PRETRAINED_FILE_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sordino {

// Empty where the folder of SORDINO_DATA does not have it.
inline std::string PretrainedFile() {
  const char* const data = std::getenv("SORDINO_DATA");
  if (data == nullptr) return "";
  const std::filesystem::path file = std::filesystem::path(data) / "pretrained" /
                                     "mobilenet_v2_050_224_feature_vector.safetensors";
  return std::filesystem::exists(file) ? file.string() : "";
}

}  // namespace sordino

#endif  // SORDINO_MODELS_TESTING_PRETRAINED_FILE_H_
