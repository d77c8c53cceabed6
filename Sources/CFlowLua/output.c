// Standard functions that use the terminal, with something of the host's done before and after: a line
// of status makes way for what a script prints, or asks for.
//
// Each is the original, called within the same Lua frame, so that errors and tracebacks are the same.
#include <stdio.h>
#include <unistd.h>

#include "internal.h"

enum { PRINT, WARN, IO_WRITE, IO_READ, FILE_WRITE, FILE_READ, IO_POPEN, OS_EXECUTE, FUNCTIONS };

// The same in each state of the process: set for the first one, and only read from then on.
static lua_CFunction originals[FUNCTIONS];
static flowlua_output_guard guard;

/// Whether the file of a call is stderr, or stdout on the terminal: the first argument, or what io.output has set.
/// [-0, +0, -]
static bool is_terminal_output(lua_State *L, bool is_method) {
  const luaL_Stream *file;
  if (is_method) {
    file = luaL_testudata(L, 1, LUA_FILEHANDLE);
  } else {
    lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output");
    file = lua_touserdata(L, -1);
    lua_settop(L, -2);
  }
  if (file == NULL || file->closef == NULL) return false;
  return file->f == stderr || (file->f == stdout && guard.includes_stdout);
}

/// Notes how the text in the arguments from `first` on ends. [-0, +0, -]
static void note_text(lua_State *L, int first) {
  for (int i = lua_gettop(L); i >= first; i--) {
    if (lua_type(L, i) != LUA_TSTRING) {
      guard.wrote(false);
      return;
    }
    size_t length;
    const char *text = lua_tolstring(L, i, &length);
    if (length == 0) continue;
    guard.wrote(text[length - 1] == '\n');
    return;
  }
}

static int guarded_print(lua_State *L) {
  if (guard.includes_stdout) {
    guard.hide();
    guard.wrote(true);
  }
  return originals[PRINT](L);
}

static int guarded_warn(lua_State *L) {
  guard.hide();
  return originals[WARN](L);
}

static int guarded_write(lua_State *L) {
  if (is_terminal_output(L, false)) {
    guard.hide();
    note_text(L, 1);
  }
  return originals[IO_WRITE](L);
}

static int guarded_file_write(lua_State *L) {
  if (is_terminal_output(L, true)) {
    guard.hide();
    note_text(L, 2);
  }
  return originals[FILE_WRITE](L);
}

/// The reply to a question at the terminal ends its line.
static void prepare_question(void) {
  guard.hide();
  if (isatty(STDIN_FILENO)) guard.wrote(true);
}

static int guarded_read(lua_State *L) {
  prepare_question();
  return originals[IO_READ](L);
}

static int guarded_file_read(lua_State *L) {
  const luaL_Stream *file = luaL_testudata(L, 1, LUA_FILEHANDLE);
  if (file != NULL && file->closef != NULL && file->f == stdin) prepare_question();
  return originals[FILE_READ](L);
}

static int guarded_popen(lua_State *L) {
  guard.hide();
  return originals[IO_POPEN](L);
}

static int guarded_execute(lua_State *L) {
  guard.hide();
  return originals[OS_EXECUTE](L);
}

static const struct {
  const char *name;
  lua_CFunction function;
  /// NULL: the metatable of files.
  const char *module;
} replacements[FUNCTIONS] = {
    [PRINT] = {"print", guarded_print, "_G"},
    [WARN] = {"warn", guarded_warn, "_G"},
    [IO_WRITE] = {"write", guarded_write, "io"},
    [IO_READ] = {"read", guarded_read, "io"},
    [FILE_WRITE] = {"write", guarded_file_write, NULL},
    [FILE_READ] = {"read", guarded_file_read, NULL},
    [IO_POPEN] = {"popen", guarded_popen, "io"},
    [OS_EXECUTE] = {"execute", guarded_execute, "os"},
};

static int replace_functions(lua_State *L, void *argument) {
  (void)argument;
  for (int i = 0; i < FUNCTIONS; i++) {
    lua_settop(L, 0);
    if (replacements[i].module != NULL) {
      lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
      lua_getfield(L, -1, replacements[i].module);
    } else {
      if (luaL_getmetatable(L, LUA_FILEHANDLE) != LUA_TTABLE) continue;
      lua_getfield(L, -1, "__index");
    }
    // A state may be without the library, or without the function.
    if (lua_type(L, -1) != LUA_TTABLE) continue;
    lua_getfield(L, -1, replacements[i].name);
    lua_CFunction present = lua_tocfunction(L, -1);
    if (present == NULL || present == replacements[i].function || flowlua_is_refused(L, -1))
      continue;
    if (originals[i] == NULL) originals[i] = present;
    lua_pushcfunction(L, replacements[i].function);
    lua_setfield(L, -3, replacements[i].name);
  }
  return 0;
}

int32_t flowlua_guard_output(flowlua_state *state, flowlua_output_guard with) {
  if (guard.hide == NULL) guard = with;
  return flowlua_protect(state, replace_functions, NULL);
}
