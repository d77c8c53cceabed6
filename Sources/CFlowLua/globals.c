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
