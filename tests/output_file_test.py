"""Checks that commands write files through OutputFile (base/output_file.h) only, and that
experiments know the flags that name these files.

    output_file_test.py PROJECT_DIR

OutputFile refuses to overwrite inputs, ledgers and files of a run. A command that opens a file for
writing by itself would not. Training writes its run folder in the module `training`. An experiment
puts the files of its commands into its own folder (experiments/grid.cc): a flag that it does not
know could write anywhere.
"""
import pathlib
import re
import sys

WRITES = re.compile(r'\bo?fstream\b|\bfopen\(|\bfreopen\(|\bO_WRONLY\b|\bO_RDWR\b|\bO_CREAT\b|'
                    r'\bcreat\(|\bWriteWholeFile\(|\bWriteSafetensors\(|\bcopy_file\(|\brename\(')


def violations(project):
    """One sentence for each line of a command that writes to a file by itself."""
    found = []
    for module in ['cli', 'torch_cli']:
        for path in sorted((project / 'src/sordino' / module).glob('*.*')):
            if path.suffix not in {'.h', '.cc'} or '_test' in path.name:
                continue
            for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
                if WRITES.search(line):
                    found.append(f'{path.relative_to(project)}:{number} writes to a file by itself; '
                                 f'use OutputFile: {line.strip()}')
    return found


OUTPUTS = re.compile(r'Output(?:Request|File\s+\w+\()\s*\{\s*"--([a-z-]+)"')


def unknown_outputs(project):
    """One sentence for each flag of a file that experiments do not keep in their folder."""
    grid = (project / 'src/sordino/experiments/grid.cc').read_text(encoding='utf-8')
    known = {name for names in re.findall(r'k(?:Written|Own)Flags = \{([^}]*)\}', grid)
             for name in re.findall(r'"([a-z-]+)"', names)}
    used = set()
    for module in ['cli', 'torch_cli']:
        for path in (project / 'src/sordino' / module).glob('*.cc'):
            used.update(OUTPUTS.findall(path.read_text(encoding='utf-8')))
    assert {'picture', 'declare'} <= used, used
    return [f'--{flag} names a file that a command writes; add it to kWrittenFlags in '
            'src/sordino/experiments/grid.cc' for flag in sorted(used - known)]


def check_the_checker():
    for line in ['std::ofstream out(path);', 'std::fstream file;', 'fopen(path, "w")',
                 'open(path, O_WRONLY | O_TRUNC)', 'WriteWholeFile(path, text);']:
        assert WRITES.search(line), line
    for line in ['std::ifstream in(path);', 'picture->Write(svg);', 'reopen(x)', 'prename(x)']:
        assert not WRITES.search(line), line


def main():
    check_the_checker()
    project = pathlib.Path(sys.argv[1])
    found = violations(project) + unknown_outputs(project)
    print('\n'.join(found) or 'commands write through OutputFile only')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
