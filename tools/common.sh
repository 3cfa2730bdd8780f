# shellcheck shell=bash
# Sourced by ./quickstart and ./check.

# step WORDS: names the step that begins.
step() { printf '\n== %s\n' "$*"; }

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1 log
  shift
  mkdir -p "build/$preset"
  log=build/$preset/configure.log
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"}
}
