"""No name is repeated in the anonymous namespaces of a module: unity_names_test.py SOURCE_DIR

The preset `user` compiles about two dozen files of a module as one, so that each header of libtorch is
read once for all of them; the preset `release` does the same with sources and tests. What two of
these files hide in anonymous namespaces then lies in one: a second constant, type or function of the same
name and parameters does not compile. A build of separate files, or of other groups of them, does not
notice, so this test does, in every build.

Two headers of libtorch cannot stand in one file: a file that includes the first is compiled alone where its
module includes the second.

And no two files define a type of the same name in one namespace: the program has one destructor for both,
and which of the two it is nobody knows.
"""
import collections
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()

NAME = re.compile(r'''
    (?:template\s*<.*>\s*)?(?:\[\[\w+\]\]\s*)?
    (?:(?:struct|class|enum(?:\ class)?|union)\s+(?P<type>\w+)\b(?!\s*;)
      |using\s+(?P<alias>\w+)\s*=\s*(?P<target>[^;]*);
      |namespace\s+(?P<space>\w+)\s*=\s*(?P<place>[^;]*);
      |\#define\s+(?P<macro>\w+)
      |(?:extern\s"C"\s)?[\w:][\w:<>,&*\s\[\]]*?[\s&*](?P<function>~?\w+)\((?P<parameters>.*)
      |(?:inline\s|static\s|volatile\s|thread_local\s|const\s|constexpr\s)*[\w:][\w:<>,&*\s\[\]]*?
        [\s&*](?P<value>\w+)\s*(?:=|;|\{|\(|\[)
    )''', re.VERBOSE | re.DOTALL)


def hidden_parts(text):
    """What stands in anonymous namespaces, without comments, strings and bodies."""
    text = re.sub(r'//[^\n]*', '', text)
    text = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', '""', text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', '""', text)
    for match in re.finditer(r'^namespace \{\n', text, re.MULTILINE):
        depth, part = 1, []
        for character in text[match.end():]:
            if character == '}':
                depth -= 1
                if depth == 0:
                    break
            if depth == 1:
                part.append(character)
            if character == '{':
                depth += 1
                part.append('{')
        yield ''.join(part)


def parameter_types(parameters):
    """Parameters without their names and defaults: what tells overloads apart."""
    depth, end = 1, 0
    for end, character in enumerate(parameters):
        depth += {'(': 1, ')': -1}.get(character, 0)
        if depth == 0:
            break
    types, depth = [''], 0
    for character in parameters[:end]:
        depth += {'<': 1, '(': 1, '>': -1, ')': -1}.get(character, 0)
        if character == ',' and depth == 0:
            types.append('')
        else:
            types[-1] += character
    types = [re.sub(r'\s*=.*', '', part.strip(), flags=re.DOTALL) for part in types]
    types = [re.sub(r'(?<=[\s&*>])\w+$', '', part) if re.search(r'[\s&*>]\w+$', part) and
             not re.fullmatch(r'(const )?(unsigned |std::)?\w+', part) else part for part in types]
    return ','.join(re.sub(r'\s+', '', part) for part in types)


def hidden_names(text):
    """Pairs of a name and what two declarations of it must differ in to live side by side."""
    for part in hidden_parts(text):
        for declaration in re.split(r'(?<=[;}{])\s*\n(?=\S)|\n\s*\n', part):
            match = NAME.match(declaration.strip())
            if not match:
                continue
            if match['type']:
                yield match['type'], ''
            elif match['alias']:
                yield match['alias'], '=' + match['target']
            elif match['space']:
                yield match['space'], '=' + match['place']
            elif match['macro']:
                yield match['macro'], ''
            elif match['function'] and re.match(r'[-\d"{]', match['parameters']):
                yield match['function'], ''  # an object, made of a literal
            elif match['function']:
                yield match['function'], '(' + parameter_types(match['parameters']) + ')'
            elif match['value']:
                yield match['value'], ''


def repeated(files):
    """Sentences about names that two files of a module, given as a dictionary of texts, share."""
    places = collections.defaultdict(dict)
    for name, text in files.items():
        for hidden, kind in hidden_names(text):
            places[hidden].setdefault(kind, set()).add(name)
    sentences = []
    for hidden, kinds in sorted(places.items()):
        functions = [kind for kind in kinds if kind.startswith('(')]
        for kind, names in kinds.items():
            # An alias may be repeated, and functions may differ in their parameters.
            if len(names) > 1 and not kind.startswith('='):
                sentences.append(f"{hidden}{kind} is in {', '.join(sorted(names))}")
        if len(kinds) > 1 and len(functions) < len(kinds) and len(set().union(*kinds.values())) > 1:
            where = ', '.join(sorted(set().union(*kinds.values())))
            sentences.append(f'{hidden} means different things in {where}')
    return sentences


def defined_twice(files):
    """Types outside of anonymous namespaces that two files define."""
    places = collections.defaultdict(list)
    for name, text in files.items():
        space = re.search(r'^namespace ([\w:]+) \{', text, re.MULTILINE)
        text = re.sub(r'^namespace \{\n(?:.|\n)*?^\}  // namespace\n', '', text, flags=re.MULTILINE)
        for match in re.finditer(r'^(?:struct|class|enum(?: class)?) (\w+)(?: final)?(?: : [^;{]*)? \{',
                                 text, re.MULTILINE):
            places[(space[1] if space else '', match[1])].append(name)
    return [f"{type_name} in {' and '.join(found)}" for (_, type_name), found in places.items()
            if len(found) > 1]


# It includes a declaration of functions that those of the second header are then confused with.
FIRST_HEADER = '#include <torch/csrc/autograd/functions/accumulate_grad.h>'
SECOND_HEADER = '#include <ATen/functorch/'


def joined_clashes(files, build):
    """Files of a module, with the text of its CMakeLists.txt, that must be compiled alone and are not."""
    if not any(SECOND_HEADER in text for text in files.values()):
        return []
    alone = re.findall(r'set_source_files_properties\(([^)]*)SKIP_UNITY_BUILD_INCLUSION', build)
    return [name for name, text in files.items()
            if FIRST_HEADER in text and not any(name.endswith('/' + word)
                                                for words in alone for word in words.split())]


def modules_of_program():
    """For each module the files that the program is made of, a dictionary of texts."""
    modules = collections.defaultdict(dict)
    for file in sorted(SOURCE.glob('src/sordino/**/*.cc')):
        if re.search(r'_(test|benchmark|test_support|sweep|hunt)\.cc$', file.name) or \
                'testing' in file.parts or file.name == 'main.cc':
            continue
        module = file.relative_to(SOURCE / 'src/sordino').parts[0]
        modules[module][str(file.relative_to(SOURCE))] = file.read_text(encoding='utf-8')
    return modules


def modules_of_tests():
    """For each module the files of its test program, a dictionary of texts."""
    modules = collections.defaultdict(dict)
    for file in sorted(SOURCE.glob('src/sordino/**/*.cc')):
        if re.search(r'_test(_support)?\.cc$', file.name) or 'testing' in file.parts:
            module = file.relative_to(SOURCE / 'src/sordino').parts[0]
            modules[module][str(file.relative_to(SOURCE))] = file.read_text(encoding='utf-8')
    return modules


class UnityNamesTest(unittest.TestCase):
    def test_headers_that_clash_are_compiled_apart(self):
        for module, files in modules_of_program().items():
            build = (SOURCE / 'src/sordino' / module / 'CMakeLists.txt').read_text(encoding='utf-8')
            with self.subTest(module=module):
                self.assertEqual(joined_clashes(files, build), [])
        files = {'src/a/one.cc': FIRST_HEADER, 'src/a/two.cc': SECOND_HEADER}
        skip = 'set_source_files_properties(one.cc\n  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)'
        self.assertEqual(joined_clashes(files, ''), ['src/a/one.cc'])
        self.assertEqual(joined_clashes(files, skip), [])
        self.assertEqual(joined_clashes({'src/a/one.cc': FIRST_HEADER}, ''), [])

    def test_no_module_repeats_a_hidden_name(self):
        for modules in (modules_of_program(), modules_of_tests()):
            self.assertGreater(len(modules), 5)
            for module, files in modules.items():
                with self.subTest(module=module):
                    self.assertEqual(repeated(files), [])

    def test_every_public_type_is_defined_once(self):
        files = {str(file.relative_to(SOURCE)): file.read_text(encoding='utf-8')
                 for pattern in ('**/*.h', '**/*.cc')
                 for file in sorted((SOURCE / 'src/sordino').glob(pattern))}
        self.assertGreater(len(files), 100)
        self.assertEqual(defined_twice(files), [])
        one = 'namespace sordino {\n\nstruct Shape {\n};\n\n}  // namespace sordino\n'
        inner = one.replace('sordino', 'sordino::internal')
        hidden = one.replace('struct', 'namespace {\n\nstruct').replace('};', '};\n\n}  // namespace')
        self.assertEqual(defined_twice({'one': one, 'two': one}), ['Shape in one and two'])
        self.assertEqual(defined_twice({'one': one, 'two': inner, 'three': hidden}), [])

    def test_finds_what_is_repeated(self):
        def file(*lines):
            return '\n'.join(['namespace sordino {', 'namespace {', '', *lines, '', '}  // namespace',
                              'int Public() { return 1; }', '}'])
        one = file('constexpr double kMargin = 1;', '', 'struct Shape {', '  int a;', '};', '',
                   'using Json = nlohmann::json;', '', 'double LogAdd(double a, double b) {',
                   '  return a + b;', '}')
        self.assertEqual(repeated({'one': one}), [])
        self.assertEqual(len(repeated({'one': one, 'two': one})), 3)
        two = file('constexpr double kOther = 1;', '', 'using Json = nlohmann::json;', '',
                   'double LogAdd(float a, double b = 1) { return a; }')
        self.assertEqual(repeated({'one': one, 'two': two}), [])
        for line in ('double LogAdd(double x, double y);', 'class Shape final {};',
                     'const std::string kMargin("x");', 'constexpr int kMargin[] = {1, 2};',
                     '[[noreturn]] void LogAdd(double x, double y) {}', 'using Json = int;', 'int LogAdd = 1;',
                     'template <typename T>\nstruct Shape {};'):
            self.assertEqual(len(repeated({'one': one, 'two': file(line)})), 1, line)
        ends = [file(f'const Bounds kEnds({end}, 5);') for end in ('-1', '2')]
        self.assertEqual(len(repeated(dict(zip(('one', 'two'), ends)))), 1)


if __name__ == '__main__':
    unittest.main()
