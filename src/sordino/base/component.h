// What can be chosen, and what was chosen.
//
// A component (a sampler, a clipping policy, a noise, an optimizer) is a class derived from that of
// its kind, in a file of its own that holds its name, its options and its code. The kind has a
// Registry: a function that lists its components, one line for each in a list file
// (cmake/SordinoComponents.cmake says how). Everything else asks the registry: flags, keys of
// configuration files, help, errors and the pages of docs/ hold no list of names.
//
// A Choice is the name of a component with values of its options, as a plan or a configuration
// holds it: {"sgd", {{"momentum", 0.9}}}, or "sgd" alone.
#ifndef SORDINO_BASE_COMPONENT_H_
#define SORDINO_BASE_COMPONENT_H_

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/base/options.h"

namespace sordino {

class Component {
 public:
  // Points to constants that live as long as the program.
  struct Row {
    std::string_view name;  // "adam"
    std::string_view help;  // a line without a full stop
    std::span<const OptionSpec* const> options = {};
  };

  explicit Component(Row row) : row_(row) {}
  virtual ~Component() = default;
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;

  std::string_view name() const { return row_.name; }
  std::string_view help() const { return row_.help; }
  std::span<const OptionSpec* const> options() const { return row_.options; }
  bool Has(std::string_view key) const;

  // How it is written, on a page of docs/: the name, unless there is more to write.
  virtual std::string Usage() const { return std::string(row_.name); }

  // What options have to fulfil together, beyond the range of each; throws Error.
  virtual void Check(const OptionValues& options) const { static_cast<void>(options); }

 private:
  Row row_;
};

struct Choice {
  // A name alone is a choice.
  Choice(const char* the_name) : name(the_name) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Choice(std::string the_name) : name(std::move(the_name)) {}
  Choice(std::string the_name, OptionValues the_options)
      : name(std::move(the_name)), options(std::move(the_options)) {}

  std::string name;
  OptionValues options;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The components of one kind, in the order of their list.
class ComponentList {
 public:
  // `kind` is the word for one of them in a sentence: "optimizer". Stops the program for two
  // components of one name, and for two options of one key that are not the same constant.
  ComponentList(std::string_view kind, std::vector<const Component*> components);

  std::string_view kind() const { return kind_; }
  const std::vector<std::string_view>& names() const { return names_; }
  // Of all components, each once.
  const std::vector<const OptionSpec*>& options() const { return options_; }
  // The names of those that have the option.
  std::vector<std::string_view> Owners(std::string_view key) const;

  // Help of the flag that chooses: "sgd, adagrad, adam or adamw".
  std::string ChoiceHelp() const;
  // Help of the flag of an option, with who has it and its value where it is left out:
  // "Decay of the mean of the gradients (adam, adamw; 0.9)".
  std::string OptionHelp(const OptionSpec& spec) const;
  // The components and their options as two tables of a page in docs/.
  std::string Page() const;

  // With what `sordino train` takes for options that are left out, and without options of other
  // components that have their fallback: those say nothing. Throws Error as Checked does.
  Choice Completed(const Choice& choice) const;

 protected:
  std::size_t IndexOf(std::string_view name) const;
  // Throws Error for an option that the component does not have (unless it has its fallback), that
  // is unknown, outside its range, or does not go together with the others.
  void CheckOptions(const Component& component, const OptionValues& options) const;

 private:
  std::string OptionsPage() const;
  void CheckEach(const Component& component, const OptionValues& options) const;

  std::string_view kind_;
  std::vector<const Component*> components_;
  std::vector<std::string_view> names_;
  std::vector<const OptionSpec*> options_;
};

template <typename Kind>
class Registry : public ComponentList {
 public:
  Registry(std::string_view kind, std::initializer_list<const Kind*> components)
      : ComponentList(kind, {components.begin(), components.end()}), all_(components) {}

  const std::vector<const Kind*>& all() const { return all_; }
  // Throws Error with the nearest known name.
  const Kind& Find(std::string_view name) const { return *all_[IndexOf(name)]; }
  // The component of a choice whose options were checked.
  const Kind& Checked(const Choice& choice) const {
    const Kind& found = Find(choice.name);
    CheckOptions(found, choice.options);
    return found;
  }

 private:
  std::vector<const Kind*> all_;
};

}  // namespace sordino

#endif  // SORDINO_BASE_COMPONENT_H_
