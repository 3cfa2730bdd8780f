"""Mutations of what keeps commands from destroying files: tools/mutate base."""
from mutation import Mutation

PROGRAM = "base_test"

FILE = "base/output_file.cc"
INPUT = "OutputFileTest.RefusesAnInputUnderEveryNameEvenIfForced"
DATABASE = "OutputFileTest.NeverOverwritesADatabaseOrItsJournal"
RUN = "OutputFileTest.NeverOverwritesTheFilesOfARun"

MUTATIONS = [
    Mutation("inputs are compared by their spelling", FILE,
             "same = fs::equivalent(a, b, error);", "same = a == b;", INPUT),
    Mutation("files in an input folder are not looked at", FILE,
             "fs::is_directory(input, none) && Holds", "input.empty() && Holds", INPUT),
    Mutation("folders below an input folder are not looked at", FILE,
             "entry->is_directory(none) && Holds", "entry->is_directory(none) && false && Holds",
             "OutputFileTest.FindsAnInputDeepInAFolderWhoseLinksLeadInACircle"),
    Mutation("a ledger is overwritten", FILE,
             "if (head->starts_with(kSqlite))", "if (head->starts_with(kSqlite) && false)",
             DATABASE),
    Mutation("the journal of a ledger is overwritten", FILE,
             "if (IsSqliteCompanion(target))", "if (IsSqliteCompanion(target) && false)", DATABASE),
    Mutation("a file of a run is overwritten", FILE,
             'if (IsFileOfRun(target)) return "is a file of a training run";', "", RUN),
    Mutation("a checkpoint is overwritten", FILE,
             "if (is_one_of(kRunFolders, folder.filename()) && IsRunFolder(folder.parent_path())) "
             "return true;",
             "static_cast<void>(kRunFolders);", RUN),
    Mutation("a link into a run is overwritten", FILE,
             "return error ? absolute : target;", "return error ? target : absolute;", RUN),
    Mutation("a bar tells the time exactly", "base/progress.cc",
             "std::floor(std::chrono::duration<double>(now - start_).count())",
             "(std::chrono::duration<double>(now - start_).count())",
             "Progress.TellsNoTimeBelowASecond"),
    Mutation("memory may be dumped", "base/core_dump.cc",
             "  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);\n", "",
             "DisableCoreDumps.*"),
    Mutation("a file of another kind is overwritten", FILE,
             "if (!request.force && IsOf", "if (false && !request.force && IsOf",
             "OutputFileTest.RefusesAFileOfAnotherKindUnlessForced"),
    Mutation("an SVG picture is written to a name of another format", FILE,
             "if (!request.path.string()", "if (false && !request.path.string()",
             "OutputFileTest.RefusesNamesOfAnotherFormat"),
    Mutation("a folder or a device is overwritten", FILE,
             "if (!fs::is_regular_file(target, none))",
             "if (false && !fs::is_regular_file(target, none))",
             "OutputFileTest.RefusesWhatIsNotAFileOrCannotBeWrittenOrRead"),
]
