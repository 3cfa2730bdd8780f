"""tools/setup on machines that lack things: setup_test.py SOURCE_DIR

Each test runs a copy of tools/ with a PATH that holds only what the imagined machine has.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
# What the script itself is written with.
TOOLS = ['bash', 'cat', 'cut', 'dirname', 'env', 'grep', 'head', 'id', 'mkdir', 'mktemp', 'rm', 'sed',
         'sha256sum', 'sleep', 'sort', 'tail', 'touch', 'uname']
# Programs of the package list, replaced by stand-ins so that the test asks for no real ones. The one of
# Python has its headers, venv and pip; it runs nothing.
PYTHON = '''case "$*" in
  *sysconfig*) echo "${0%/*}/../include" ;;
  *'import ensurepip'* | *'import pip'*) ;;
  *) exit 1 ;;
esac'''
PROGRAMS = {'g++': '', 'ninja': '', 'git': '', 'ccache': '', 'cmake': 'echo cmake version 3.25.1',
            'clang-format': 'echo clang-format version 14.0.6', 'python3': PYTHON}


class Machine:
    """A folder with a copy of tools/, a PATH of its own and a libtorch that the user names."""

    def __init__(self, folder, without=(), torch_major=2):
        self.folder = pathlib.Path(folder)
        self.bin = self.folder / 'bin'
        self.bin.mkdir()
        shutil.copytree(SOURCE / 'tools', self.folder / 'tools')
        for tool in TOOLS:
            os.symlink(shutil.which(tool), self.bin / tool)
        for name, script in PROGRAMS.items():
            if name not in without:
                self.program(name, script)
        (self.folder / 'include').mkdir()
        (self.folder / 'include/Python.h').touch()
        torch = self.folder / 'torch'
        (torch / 'lib').mkdir(parents=True)
        (torch / 'lib/libtorch_cpu.so').touch()
        (torch / 'include/torch/headeronly').mkdir(parents=True)
        (torch / 'include/torch/headeronly/version.h').write_text(
            f'#define TORCH_VERSION_MAJOR {torch_major}\n')

    def program(self, name, script):
        path = self.bin / name
        path.write_text(f'#!/bin/bash\n{script}\n')
        path.chmod(0o755)

    def pip_fails(self):
        """pip takes a second, says so in a file when it is over, and has fetched nothing."""
        self.program('python3', '''case "$*" in
  *'pip download'*) sleep 1; touch "${0%/*}/../pip_is_over"; exit 1 ;;
esac
''' + PYTHON)

    def python_is_watched(self):
        """What venv and the pip of a virtual environment are called with goes to the file calls."""
        self.program('python3', f'''case "$*" in
  '-m venv --clear '*)
    mkdir -p "$4/bin"
    echo venv >>calls
    printf '#!/bin/bash\\ncase $2 in pip) echo "${{*: -1}}" >>calls ;; esac\\n' >"$4/bin/python"
    {shutil.which('chmod')} +x "$4/bin/python"
    exit 0 ;;
esac
{PYTHON}''')

    def setup(self, *options, names_libtorch=True):
        env = {'PATH': str(self.bin)}
        if names_libtorch:
            env['SORDINO_LIBTORCH'] = str(self.folder / 'torch')
        # Files, not pipes: a pipe is read until nobody writes to it, which would hide a process that
        # the script leaves behind.
        with tempfile.TemporaryFile('w+') as said, tempfile.TemporaryFile('w+') as complained:
            result = subprocess.run(
                [str(self.folder / 'tools/setup'), *options], stdout=said, stderr=complained,
                text=True, stdin=subprocess.DEVNULL, check=False, env=env)
            for stream in (said, complained):
                stream.seek(0)
            result.stdout, result.stderr = said.read(), complained.read()
        return result


class SetupTest(unittest.TestCase):
    def machine(self, **changes):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Machine(folder.name, **changes)

    def test_does_nothing_where_everything_is_there(self):
        result = self.machine().setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('system packages are in place', result.stdout)
        self.assertIn('libtorch is in place', result.stdout)

    def test_refuses_an_unknown_option(self):
        result = self.machine().setup('--toch')
        self.assertEqual(result.returncode, 2)
        self.assertIn("'--toch'", result.stderr)

    def test_prints_the_list_where_there_is_no_package_manager(self):
        result = self.machine(without=['cmake', 'ninja']).setup()
        self.assertEqual(result.returncode, 2)
        self.assertIn('no package manager', result.stderr)
        self.assertIn('cmake ninja-build', result.stderr)

    def test_prints_the_list_where_it_has_no_rights(self):
        machine = self.machine(without=['cmake'])
        machine.program('id', 'echo 1000')
        machine.program('apt-get', 'echo called >>"$(dirname "$0")/../calls"')
        result = machine.setup()
        self.assertEqual(result.returncode, 2)
        self.assertIn('takes root: cmake', result.stderr)
        self.assertFalse((machine.folder / 'calls').exists())

    def test_uses_sudo_where_it_asks_for_no_password(self):
        machine = self.machine(without=['ninja'])
        machine.program('id', 'echo 1000')
        machine.program('sudo', '[ "$1" = -n ] && exit 0; echo sudo >>"${0%/*}/../calls"; "$@"')
        machine.program('apt-get', 'echo "$@" >>"${0%/*}/../calls"')
        result = machine.setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((machine.folder / 'calls').read_text().count('sudo'), 2)

    def test_installs_only_what_is_missing_and_only_once(self):
        machine = self.machine(without=['cmake'])
        machine.program('id', 'echo 0')
        machine.program('apt-get', 'here=${0%/*}; echo "$@" >>"$here/../calls"\n'
                        'if [ "$1" = install ]; then printf "#!/bin/bash\\necho version 3.31.0\\n" '
                        '>"$here/cmake"; /bin/chmod +x "$here/cmake"; fi')
        for _ in range(2):
            result = machine.setup()
            self.assertEqual(result.returncode, 0, result.stderr)
        calls = (machine.folder / 'calls').read_text().splitlines()
        self.assertEqual(len(calls), 2, calls)
        self.assertTrue(calls[0].startswith('update'), calls)
        self.assertTrue(calls[1].endswith('--no-install-recommends cmake'), calls)

    def test_shows_the_words_of_a_package_manager_that_fails(self):
        machine = self.machine(without=['cmake'])
        machine.program('id', 'echo 0')
        machine.program('apt-get', 'echo the mirror is away >&2; exit 100')
        result = machine.setup()
        self.assertEqual(result.returncode, 2)
        self.assertIn('the mirror is away', result.stderr)

    def test_says_that_libtorch_could_not_be_fetched_beside_the_packages(self):
        machine = self.machine()
        machine.pip_fails()
        result = machine.setup(names_libtorch=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn('pip could not download the wheels of tools/libtorch.txt', result.stderr)
        self.assertEqual([], list((machine.folder / '.deps').iterdir()))

    def test_fetches_arrow_only_where_it_was_asked_for(self):
        machine = self.machine()
        machine.pip_fails()
        self.assertEqual(machine.setup().returncode, 0)
        self.assertFalse((machine.folder / 'pip_is_over').exists())
        result = machine.setup('--parquet')
        self.assertEqual(result.returncode, 2)
        self.assertIn('pip could not download the wheels of tools/arrow.txt', result.stderr)
        self.assertEqual([], list((machine.folder / '.deps').iterdir()))

    def test_leaves_nothing_running_when_packages_are_refused(self):
        machine = self.machine(without=['cmake'])
        machine.pip_fails()
        machine.program('id', 'echo 0')
        machine.program('apt-get', 'echo the mirror is away >&2; exit 100')
        result = machine.setup(names_libtorch=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn('the mirror is away', result.stderr)
        self.assertTrue((machine.folder / 'pip_is_over').exists())

    def test_calls_a_package_by_the_name_that_the_manager_knows(self):
        machine = self.machine(without=['ninja'])
        machine.program('id', 'echo 0')
        machine.program('dnf', 'echo "$@" >>"${0%/*}/../calls"')
        self.assertEqual(machine.setup().returncode, 0)
        self.assertIn('install -q -y ninja-build', (machine.folder / 'calls').read_text())

    def test_says_that_cmake_is_too_old(self):
        machine = self.machine()
        machine.program('cmake', 'echo cmake version 3.9.6')
        result = machine.setup()
        self.assertEqual(result.returncode, 2)
        self.assertIn('cmake is 3.9.6 and Sordino needs 3.25 or newer', result.stderr)

    def test_refuses_a_libtorch_that_is_not_version_2(self):
        result = self.machine(torch_major=1).setup()
        self.assertEqual(result.returncode, 2)
        self.assertIn('not version 2.x', result.stderr)

    def test_goes_on_where_there_is_no_browser(self):
        machine = self.machine()
        machine.program('id', 'echo 0')
        machine.program('apt-get', 'exit 100')
        result = machine.setup('--browser')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('Chart.js is in place', result.stdout)

    def test_makes_the_python_environment_once_and_adds_to_it_when_its_list_changes(self):
        machine = self.machine()
        machine.python_is_watched()
        for _ in range(2):
            result = machine.setup('--python')
            self.assertEqual(result.returncode, 0, result.stderr)
        calls = machine.folder / 'calls'
        self.assertEqual(calls.read_text(), 'venv\ntools/python.txt\n')
        self.assertIn('the Python environment is in place', result.stdout)
        with open(machine.folder / 'tools/python.txt', 'a', encoding='utf-8') as file:
            file.write('more==1.0\n')
        self.assertEqual(machine.setup('--python').returncode, 0)
        self.assertEqual(calls.read_text(), 'venv\ntools/python.txt\ntools/python.txt\n')

    def test_says_that_the_python_environment_could_not_be_filled(self):
        machine = self.machine()
        machine.python_is_watched()
        script = (machine.bin / 'python3').read_text()
        (machine.bin / 'python3').write_text(script.replace('>>calls ;;', '>>calls; exit 1 ;;'))
        result = machine.setup('--python')
        self.assertEqual(result.returncode, 2)
        self.assertIn('pip could not install the packages of tools/python.txt', result.stderr)
        self.assertFalse((machine.folder / '.deps/python/.stamp').exists())

    def test_pins_every_package_of_python_with_the_torch_of_libtorch(self):
        lines = [line for line in (SOURCE / 'tools/python.txt').read_text().splitlines()
                 if not line.startswith('#')]
        for line in lines:
            self.assertRegex(line, r'^[\w-]+==[\d.]+$')
        torch = [line for line in lines if line.startswith('torch==')]
        self.assertIn(torch[0] + ' ', (SOURCE / 'tools/libtorch.txt').read_text())

    def test_pins_every_download_by_a_hash_for_each_architecture(self):
        for name in ['libtorch.txt', 'clang-format.txt']:
            text = (SOURCE / 'tools' / name).read_text()
            self.assertEqual(text.count('--hash=sha256:'), 2 * text.count('=='), name)


if __name__ == '__main__':
    unittest.main()
