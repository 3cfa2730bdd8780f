# shellcheck shell=bash
# Sourced by ./quickstart and ./check.

# step WORDS: names the step that begins.
step() { printf '\n== %s\n' "$*"; }

# The options for CMake that build the Python package for the environment of tools/setup --python.
python_options=(-DSORDINO_PYTHON=ON "-DPython3_EXECUTABLE=$PWD/.deps/python/bin/python")

configure_options=()
# configure_and_build PRESET [TARGET...], with the options for CMake in the array configure_options.
configure_and_build() {
  local preset=$1 log
  shift
  mkdir -p "build/$preset"
  log=build/$preset/configure.log
  if ! cmake --preset "$preset" "${configure_options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"}
}
