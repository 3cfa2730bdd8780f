"""Mutations of what keeps a script and a record to themselves: tools/mutate isolation."""
from mutation import Mutation

PROGRAM = "gradients_test"

SCRIPTS = "ScriptGraph.RefusesOrIsolatesEveryScriptOnAllNeighbours"
NAMES = "gradients/internal/isolation/pure_operations.cc"
GRAPH = "gradients/internal/isolation/script_graph.cc"
FIRST_NAME = "\"arange bartlett_window"

MUTATIONS = [
    Mutation("a script may read memory that was not written", NAMES,
             FIRST_NAME, "\"empty_permuted empty_strided arange bartlett_window", SCRIPTS),
    Mutation("a script may resize", NAMES, FIRST_NAME, "\"resize arange bartlett_window", SCRIPTS),
    Mutation("a script may open files", NAMES,
             FIRST_NAME, "\"from_file save arange bartlett_window", SCRIPTS),
    Mutation("a script may see strides", NAMES,
             FIRST_NAME, "\"stride is_contiguous storage_offset arange bartlett_window", SCRIPTS),
    Mutation("a script may seed", NAMES,
             FIRST_NAME, "\"manual_seed arange bartlett_window", SCRIPTS),
    Mutation("a script may set flags of its parameters", NAMES,
             "if (name == \"detach_\" || !name.ends_with('_')) return false;",
             "if (!name.ends_with('_')) return false;", SCRIPTS),
    Mutation("a script may bring a generator", GRAPH,
             "TakesGenerator(argument) && !node->input(k)->mustBeNone()",
             "TakesGenerator(argument) && node->inputs().empty()", SCRIPTS),
    Mutation("a script may write to an output that it gives", GRAPH,
             "    if (is_out) {\n", "    if (is_out && node->inputs().empty()) {\n", SCRIPTS),
    Mutation("a script may read the text of a tensor", GRAPH,
             "!IsData(input->type(), makes_order)", "!IsData(input->type(), true)", SCRIPTS),
    Mutation("a script may hold objects", GRAPH,
             "    if (!IsData(type, /*with_tensors=*/true)) {\n", "    if (type == nullptr) {\n",
             SCRIPTS),
    Mutation("a script may read unwritten outputs", GRAPH,
             "if (kind == \"aten::embedding_bag\") ZeroOutputsFrom(graph, node, 1);\n",
             "if (kind == \"aten::save\") ZeroOutputsFrom(graph, node, 1);\n",
             "ScriptGraph.UnwrittenOutputsAreZeros"),
    Mutation("a script keeps its constants", GRAPH,
             "(value->isTensor() || value->isList()", "(value->isList()",
             "ScriptGraph.KeepsNothingThatAnIsolatedPassWrote:" + SCRIPTS),
    Mutation("a script keeps its lists and dictionaries", "gradients/script_model.cc",
             "return is_container ? value.deepcopy() : value;", "return value;",
             "ScriptGraph.KeepsNothingThatAnIsolatedPassWrote"),
    Mutation("a script keeps its buffers", "gradients/script_model.cc",
             "if (may_be_written && (is_isolated || !value.isTensor())) {",
             "if (may_be_written && !value.isTensor()) {",
             "ScriptGraph.KeepsNothingThatAnIsolatedPassWrote"),
    Mutation("a script may write to its parameters", "gradients/script_model.cc",
             "_version() == version) continue;", "_version() >= version) continue;", SCRIPTS),
    Mutation("a record that fails is an error", "gradients/internal/part_looks.cc",
             "  if (!IsPrivate() || is_looking_ || IsOutOfMemory(error)) return false;\n",
             "  if (!IsOutOfMemory(error)) return false;\n",
             "MadeUpExamples.ARecordThatFailsAddsNothingAndNobodyIsTold"),
    Mutation("a model is looked at when there is a record", "gradients/clipper.cc",
             "  s.parts.Check(loss, policy);\n", "",
             "MadeUpExamples.ShowWhatIsWrongWithTheModelBeforeTheFirstSum"),
    Mutation("made-up examples take random numbers", "gradients/internal/part_looks.cc",
             "      states.Rewind();\n    }", "    }", "MadeUpExamples.TakeNoRandomNumbers"),
]
