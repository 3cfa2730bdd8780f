#include "sordino/data/image_folder.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/data/testing/image_test_support.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

DatasetDeclaration Declared(std::vector<std::string> names, std::vector<std::int64_t> shape) {
  DatasetDeclaration declaration;
  declaration.name = "pictures";
  declaration.shape = std::move(shape);
  declaration.classes = static_cast<std::int64_t>(names.size());
  declaration.class_names = std::move(names);
  return declaration;
}

Bytes Grey(int height, int width, int value) {
  return EncodePng(height, width, {8, PNG_COLOR_TYPE_GRAY},
                   std::vector<unsigned char>(static_cast<std::size_t>(height * width),
                                              static_cast<unsigned char>(value)));
}

std::string Refusal(const TestFolder& folder, const DatasetDeclaration& declaration) {
  return SentenceOf([&] { ReadImageFolder(folder.path(), declaration); });
}

TEST(ImageFolder, ReadsClassesInDeclaredOrderAndFilesByName) {
  const TestFolder folder;
  folder.Write("cat/b.png", Grey(2, 3, 12));
  folder.Write("cat/a.PNG", Grey(2, 3, 11));
  folder.Write("cat/.hidden", ToBytes("skipped"));
  folder.Write("ant/10.png", Grey(2, 3, 1));
  folder.Write("ant/9.jpeg", EncodeJpeg(2, 3, {JCS_GRAYSCALE}, {90, 90, 90, 90, 90, 90}));
  const Dataset data = ReadImageFolder(folder.path(), Declared({"cat", "dog", "ant"}, {1, 2, 3}));
  EXPECT_TRUE(at::equal(data.labels, at::tensor({0, 0, 2, 2}, at::kLong)));
  EXPECT_EQ(data.inputs.sizes(), at::IntArrayRef({4, 1, 2, 3}));
  EXPECT_TRUE(
      at::equal(data.inputs.flatten(1).select(1, 5), at::tensor({11, 12, 1, 90}, at::kByte)));
}

TEST(ImageFolder, NumbersClassesWithoutNames) {
  const TestFolder folder;
  folder.Write("1/x.png", Grey(1, 1, 5));
  DatasetDeclaration declaration = Declared({}, {3, 1, 1});
  declaration.classes = 2;
  const Dataset data = ReadImageFolder(folder.path(), declaration);
  EXPECT_EQ(data.labels.item<int>(), 1);
  EXPECT_TRUE(at::equal(data.inputs.flatten(), at::tensor({5, 5, 5}, at::kByte)));
}

TEST(ImageFolder, RefusesAClassThatWasNotDeclared) {
  const TestFolder folder;
  folder.Write("cat/a.png", Grey(1, 1, 1));
  folder.Write("cow/a.png", Grey(1, 1, 1));
  EXPECT_THAT(Refusal(folder, Declared({"cat", "dog"}, {1, 1, 1})),
              HasSubstr("not one of the 2 declared classes"));
}

TEST(ImageFolder, RefusesFilesThatWouldBeLeftOut) {
  const DatasetDeclaration declaration = Declared({"cat", "dog"}, {1, 1, 1});
  {
    const TestFolder folder;
    folder.Write("cat/a.png", Grey(1, 1, 1));
    folder.Write("lost.png", Grey(1, 1, 1));
    EXPECT_THAT(Refusal(folder, declaration), HasSubstr("something that is not a folder"));
  }
  {
    const TestFolder folder;
    folder.Write("cat/a.gif", Grey(1, 1, 1));
    EXPECT_THAT(Refusal(folder, declaration), HasSubstr("not an image file"));
  }
  {
    const TestFolder folder;
    folder.Write("cat/deeper/a.png", Grey(1, 1, 1));
    EXPECT_THAT(Refusal(folder, declaration), HasSubstr("not an image file"));
  }
}

TEST(ImageFolder, RefusesLinksThatLeadOut) {
  const TestFolder folder;
  const fs::path outside = folder.Write("outside/secret.png", Grey(1, 1, 1));
  folder.Write("in/cat/a.png", Grey(1, 1, 7));
  fs::create_symlink("a.png", folder.path() / "in/cat/b.png");
  const DatasetDeclaration declaration = Declared({"cat", "dog"}, {1, 1, 1});
  EXPECT_EQ(ReadImageFolder(folder.path() / "in", declaration).size(), 2);

  fs::create_symlink(outside, folder.path() / "in/cat/c.png");
  EXPECT_THAT(SentenceOf([&] { ReadImageFolder(folder.path() / "in", declaration); }),
              HasSubstr("a link that leads out of it"));
  fs::remove(folder.path() / "in/cat/c.png");
  fs::create_directory_symlink("../outside", folder.path() / "in/dog");
  EXPECT_THAT(SentenceOf([&] { ReadImageFolder(folder.path() / "in", declaration); }),
              HasSubstr("a link that leads out of it"));
  fs::remove(folder.path() / "in/dog");
  fs::create_symlink("nowhere.png", folder.path() / "in/cat/d.png");
  EXPECT_THAT(SentenceOf([&] { ReadImageFolder(folder.path() / "in", declaration); }),
              HasSubstr("cannot be followed"));
  // A link to the folder itself is fine.
  fs::remove(folder.path() / "in/cat/d.png");
  fs::create_directory_symlink("in", folder.path() / "alias");
  EXPECT_EQ(ReadImageFolder(folder.path() / "alias", declaration).size(), 2);
}

TEST(ImageFolder, ImagesOfAnotherSizeGetTheDeclaredOne) {
  const TestFolder folder;
  folder.Write("cat/a.png", EncodePng(4, 4, {8, PNG_COLOR_TYPE_GRAY},
                                      {0, 0, 100, 100, 0, 0, 100, 100,  //
                                       200, 200, 40, 40, 200, 200, 40, 40}));
  const DatasetDeclaration declaration = Declared({"cat", "dog"}, {1, 2, 2});
  const Dataset data = ReadImageFolder(folder.path(), declaration);
  // Antialiasing: on each axis the pixels at the distances 1/2, 1/2 and 3/2 weigh 3/7, 3/7 and 1/7.
  // The first is (36 * 0 + 6 * 100 + 6 * 200 + 40) / 49 = 37.6.
  EXPECT_TRUE(at::equal(data.inputs.flatten(), at::tensor({38, 82, 154, 66}, at::kByte)));

  // What is flat stays as it is, whatever the sizes.
  folder.Write("cat/a.png", Grey(5, 3, 77));
  EXPECT_TRUE(at::equal(ReadImageFolder(folder.path(), declaration).inputs.flatten(),
                        at::full({4}, 77, at::kByte)));
}

TEST(ImageFolder, ReadsImagesWithoutLabels) {
  const TestFolder folder;
  folder.Write("b.png", Grey(1, 1, 2));
  folder.Write("a.png", Grey(1, 1, 1));
  ImageFolderOptions options;
  options.labelled = false;
  const Dataset data = ReadImageFolder(folder.path(), Declared({"cat", "dog"}, {1, 1, 1}), options);
  EXPECT_FALSE(data.labels.defined());
  EXPECT_TRUE(at::equal(data.inputs.flatten(), at::tensor({1, 2}, at::kByte)));
}

TEST(ImageFolder, NamesTheFirstDamagedFile) {
  const TestFolder folder;
  for (int i = 10; i < 40; ++i) {
    folder.Write("cat/" + std::to_string(i) + ".png", i < 20 ? Grey(1, 1, i) : ToBytes("broken"));
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Refusal(folder, Declared({"cat", "dog"}, {1, 1, 1})),
                AllOf(HasSubstr("is neither"), HasSubstr("20.png'")));
  }
}

TEST(ImageFolder, KeepsEveryImageInItsPlaceOnTwoThreads) {
  const TestFolder folder;
  const int count = 1200;
  for (int i = 0; i < count; ++i) {
    folder.Write("cat/" + std::to_string(10000 + i) + ".png", Grey(1, 2, i % 256));
  }
  testing::internal::CaptureStderr();
  const Dataset data = ReadImageFolder(folder.path(), Declared({"cat", "dog"}, {1, 1, 2}));
  // How many there are is private.
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(at::equal(data.inputs.flatten(1).select(1, 1).to(at::kLong),
                        at::arange(count).remainder(256)));
}

TEST(ImageFolder, RefusesRequestsThatCannotBeMet) {
  const TestFolder folder;
  EXPECT_THAT(Refusal(folder, Declared({"cat", "dog"}, {1, 1, 1})), HasSubstr("no subfolder"));
  EXPECT_THAT(Refusal(folder, Declared({"cat", "dog"}, {2, 1, 1})),
              HasSubstr("shape is [2, 1, 1]"));
  EXPECT_THAT(Refusal(folder, Declared({"cat", "dog"}, {7})), HasSubstr("shape is [7]"));
  DatasetDeclaration unequal = Declared({"cat", "dog"}, {1, 1, 1});
  unequal.classes = 3;
  EXPECT_THAT(Refusal(folder, unequal), HasSubstr("2 class names were declared for 3 classes"));
  EXPECT_THAT(SentenceOf([&] {
                ReadImageFolder(folder.path() / "missing", Declared({"cat", "dog"}, {1, 1, 1}));
              }),
              HasSubstr("missing' is not a folder"));
}

}  // namespace
}  // namespace sordino
