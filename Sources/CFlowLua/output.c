// Standard functions that use the terminal, with something of the host's done before and after: a line
// of status makes way for what a script prints, or asks for.
//
// Each is the original, called within the same Lua frame, so that errors and tracebacks are the same.
#include <stdio.h>
#include <unistd.h>

#include "internal.h"

enum { PRINT, WARN, IO_WRITE, IO_READ, FILE_WRITE, FILE_READ, IO_POPEN, OS_EXECUTE, FUNCTIONS };

// Lua's own functions, equal in each state of the process: set for the first one, and only read from then on.
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

// The output of a state that has a destination of its own: scripts write to a function of the host instead of
// standard output and standard error.
//
// Arguments, results and errors are those of the standard functions. The host's function doesn't raise, so that
// an error of a script never passes its frame: it is raised before or after the call.

/// The part of a warning that a call of the host can get at once, in bytes.
enum { WARNING_ROOM = 1000 };

/// The state's warnings, which Lua gives in pieces.
struct captured_warnings {
  /// Whether the script has turned them on.
  bool are_on;
  /// Whether the last piece is followed by another one.
  bool is_within;
  size_t count;
  char text[WARNING_ROOM];
};

static void emit(flowlua_state *state, const char *bytes, size_t count) {
  if (count > 0) state->callbacks.write(state, bytes, count);
}

// MARK: - Warnings

static void flush_warning(flowlua_state *state) {
  emit(state, state->warnings->text, state->warnings->count);
  state->warnings->count = 0;
}

static void add_to_warning(flowlua_state *state, const char *text) {
  captured_warnings *warnings = state->warnings;
  size_t count = strlen(text);
  if (count > WARNING_ROOM - warnings->count) flush_warning(state);
  if (count > WARNING_ROOM) {
    emit(state, text, count);
    return;
  }
  memcpy(warnings->text + warnings->count, text, count);
  warnings->count += count;
}

/// A lua_WarnFunction, also called by Lua itself for errors in finalizers: it must not raise. [-0, +0, -]
static void take_warning(void *context, const char *piece, int continues) {
  flowlua_state *state = context;
  captured_warnings *warnings = state->warnings;
  if (!warnings->is_within && !continues && *piece == '@') {
    if (strcmp(piece, "@on") == 0) warnings->are_on = true;
    if (strcmp(piece, "@off") == 0) warnings->are_on = false;
    return;
  }
  if (warnings->are_on) {
    if (!warnings->is_within) add_to_warning(state, "Lua warning: ");
    add_to_warning(state, piece);
    if (!continues) {
      add_to_warning(state, "\n");
      flush_warning(state);
    }
  }
  warnings->is_within = continues != 0;
}

// MARK: - Functions

/// print, with one call of the host for its line. [-n, +0, e]
static int captured_print(lua_State *L) {
  int count = lua_gettop(L);
  luaL_Buffer line;
  luaL_buffinit(L, &line);
  for (int i = 1; i <= count; i++) {
    if (i > 1) luaL_addchar(&line, '\t');
    luaL_tolstring(L, i, NULL);
    luaL_addvalue(&line);
  }
  luaL_addchar(&line, '\n');
  luaL_pushresult(&line);
  size_t length;
  const char *bytes = lua_tolstring(L, -1, &length);
  emit(state_of(L), bytes, length);
  return 0;
}

/// Adds an argument of `write` to a text, a number in the standard function's form. [-0, +0, m]
static void add_argument(lua_State *L, luaL_Buffer *text, int index) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    char *room = luaL_prepbuffsize(text, 64);
    int length = lua_isinteger(L, index)
        ? snprintf(room, 64, LUA_INTEGER_FMT, (LUAI_UACINT)lua_tointeger(L, index))
        : snprintf(room, 64, LUA_NUMBER_FMT, (LUAI_UACNUMBER)lua_tonumber(L, index));
    luaL_addsize(text, (size_t)length);
  } else {
    size_t length;
    const char *bytes = lua_tolstring(L, index, &length);
    luaL_addlstring(text, bytes, length);
  }
}

/// Writes the arguments from `first` on, up to one that is neither a string nor a number: the standard function
/// has written those before it, too, when it raises. [-0, +1, e]
static void write_arguments(lua_State *L, int first) {
  int count = lua_gettop(L), end = first;
  while (end <= count && (lua_type(L, end) == LUA_TSTRING || lua_type(L, end) == LUA_TNUMBER))
    end++;
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (int i = first; i < end; i++) add_argument(L, &text, i);
  luaL_pushresult(&text);
  size_t length;
  const char *bytes = lua_tolstring(L, -1, &length);
  emit(state_of(L), bytes, length);
  if (end <= count) luaL_checkstring(L, end);
}

/// Whether a file is one of those that the host takes. [-0, +0, -]
static bool is_captured(const luaL_Stream *file) {
  return file != NULL && file->closef != NULL && (file->f == stdout || file->f == stderr);
}

/// Calls the standard function, the upvalue, in this frame, so that its errors name this function. [-n, +n, e]
static int call_standard(lua_State *L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

/// io.write, unless io.output has set a file of the script.
static int captured_write(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output");
  bool takes = is_captured(lua_touserdata(L, -1));
  lua_settop(L, -2);
  if (!takes) return call_standard(L);
  write_arguments(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output");
  return 1;
}

/// file:write of io.stdout and io.stderr.
static int captured_file_write(lua_State *L) {
  if (!is_captured(luaL_testudata(L, 1, LUA_FILEHANDLE))) return call_standard(L);
  write_arguments(L, 2);
  lua_pushvalue(L, 1);
  return 1;
}

/// Replaces a field of the table on top by a function that has the present value as its upvalue. [-0, +0, m]
static void replace(lua_State *L, const char *name, lua_CFunction function) {
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
}

/// Argument: nothing. A state without a library lacks its functions, too. [-0, +0, m]
static int capture_functions(lua_State *L, void *argument) {
  (void)argument;
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, LUA_GNAME) == LUA_TTABLE) {
    lua_pushcfunction(L, captured_print);
    lua_setfield(L, -2, "print");
  }
  lua_settop(L, -2);
  if (lua_getfield(L, -1, LUA_IOLIBNAME) == LUA_TTABLE) replace(L, "write", captured_write);
  lua_settop(L, -2);
  if (luaL_getmetatable(L, LUA_FILEHANDLE) == LUA_TTABLE) {
    lua_getfield(L, -1, "__index");
    replace(L, "write", captured_file_write);
  }
  return 0;
}

int32_t flowlua_capture_output(flowlua_state *state) {
  state->warnings = flowlua_zeroed_own(sizeof *state->warnings);
  if (state->warnings == NULL) return FLOWLUA_NO_MEMORY;
  lua_setwarnf(state->main, take_warning, state);
  return flowlua_protect(state, capture_functions, NULL);
}
