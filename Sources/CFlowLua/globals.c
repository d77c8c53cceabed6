// The globals that functions from another state see: mistakes with them are errors.
#include "internal.h"

/// The name of a global for messages. [-0, +1, m]
static const char *shown_name(lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING) return lua_tolstring(L, 2, NULL);
  return lua_pushfstring(L, "(a %s)", luaL_typename(L, 2));
}

/// Reading a global that isn't in the guarded table: what modules have defined is known as well.
static int read_other(lua_State *L) {
  lua_settop(L, 2);
  lua_pushglobaltable(L);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) != LUA_TNIL) return 1;
  return luaL_error(L, "global '%s' isn't known in a worker: make it local", shown_name(L));
}

static int set_other(lua_State *L) {
  return luaL_error(L, "can't set global '%s' in a worker: make it local", shown_name(L));
}

static int guard_globals(lua_State *L, void *argument) {
  (void)argument;
  lua_createtable(L, 0, 64);
  lua_pushglobaltable(L);
  lua_pushnil(L);
  while (lua_next(L, 2)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, 1);
  }
  lua_settop(L, 1);
  lua_pushvalue(L, 1);
  lua_setfield(L, 1, LUA_GNAME);
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, read_other);
  lua_setfield(L, 2, "__index");
  lua_pushcfunction(L, set_other);
  lua_setfield(L, 2, "__newindex");
  lua_setmetatable(L, 1);
  return 1;
}

int32_t flowlua_guard_globals(flowlua_state *state) {
  int32_t status = flowlua_protect(state, guard_globals, NULL);
  if (status != LUA_OK) return status;
  int32_t reference = flowlua_reference(state, state->running);
  if (reference == 0) return FLOWLUA_NO_MEMORY;
  flowlua_unreference(state, state->guarded_globals);
  state->guarded_globals = reference;
  return LUA_OK;
}

// Global variables as the stand-alone interpreter treats them: they are looked up and set with
// metamethods, and may hold anything.

typedef struct global_call {
  const char *name;
  const flowlua_value *arguments;
  int32_t count;
  bool traceback;
  int status;
  int32_t result_count;
} global_call;

static int call_global(lua_State *L, void *argument) {
  global_call *what = argument;
  flowlua_require_room(L, what->count + 8, "too many arguments");
  if (what->traceback) lua_pushcfunction(L, flowlua_traceback_handler);
  lua_getglobal(L, what->name);
  for (int32_t i = 0; i < what->count; i++) flowlua_push_plain(L, state_of(L), &what->arguments[i]);
  what->status = lua_pcall(L, what->count, LUA_MULTRET, what->traceback ? 1 : 0);
  what->result_count = lua_gettop(L) - (what->traceback ? 1 : 0);
  return what->result_count;
}

int32_t flowlua_call_global(
    flowlua_state *state, const char *name, const flowlua_value *arguments, int32_t count,
    bool traceback, int32_t *result_count) {
  global_call what = {name, arguments, count, traceback, LUA_OK, 0};
  int32_t status = flowlua_protect(state, call_global, &what);
  *result_count = what.result_count;
  return status != LUA_OK ? status : what.status;
}

typedef struct global_argument {
  const char *name;
  const flowlua_value *value;
} global_argument;

static int assign_global(lua_State *L, void *argument) {
  const global_argument *what = argument;
  flowlua_push_plain(L, state_of(L), what->value);
  lua_setglobal(L, what->name);
  return 0;
}

int32_t flowlua_assign_global(flowlua_state *state, const char *name, const flowlua_value *value) {
  global_argument what = {name, value};
  return flowlua_protect(state, assign_global, &what);
}

static int read_global(lua_State *L, void *argument) {
  lua_getglobal(L, argument);
  return 1;
}

int32_t flowlua_read_global(flowlua_state *state, const char *name) {
  return flowlua_protect(state, read_global, (void *)name);
}

typedef struct script_call {
  int32_t function;
  int status;
} script_call;

/// The arguments are what `arg` holds by now, from 1 on.
static int call_script(lua_State *L, void *argument) {
  script_call *what = argument;
  lua_pushcfunction(L, flowlua_traceback_handler);
  flowlua_push_reference(state_of(L), L, what->function);
  if (lua_getglobal(L, "arg") != LUA_TTABLE) return luaL_error(L, "'arg' is not a table");
  int count = (int)luaL_len(L, -1);
  luaL_checkstack(L, count + 3, "too many arguments to script");
  for (int i = 1; i <= count; i++) lua_rawgeti(L, 3, i);
  lua_remove(L, 3);
  what->status = lua_pcall(L, count > 0 ? count : 0, LUA_MULTRET, 1);
  if (what->status == LUA_OK) return 0;
  return 1;
}

int32_t flowlua_call_script(flowlua_state *state, int32_t function) {
  script_call what = {function, LUA_OK};
  int32_t status = flowlua_protect(state, call_script, &what);
  return status != LUA_OK ? status : what.status;
}
