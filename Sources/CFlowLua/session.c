// The chunks of a session: the local variables of earlier ones are upvalues of the later ones.
//
// A variable is known by a cell: a Lua function whose first upvalue is that variable. A chunk makes the
// cells of its own variables while it runs, each after its declaration, so that closures of the chunk
// share the variable, and a chunk that raises leaves those that it had by then.
#include "internal.h"

/// Where the table that a session keeps has what.
enum {
  SCOPE_CELLS = 1,       // table: name -> cell
  SCOPE_ATTRIBUTES = 2,  // table: name -> "const" or "close"
  SCOPE_CLOSING = 3,     // list of the values to be closed
  SCOPE_CLOSER = 4,      // function: closes them
};

/// A variable without an upvalue in its cell is a constant of the compiler's: makes a cell with its value.
/// [-0, +1, e]
static void push_constant_cell(lua_State *L, int cell) {
  if (luaL_loadstring(L, "local value = ... return function() return value end") != LUA_OK)
    lua_error(L);
  lua_pushvalue(L, cell);
  lua_call(L, 0, 1);
  lua_call(L, 1, 1);
}

/// Called by a chunk after each declaration, with name, cell and attribute.
static int keep_local(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  // Upvalues of C functions can't be joined: debug.getupvalue gives this function to a script.
  luaL_argcheck(L, !lua_iscfunction(L, 2), 2, "Lua function expected");
  lua_settop(L, 3);
  int scope = lua_upvalueindex(1);
  if (lua_getupvalue(L, 2, 1) == NULL) {
    push_constant_cell(L, 2);
    lua_replace(L, 2);
    lua_getupvalue(L, 2, 1);
  }
  if (lua_type(L, 3) == LUA_TSTRING && strcmp(lua_tostring(L, 3), "close") == 0
      && lua_toboolean(L, 4)) {
    // As of a variable that Lua closes.
    if (luaL_getmetafield(L, 4, "__close") == LUA_TNIL)
      return luaL_error(L, "variable '%s' got a non-closable value", name);
    lua_rawgeti(L, scope, SCOPE_CLOSING);
    lua_pushvalue(L, 4);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  lua_rawgeti(L, scope, SCOPE_CELLS);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawset(L, -3);
  lua_rawgeti(L, scope, SCOPE_ATTRIBUTES);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 3);
  lua_rawset(L, -3);
  return 0;
}

typedef struct session_load {
  const void *bytes;
  size_t count;
  const char *name;
  int32_t scope;
  int32_t levels;
  const char *keeper;
  int status;
} session_load;

typedef struct dumped_chunk {
  luaL_Buffer buffer;
  bool is_ready;
} dumped_chunk;

static int write_chunk(lua_State *L, const void *bytes, size_t count, void *argument) {
  dumped_chunk *chunk = argument;
  if (!chunk->is_ready) {
    chunk->is_ready = true;
    luaL_buffinit(L, &chunk->buffer);
  }
  luaL_addlstring(&chunk->buffer, bytes, count);
  return 0;
}

// MARK: - Functions that count as main chunks

/// Goes through what lua_dump has written; `at` is NULL once that isn't what was expected.
typedef struct dump_reader {
  const char *at;
  const char *end;
} dump_reader;

enum {
  /// The bytes before the number of upvalues: signature, version, format, check data, three sizes and
  /// two numbers.
  DUMP_HEADER = 4 + 1 + 1 + 6 + 3 + sizeof(lua_Integer) + sizeof(lua_Number),
  /// The size of an instruction.
  DUMP_INSTRUCTION = 4,
};

static void skip_bytes(dump_reader *reader, size_t count) {
  if (reader->at == NULL || count > (size_t)(reader->end - reader->at)) reader->at = NULL;
  else reader->at += count;
}

/// Reads a number: seven bits a byte, the last byte marked. 0 where there is none.
static size_t read_number(dump_reader *reader) {
  size_t number = 0;
  while (reader->at != NULL && reader->at < reader->end) {
    unsigned char byte = (unsigned char)*reader->at++;
    number = number << 7 | (byte & 0x7f);
    if ((byte & 0x80) != 0) return number;
  }
  reader->at = NULL;
  return 0;
}

static void skip_string(dump_reader *reader) {
  size_t length = read_number(reader);
  if (length > 0) skip_bytes(reader, length - 1);
}

/// Skips a function; returns where its numbers of lines and the first of its lines begin.
static void skip_function(dump_reader *reader, const char **numbers, const char **lines) {
  const char *inner_numbers, *inner_lines;
  skip_string(reader);
  *numbers = reader->at;
  read_number(reader);
  read_number(reader);
  skip_bytes(reader, 3);
  size_t count = read_number(reader);
  if (count > SIZE_MAX / DUMP_INSTRUCTION) reader->at = NULL;
  skip_bytes(reader, count * DUMP_INSTRUCTION);
  for (count = read_number(reader); count > 0 && reader->at != NULL; count--) {
    int kind = reader->at < reader->end ? *reader->at : 0;
    skip_bytes(reader, 1);
    // The low bits are the type, the others distinguish floats, and long strings.
    if ((kind & 0x0f) == LUA_TNUMBER) skip_bytes(reader, sizeof(lua_Integer));
    else if ((kind & 0x0f) == LUA_TSTRING) skip_string(reader);
  }
  count = read_number(reader);
  for (; count > 0 && reader->at != NULL; count--) skip_bytes(reader, 3);
  for (count = read_number(reader); count > 0 && reader->at != NULL; count--)
    skip_function(reader, &inner_numbers, &inner_lines);
  count = read_number(reader);
  *lines = count > 0 ? reader->at : NULL;
  skip_bytes(reader, count);
  for (count = read_number(reader); count > 0 && reader->at != NULL; count--) {
    read_number(reader);
    read_number(reader);
  }
  for (count = read_number(reader); count > 0 && reader->at != NULL; count--) {
    skip_string(reader);
    read_number(reader);
    read_number(reader);
  }
  for (count = read_number(reader); count > 0 && reader->at != NULL; count--) skip_string(reader);
}

/// Replaces the function on top, which begins in line 1, by one that is the same, but counts as a main
/// chunk: tracebacks say so of a function that begins in line 0. Leaves it as it is where dumps look
/// otherwise than expected. [-1, +1, e]
static void make_main(lua_State *L) {
  _Static_assert(LUA_VERSION_NUM == 504, "dumps look like this in Lua 5.4");
  dumped_chunk chunk = {.is_ready = false};
  int function = lua_gettop(L);
  lua_dump(L, write_chunk, &chunk, 0);
  if (!chunk.is_ready) return;
  luaL_pushresult(&chunk.buffer);
  size_t count;
  const char *bytes = lua_tolstring(L, -1, &count), *numbers = NULL, *lines = NULL;
  dump_reader reader = {bytes, bytes + count};
  skip_bytes(&reader, DUMP_HEADER + 1);
  if (reader.at != NULL) skip_function(&reader, &numbers, &lines);
  if (reader.at != reader.end || lines == NULL || *lines != 0) {
    lua_settop(L, function);
    return;
  }
  dump_reader rest = {numbers, reader.end};
  size_t first = read_number(&rest);
  read_number(&rest);
  if (first == 1) {
    luaL_Buffer buffer;
    luaL_buffinitsize(L, &buffer, count);
    luaL_addlstring(&buffer, bytes, (size_t)(numbers - bytes));
    luaL_addlstring(&buffer, "\x80\x80", 2);
    luaL_addlstring(&buffer, rest.at, (size_t)(lines - rest.at));
    // Lines are counted from the first one of the function.
    luaL_addchar(&buffer, 1);
    luaL_addlstring(&buffer, lines + 1, (size_t)(reader.end - lines - 1));
    luaL_pushresult(&buffer);
    const char *patched = lua_tolstring(L, -1, &count);
    if (luaL_loadbufferx(L, patched, count, "=?", "b") == LUA_OK) lua_replace(L, function);
  }
  lua_settop(L, function);
}

/// Gives the function on top its upvalues: what earlier chunks have declared, the globals, and what
/// keeps its own variables.
static void join_upvalues(lua_State *L, const session_load *what) {
  int function = lua_gettop(L);
  flowlua_push_reference(state_of(L), L, what->scope);
  int scope = function + 1;
  lua_rawgeti(L, scope, SCOPE_CELLS);
  int cells = function + 2;
  const char *name;
  for (int i = 1; (name = lua_getupvalue(L, function, i)) != NULL; i++) {
    lua_pop(L, 1);
    lua_pushstring(L, name);
    if (lua_rawget(L, cells) == LUA_TFUNCTION) {
      lua_upvaluejoin(L, function, i, -1, 1);
      lua_pop(L, 1);
      continue;
    }
    lua_pop(L, 1);
    if (strcmp(name, what->keeper) == 0) {
      lua_pushvalue(L, scope);
      lua_pushcclosure(L, keep_local, 1);
    } else {
      lua_pushglobaltable(L);
    }
    lua_setupvalue(L, function, i);
  }
  lua_settop(L, function);
}

static int load_session_chunk(lua_State *L, void *argument) {
  session_load *what = argument;
  what->status = luaL_loadbufferx(L, what->bytes, what->count, what->name, "t");
  if (what->status != LUA_OK) return 1;
  // Each level declares variables, and returns the next.
  for (int32_t i = 0; i < what->levels; i++) lua_call(L, 0, 1);
  make_main(L);
  join_upvalues(L, what);
  return 1;
}

int32_t flowlua_load_session_chunk(
    flowlua_state *state, const void *bytes, size_t count, const char *chunk_name, int32_t scope,
    int32_t levels, const char *keeper) {
  session_load what = {bytes, count, chunk_name, scope, levels, keeper, LUA_OK};
  int32_t status = flowlua_protect(state, load_session_chunk, &what);
  return status != LUA_OK ? status : what.status;
}

/// Closes the values of a scope, the first argument: as at the end of a block, the last one first.
static int close_locals(lua_State *L) {
  lua_settop(L, 1);
  lua_rawgeti(L, 1, SCOPE_CLOSING);
  int list = 2, count = (int)lua_rawlen(L, list);
  luaL_checkstack(L, count, "variables to be closed");
  // None is closed twice, whatever happens.
  lua_newtable(L);
  lua_rawseti(L, 1, SCOPE_CLOSING);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, list, i);
    // One may have lost its metamethod.
    if (luaL_getmetafield(L, -1, "__close") == LUA_TNIL) {
      lua_pop(L, 1);
      continue;
    }
    lua_pop(L, 1);
    lua_toclose(L, -1);
  }
  return 0;
}

/// The scope's own __close. It is called whenever its place on the stack is left, which is the state's
/// end unless the session has closed its variables before.
static int close_with_state(lua_State *L) {
  if (!state_of(L)->closing) return 0;
  lua_pushcfunction(L, close_locals);
  lua_pushvalue(L, 1);
  // Without a message handler: the code that called os.exit isn't on the stack any more.
  lua_pcall(L, 1, 0, 0);
  return 0;
}

static int make_scope(lua_State *L, void *argument) {
  (void)argument;
  lua_createtable(L, 4, 0);
  for (int i = SCOPE_CELLS; i <= SCOPE_CLOSING; i++) {
    lua_newtable(L);
    lua_rawseti(L, -2, i);
  }
  lua_pushcfunction(L, close_locals);
  lua_rawseti(L, -2, SCOPE_CLOSER);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, close_with_state);
  lua_setfield(L, -2, "__close");
  lua_setmetatable(L, -2);
  return 1;
}

int32_t flowlua_make_session_scope(flowlua_state *state) {
  lua_State *L = state->running;
  int32_t status = flowlua_make_room(state, L, LUA_MINSTACK);
  if (status == LUA_OK) status = flowlua_protect(state, make_scope, NULL);
  // os.exit may close the state from anywhere, without the session: what is to be closed on the stack
  // of the main thread is closed then, before any finalizer. Below all that lines execute, this is the
  // last one. Neither call can raise: the value has a __close.
  if (status == LUA_OK && !flowlua_is_busy(state)) {
    lua_pushvalue(L, -1);
    lua_toclose(L, -2);
  }
  return status;
}

typedef struct cell_argument {
  int32_t scope;
  const char *name;
} cell_argument;

static int push_session_local(lua_State *L, void *argument) {
  const cell_argument *what = argument;
  flowlua_push_reference(state_of(L), L, what->scope);
  lua_rawgeti(L, -1, SCOPE_CELLS);
  lua_pushstring(L, what->name);
  if (lua_rawget(L, -2) == LUA_TFUNCTION && lua_getupvalue(L, -1, 1) != NULL) return 1;
  lua_pushnil(L);
  return 1;
}

int32_t flowlua_push_session_local(flowlua_state *state, int32_t scope, const char *name) {
  cell_argument what = {scope, name};
  return flowlua_protect(state, push_session_local, &what);
}

// MARK: - Calls

typedef struct session_call {
  int32_t function;
  int status;
  int32_t result_count;
} session_call;

/// Leaves the error value as it is: the traceback goes into the table that this knows. An error of the
/// host keeps its own, too.
static int note_traceback(lua_State *L) {
  lua_Debug frame;
  bool is_keeper = false;
  if (lua_getstack(L, 1, &frame) && lua_getinfo(L, "f", &frame)) {
    is_keeper = lua_tocfunction(L, -1) == keep_local;
    lua_pop(L, 1);
  }
  flowlua_push_traceback(L, L, NULL, is_keeper ? 2 : 1);
  lua_rawseti(L, lua_upvalueindex(1), 1);
  flowlua_state *state = state_of(L);
  if (state->error_metatable != 0 && lua_type(L, 1) == LUA_TTABLE && lua_getmetatable(L, 1)) {
    flowlua_push_reference(state, L, state->error_metatable);
    bool is_own = lua_rawequal(L, -1, -2);
    lua_settop(L, 1);
    if (is_own) return flowlua_traceback_handler(L);
  }
  return 1;
}

static int call_session_chunk(lua_State *L, void *argument) {
  session_call *what = argument;
  lua_newtable(L);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, note_traceback, 1);
  flowlua_push_reference(state_of(L), L, what->function);
  what->status = lua_pcall(L, 0, LUA_MULTRET, 2);
  if (what->status == LUA_OK) {
    what->result_count = lua_gettop(L) - 2;
    return what->result_count;
  }
  lua_rawgeti(L, 1, 1);
  lua_insert(L, -2);
  return 2;
}

int32_t flowlua_call_session_chunk(flowlua_state *state, int32_t function, int32_t *result_count) {
  session_call what = {function, LUA_OK, 0};
  int32_t status = flowlua_protect(state, call_session_chunk, &what);
  if (status != LUA_OK) {
    // Without a traceback, which stands below the error otherwise.
    *result_count = 0;
    return status;
  }
  *result_count = what.status == LUA_OK ? what.result_count : 1;
  return what.status;
}
