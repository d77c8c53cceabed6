// Chunks and functions: loading, calling, and texts of them, each under lua_pcall.
#include "internal.h"

#include <sys/stat.h>

typedef struct load_argument {
  const void *bytes;
  size_t count;
  const char *name;
  const char *mode;
  /// Lua's own status, which tells bad syntax from an unreadable file and from lack of memory.
  int status;
} load_argument;

static int load_chunk(lua_State *L, void *argument) {
  load_argument *what = argument;
  what->status = luaL_loadbufferx(L, what->bytes, what->count, what->name, what->mode);
  return 1;
}

int32_t flowlua_load(
    flowlua_state *state, const void *bytes, size_t count, const char *chunk_name,
    const char *mode) {
  load_argument what = {bytes, count, chunk_name, mode, LUA_OK};
  int32_t status = flowlua_protect(state, load_chunk, &what);
  return status != LUA_OK ? status : what.status;
}

/// Collects what lua_dump writes. [-0, +?, m]
typedef struct {
  luaL_Buffer buffer;
  bool is_open;
} dump_target;

static int write_dump(lua_State *L, const void *bytes, size_t count, void *argument) {
  dump_target *target = argument;
  // Not before, as lua_dump expects the function on the top.
  if (!target->is_open) luaL_buffinit(L, &target->buffer);
  target->is_open = true;
  luaL_addlstring(&target->buffer, bytes, count);
  return 0;
}

static int load_own_chunk(lua_State *L, void *argument) {
  load_argument *what = argument;
  what->status = luaL_loadbufferx(L, what->bytes, what->count, what->name, "t");
  if (what->status != LUA_OK) return 1;
  dump_target target = {.is_open = false};
  lua_dump(L, write_dump, &target, 1);
  luaL_pushresult(&target.buffer);
  size_t count;
  const char *code = lua_tolstring(L, -1, &count);
  what->status = luaL_loadbufferx(L, code, count, what->name, "b");
  return 1;
}

int32_t flowlua_load_own(
    flowlua_state *state, const void *bytes, size_t count, const char *chunk_name) {
  load_argument what = {bytes, count, chunk_name, "t", LUA_OK};
  int32_t status = flowlua_protect(state, load_own_chunk, &what);
  return status != LUA_OK ? status : what.status;
}

static int load_file(lua_State *L, void *argument) {
  load_argument *what = argument;
  what->status = luaL_loadfilex(L, what->name, what->mode);
  return 1;
}

/// Reads a chunk for Lua's parser byte by byte, as it asks for them.
typedef struct {
  const char *bytes;
  size_t count;
  FILE *file;
  /// The byte that was read last, or EOF at the end.
  int last;
  /// The bytes of the present line that were read before it.
  int32_t column;
  char next;
  int status;
} byte_reader;

static const char *read_byte(lua_State *L, void *argument, size_t *size) {
  (void)L;
  byte_reader *reader = argument;
  if (reader->last == '\n') {
    reader->column = 0;
  } else if (reader->last >= 0) {
    reader->column += 1;
  }
  if (reader->file) {
    reader->last = getc(reader->file);
  } else if (reader->count > 0) {
    reader->last = (unsigned char)*reader->bytes;
    reader->bytes += 1;
    reader->count -= 1;
  } else {
    reader->last = EOF;
  }
  *size = reader->last == EOF ? 0 : 1;
  reader->next = (char)reader->last;
  return *size ? &reader->next : NULL;
}

static int load_bytes(lua_State *L, void *argument) {
  byte_reader *reader = argument;
  reader->status = lua_load(L, read_byte, reader, "=", "t");
  return 0;
}

int32_t flowlua_column_read(
    flowlua_state *state, const void *bytes, size_t count, const char *path) {
  byte_reader reader = {.bytes = bytes, .count = count, .last = '\n'};
  if (path) {
    // A pipe would wait for a writer.
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
    reader.file = fopen(path, "rb");
    if (!reader.file) return 0;
    // As luaL_loadfilex does.
    int first = getc(reader.file);
    if (first == 0xEF && getc(reader.file) == 0xBB && getc(reader.file) == 0xBF) {
      first = getc(reader.file);
    }
    if (first == '#') {
      while (first != EOF && first != '\n') first = getc(reader.file);
    }
    if (first != EOF) ungetc(first, reader.file);
  }
  int32_t status = flowlua_protect(state, load_bytes, &reader);
  if (reader.file) fclose(reader.file);
  if (status != LUA_OK) flowlua_discard_error(state, status);
  // The last byte is that after the piece, and the column counts from 1.
  return status == LUA_OK && reader.status == LUA_ERRSYNTAX ? reader.column + 1 : 0;
}

void flowlua_set_error_metatable(flowlua_state *state, int32_t metatable) {
  state->error_metatable = metatable;
}

void flowlua_set_setting_metatable(flowlua_state *state, int32_t metatable) {
  state->setting_metatable = metatable;
}

int32_t flowlua_load_file(flowlua_state *state, const char *path, const char *mode) {
  load_argument what = {NULL, 0, path, mode, LUA_OK};
  int32_t status = flowlua_protect(state, load_file, &what);
  return status != LUA_OK ? status : what.status;
}

/// Gives an error table of the host the traceback that it hasn't got where it came about. [-0, +0, m]
static void add_traceback(lua_State *L) {
  lua_pushliteral(L, "traceback");
  if (lua_rawget(L, 1) == LUA_TNIL) {
    lua_pushliteral(L, "traceback");
    flowlua_push_traceback(L, L, NULL, 1);
    lua_rawset(L, 1);
  }
  lua_settop(L, 1);
}

/// The message handler of scripts, with the texts of the stand-alone interpreter. An error of the
/// host passes as it is: it has its own traceback.
int flowlua_traceback_handler(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (message == NULL) {
    flowlua_state *state = state_of(L);
    if (state->error_metatable != 0 && lua_getmetatable(L, 1)) {
      flowlua_push_reference(state, L, state->error_metatable);
      bool own = lua_rawequal(L, -1, -2);
      lua_settop(L, 1);
      if (own) {
        add_traceback(L);
        return 1;
      }
    }
    if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING) return 1;
    message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
  }
  flowlua_push_traceback(L, L, message, 1);
  return 1;
}

typedef struct call_argument {
  int32_t function;
  const flowlua_value *arguments;
  int32_t count;
} call_argument;

/// Pushes the function with its arguments, and calls it. [-1, +?, e]
int flowlua_run_call(lua_State *L) {
  const call_argument *what = lua_touserdata(L, 1);
  flowlua_state *state = state_of(L);
  lua_settop(L, 0);
  flowlua_require_room(L, what->count + 8, "too many arguments");
  flowlua_push_reference(state, L, what->function);
  for (int32_t i = 0; i < what->count; i++) flowlua_push_plain(L, state, &what->arguments[i]);
  lua_call(L, what->count, LUA_MULTRET);
  return lua_gettop(L);
}

int32_t flowlua_begin_call(flowlua_state *state, int32_t function) {
  int32_t status = flowlua_make_room(state, state->running, LUA_MINSTACK);
  if (status == LUA_OK) flowlua_push_reference(state, state->running, function);
  return status;
}

int32_t flowlua_finish_call(flowlua_state *state, int32_t before, int32_t *result_count) {
  lua_State *L = state->running;
  int32_t status = lua_pcall(L, lua_gettop(L) - before - 1, LUA_MULTRET, 0);
  *result_count = status == LUA_OK ? lua_gettop(L) - before : 0;
  return status;
}

int32_t flowlua_call_function(
    flowlua_state *state, int32_t function, const flowlua_value *arguments, int32_t count,
    bool traceback, int32_t *result_count) {
  lua_State *L = state->running;
  int before = lua_gettop(L);
  *result_count = 0;
  int32_t status = flowlua_make_room(state, L, count + LUA_MINSTACK);
  if (status != LUA_OK) return status;
  call_argument what = {function, arguments, count};
  if (traceback) lua_pushcfunction(L, flowlua_traceback_handler);
  lua_pushcfunction(L, flowlua_run_call);
  lua_pushlightuserdata(L, &what);
  status = lua_pcall(L, 1, LUA_MULTRET, traceback ? before + 1 : 0);
  if (traceback) lua_remove(L, before + 1);
  if (status == LUA_OK) *result_count = lua_gettop(L) - before;
  return status;
}

// MARK: - Texts

static int to_string(lua_State *L, void *argument) {
  flowlua_push_plain(L, state_of(L), argument);
  luaL_tolstring(L, -1, NULL);
  return 1;
}

int32_t flowlua_tostring(flowlua_state *state, const flowlua_value *value) {
  return flowlua_protect(state, to_string, (void *)value);
}

typedef struct traceback_argument {
  lua_State *coroutine;
  const char *message;
  int32_t level;
} traceback_argument;

static int make_traceback(lua_State *L, void *argument) {
  const traceback_argument *what = argument;
  flowlua_push_traceback(L, what->coroutine, what->message, what->level);
  return 1;
}

int32_t flowlua_traceback(
    flowlua_state *state, lua_State *coroutine, const char *message, int32_t level) {
  traceback_argument what = {coroutine, message, level};
  return flowlua_protect(state, make_traceback, &what);
}

// MARK: - Modules and the collector

typedef struct preload_argument {
  const char *names;
  int32_t count;
  int32_t function;
} preload_argument;

static int preload(lua_State *L, void *argument) {
  const preload_argument *what = argument;
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  flowlua_push_reference(state_of(L), L, what->function);
  const char *name = what->names;
  for (int32_t i = 0; i < what->count; i++) {
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
    name += strlen(name) + 1;
  }
  return 0;
}

int32_t flowlua_preload(flowlua_state *state, const char *names, int32_t count, int32_t function) {
  preload_argument what = {names, count, function};
  return flowlua_protect(state, preload, &what);
}

static int collect(lua_State *L, void *argument) {
  (void)argument;
  lua_gc(L, LUA_GCCOLLECT);
  flowlua_note_outside_collected(state_of(L));
  return 0;
}

int32_t flowlua_collect(flowlua_state *state) { return flowlua_protect(state, collect, NULL); }
