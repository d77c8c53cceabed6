# Debian's liblua as an object for the program, which then needs no library of Lua.
# shellcheck shell=bash
#
# Calls within the program take no detour through the dynamic linker: `table.sort` with a comparator takes the time
# that it takes in lua5.4, and not 1.14 times that, and a start executes 0.12 million instructions less. C modules
# find the functions in the program (scripts/link/lua.symbols). `FLOWLUA_SHARED_LUA=1` builds the program with
# the shared library, which an update of the package liblua5.4-0 replaces; so do debug and test builds.

# make_liblua: makes the folder .build/liblua, if it isn't there. It has
#   liblua.o      the whole library, in which the function lua_resume has the name that resume.c calls it by
#   liblua5.4.so  a linker script that loads nothing, for the module map's request of `-llua5.4`
#   lua5.4.pc     which lets SwiftPM search this folder first
make_liblua() {
  local folder=$ROOT/.build/liblua archive objects
  archive=$(pkg-config --variable=libdir lua5.4)/liblua5.4.a
  [[ ! -e $folder/lua5.4.pc || $archive -nt $folder/lua5.4.pc ]] || return 0
  [[ -e $archive ]] || die "there is no $archive"
  rm -rf "$folder"
  mkdir -p "$folder/objects"
  (cd "$folder/objects" && ar x "$archive")
  objcopy --redefine-sym lua_resume=flowlua_library_resume "$folder/objects/ldo.o"
  objects=("$folder"/objects/*.o)
  ld -r -o "$folder/liblua.o" "${objects[@]}"
  rm -r "$folder/objects"
  printf '/* Empty: liblua.o has the library. */\n' >"$folder/liblua5.4.so"
  printf 'Name: Lua\nDescription: Lua within the program\nVersion: %s\nCflags: %s\nLibs: -L%s -llua5.4\n' \
    "$(pkg-config --modversion lua5.4)" "$(pkg-config --cflags lua5.4)" "$folder" >"$folder/lua5.4.pc"
}

# with_liblua COMMAND...: runs `swift build` so that the release program is linked with it.
with_liblua() {
  if [[ -n ${FLOWLUA_SHARED_LUA-} ]]; then
    "$@"
    return
  fi
  make_liblua || return 1
  FLOWLUA_LIBLUA=$ROOT/.build/liblua PKG_CONFIG_PATH=$ROOT/.build/liblua${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} "$@"
}
