// Operations that may raise, each under lua_pcall, so that Swift sees a status.
#include "internal.h"

typedef struct protected_call {
  int (*body)(lua_State *, void *);
  void *argument;
} protected_call;

int flowlua_run_protected(lua_State *L) {
  const protected_call *call = lua_touserdata(L, 1);
  lua_settop(L, 0);
  return call->body(L, call->argument);
}

int32_t flowlua_protect(
    flowlua_host *host, int (*body)(lua_State *, void *), void *argument) {
  lua_State *L = host->running;
  protected_call call = {body, argument};
  int32_t room = flowlua_make_room(host, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  lua_pushcfunction(L, flowlua_run_protected);
  lua_pushlightuserdata(L, &call);
  return lua_pcall(L, 1, LUA_MULTRET, 0);
}

void flowlua_discard_error(flowlua_host *host, int32_t status) {
  if (status > LUA_OK) flowlua_pop(host->running, 1);
}

// MARK: - Loading and calling

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
    flowlua_host *host, const void *bytes, size_t count, const char *chunk_name,
    const char *mode) {
  load_argument what = {bytes, count, chunk_name, mode, LUA_OK};
  int32_t status = flowlua_protect(host, load_chunk, &what);
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
    flowlua_host *host, const void *bytes, size_t count, const char *chunk_name) {
  load_argument what = {bytes, count, chunk_name, "t", LUA_OK};
  int32_t status = flowlua_protect(host, load_own_chunk, &what);
  return status != LUA_OK ? status : what.status;
}

static int load_file(lua_State *L, void *argument) {
  load_argument *what = argument;
  what->status = luaL_loadfilex(L, what->name, what->mode);
  return 1;
}

void flowlua_set_error_metatable(flowlua_host *host, int32_t metatable) {
  host->error_metatable = metatable;
}

int32_t flowlua_load_file(flowlua_host *host, const char *path, const char *mode) {
  load_argument what = {NULL, 0, path, mode, LUA_OK};
  int32_t status = flowlua_protect(host, load_file, &what);
  return status != LUA_OK ? status : what.status;
}

/// Gives an error table of the host the traceback that it hasn't got where it came about. [-0, +0, m]
static void add_traceback(lua_State *L) {
  lua_pushliteral(L, "traceback");
  if (lua_rawget(L, 1) == LUA_TNIL) {
    lua_pushliteral(L, "traceback");
    luaL_traceback(L, L, NULL, 1);
    lua_rawset(L, 1);
  }
  lua_settop(L, 1);
}

/// The message handler of scripts, with the texts of the stand-alone interpreter. An error of the
/// host passes as it is: it has its own traceback.
int flowlua_traceback_handler(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (message == NULL) {
    flowlua_host *host = host_of(L);
    if (host->error_metatable != 0 && lua_getmetatable(L, 1)) {
      flowlua_push_reference(host, L, host->error_metatable);
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
  luaL_traceback(L, L, message, 1);
  return 1;
}

typedef struct call_argument {
  int32_t function;
  const flowlua_value *arguments;
  int32_t count;
  bool traceback;
  int status;
  int32_t result_count;
} call_argument;

static int call_function(lua_State *L, void *argument) {
  call_argument *what = argument;
  flowlua_host *host = host_of(L);
  flowlua_require_room(L, what->count + 8, "too many arguments");
  if (what->traceback) lua_pushcfunction(L, flowlua_traceback_handler);
  flowlua_push_reference(host, L, what->function);
  for (int32_t i = 0; i < what->count; i++)
    flowlua_push_plain(L, host, &what->arguments[i]);
  what->status =
      lua_pcall(L, what->count, LUA_MULTRET, what->traceback ? 1 : 0);
  what->result_count = lua_gettop(L) - (what->traceback ? 1 : 0);
  return what->result_count;
}

int32_t flowlua_call_function(
    flowlua_host *host, int32_t function, const flowlua_value *arguments, int32_t count,
    bool traceback, int32_t *result_count) {
  call_argument what = {function, arguments, count, traceback, LUA_OK, 0};
  int32_t status = flowlua_protect(host, call_function, &what);
  *result_count = what.result_count;
  return status != LUA_OK ? status : what.status;
}

// MARK: - Tables

typedef struct table_argument {
  const flowlua_value *values;
  int32_t count;
  const flowlua_value *keyed;
  int32_t pairs;
  int32_t reference;  // the table itself, or its metatable
  int64_t first;      // where values begin in a table that is there
} table_argument;

static void set_fields_of_top(lua_State *L, flowlua_host *host, const table_argument *what) {
  for (int32_t i = 0; i < what->pairs; i++) {
    flowlua_push_plain(L, host, &what->keyed[2 * i]);
    flowlua_push_plain(L, host, &what->keyed[2 * i + 1]);
    lua_rawset(L, -3);
  }
}

static int make_table(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_host *host = host_of(L);
  lua_createtable(L, what->count, what->pairs);
  for (int32_t i = 0; i < what->count; i++) {
    flowlua_push_plain(L, host, &what->values[i]);
    lua_rawseti(L, -2, i + 1);
  }
  set_fields_of_top(L, host, what);
  if (what->reference > 0) {
    flowlua_push_reference(host, L, what->reference);
    lua_setmetatable(L, -2);
  }
  return 1;
}

int32_t flowlua_make_table(
    flowlua_host *host, const flowlua_value *values, int32_t count,
    const flowlua_value *keyed, int32_t pairs, int32_t metatable) {
  table_argument what = {values, count, keyed, pairs, metatable, 1};
  return flowlua_protect(host, make_table, &what);
}

static int set_elements(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_host *host = host_of(L);
  flowlua_push_reference(host, L, what->reference);
  for (int32_t i = 0; i < what->count; i++) {
    flowlua_push_plain(L, host, &what->values[i]);
    lua_rawseti(L, -2, (lua_Integer)what->first + i);
  }
  return 0;
}

int32_t flowlua_set_elements(
    flowlua_host *host, int32_t table, int64_t first, const flowlua_value *values,
    int32_t count) {
  table_argument what = {.values = values, .count = count, .reference = table, .first = first};
  return flowlua_protect(host, set_elements, &what);
}

static int make_list(lua_State *L, void *argument) {
  lua_createtable(L, ((const table_argument *)argument)->count, 0);
  return 1;
}

int32_t flowlua_make_list(flowlua_host *host, int32_t capacity) {
  table_argument what = {.count = capacity};
  return flowlua_protect(host, make_list, &what);
}

static int set_fields(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_push_reference(host_of(L), L, what->reference);
  set_fields_of_top(L, host_of(L), what);
  return 0;
}

int32_t flowlua_set_fields(
    flowlua_host *host, int32_t table, const flowlua_value *keyed, int32_t pairs) {
  table_argument what = {.keyed = keyed, .pairs = pairs, .reference = table};
  return flowlua_protect(host, set_fields, &what);
}

static int get_field(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_push_reference(host_of(L), L, what->reference);
  flowlua_push_plain(L, host_of(L), what->keyed);
  lua_gettable(L, -2);
  return 1;
}

int32_t flowlua_get_field(flowlua_host *host, int32_t table, const flowlua_value *key) {
  table_argument what = {.keyed = key, .pairs = 1, .reference = table};
  return flowlua_protect(host, get_field, &what);
}

typedef struct walk_argument {
  int32_t table;
  bool (*each)(lua_State *, void *);
  void *argument;
} walk_argument;

static int walk_pairs(lua_State *L, void *argument) {
  const walk_argument *what = argument;
  flowlua_push_reference(host_of(L), L, what->table);
  luaL_checktype(L, 1, LUA_TTABLE);
  if (flowlua_push_viewed(L, 1)) lua_replace(L, 1);
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    if (!what->each(L, what->argument)) break;
    lua_settop(L, 2);
  }
  return 0;
}

int32_t flowlua_each_pair(
    flowlua_host *host, int32_t table, bool (*each)(lua_State *, void *), void *argument) {
  walk_argument what = {table, each, argument};
  return flowlua_protect(host, walk_pairs, &what);
}

// MARK: - Single values

static int push_value(lua_State *L, void *argument) {
  flowlua_push_any(L, host_of(L), argument);
  return 1;
}

int32_t flowlua_push_protected(flowlua_host *host, const flowlua_value *value) {
  flowlua_value taken = *value;
  lua_State *L = host->running;
  int32_t status = flowlua_make_room(host, L, 2);
  if (status == LUA_OK) {
    // What needs no memory needs no protection.
    if (!flowlua_push_light(L, host, &taken))
      status = flowlua_protect(host, push_value, &taken);
  }
  flowlua_dispose(host, &taken);
  return status;
}

static int to_string(lua_State *L, void *argument) {
  flowlua_push_plain(L, host_of(L), argument);
  luaL_tolstring(L, -1, NULL);
  return 1;
}

int32_t flowlua_tostring(flowlua_host *host, const flowlua_value *value) {
  return flowlua_protect(host, to_string, (void *)value);
}

typedef struct traceback_argument {
  lua_State *coroutine;
  const char *message;
  int32_t level;
} traceback_argument;

static int make_traceback(lua_State *L, void *argument) {
  const traceback_argument *what = argument;
  luaL_traceback(L, what->coroutine, what->message, what->level);
  return 1;
}

int32_t flowlua_traceback(
    flowlua_host *host, lua_State *coroutine, const char *message, int32_t level) {
  traceback_argument what = {coroutine, message, level};
  return flowlua_protect(host, make_traceback, &what);
}

typedef struct preload_argument {
  const char *name;
  int32_t function;
} preload_argument;

static int preload(lua_State *L, void *argument) {
  const preload_argument *what = argument;
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  flowlua_push_reference(host_of(L), L, what->function);
  lua_setfield(L, -2, what->name);
  return 0;
}

int32_t flowlua_preload(flowlua_host *host, const char *name, int32_t function) {
  preload_argument what = {name, function};
  return flowlua_protect(host, preload, &what);
}

static int collect(lua_State *L, void *argument) {
  (void)argument;
  lua_gc(L, LUA_GCCOLLECT);
  return 0;
}

int32_t flowlua_collect(flowlua_host *host) { return flowlua_protect(host, collect, NULL); }
