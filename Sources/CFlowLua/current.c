// The state whose code runs on a thread, and what can be asked of any state.
#include "internal.h"

_Thread_local flowlua_state *flowlua_current;

flowlua_state *flowlua_make_current(flowlua_state *state) {
  flowlua_state *previous = flowlua_current;
  flowlua_current = state;
  return previous;
}

int32_t flowlua_enter(flowlua_state *state) {
  // Only the owner thread ever has the state as its current one.
  if (flowlua_current == state) return FLOWLUA_ENTERED;
  if (!flowlua_is_owner(state)) return FLOWLUA_FOREIGN_THREAD;
  if (state->main == NULL) return FLOWLUA_CLOSED;
  flowlua_current = state;
  return FLOWLUA_ENTERED;
}

bool flowlua_is_busy(const flowlua_state *state) {
  lua_Debug frame;
  return state->running != state->main || lua_getstack(state->main, 0, &frame) != 0;
}

void flowlua_set_context(flowlua_state *state, void *context) { state->context = context; }
void *flowlua_context(const flowlua_state *state) { return state->context; }
lua_State *flowlua_main(const flowlua_state *state) { return state->main; }
lua_State *flowlua_running(const flowlua_state *state) { return state->running; }
bool flowlua_is_owner(const flowlua_state *state) {
  return pthread_equal(state->owner, pthread_self()) != 0;
}
bool flowlua_is_closing(const flowlua_state *state) { return state->closing; }
size_t flowlua_memory_used(const flowlua_state *state) { return state->memory_used; }

// Finalizers that the host doesn't allow. No hook runs in a finalizer, so that nothing stops one or counts
// what it does. Lua looks for `__gc` when a metatable is set: it is refused in those of scripts, and taken
// out of those that the host sets and scripts can reach.

/// Raises an error if the value at an index is a metatable with a finalizer. [-0, +0, v]
static void check_metatable(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TTABLE) return;
  lua_pushvalue(L, index);
  lua_pushliteral(L, "__gc");
  if (lua_rawget(L, -2) != LUA_TNIL)
    luaL_error(L, "finalizers (__gc) aren't allowed by the host of the script");
  lua_settop(L, -3);
}

/// setmetatable, or debug.setmetatable: called as the function itself, so that its messages name this one.
static int set_metatable(lua_State *L) {
  check_metatable(L, 2);
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/// Replaces a function of a library, if there is that library. [-0, +0, m]
static void replace(lua_State *L, const char *library) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, library) == LUA_TTABLE) {
    lua_getfield(L, -1, "setmetatable");
    lua_pushcclosure(L, set_metatable, 1);
    lua_setfield(L, -2, "setmetatable");
  }
  lua_settop(L, -3);
}

void flowlua_refuse_finalizers(lua_State *L) {
  state_of(L)->refuses_finalizers = true;
  replace(L, LUA_GNAME);
  replace(L, LUA_DBLIBNAME);
  // Otherwise scripts could replace the one that closes files.
  if (luaL_getmetatable(L, LUA_FILEHANDLE) == LUA_TTABLE) {
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
  }
  lua_settop(L, -2);
}

void flowlua_strip_finalizer(lua_State *L) {
  if (!state_of(L)->refuses_finalizers || lua_type(L, -1) != LUA_TTABLE) return;
  flowlua_require_room(L, 2, "a metatable");
  lua_pushliteral(L, "__gc");
  lua_pushnil(L);
  lua_rawset(L, -3);
}
