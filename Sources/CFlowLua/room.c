// Room on a stack, and lack of memory as an error.
#include "internal.h"

/// Raises LUA_ERRMEM: first in the allocation, then again after the collection that Lua tries.
/// [-0, +0, m]
void flowlua_raise_memory(lua_State *L) {
  flowlua_state *state = state_of(L);
  be_watchful(state);
  state->silent_failures = 2;
  lua_newuserdatauv(L, 1 << 16, 0);
  // Memory was there all the same (the collector was off): nothing has been raised.
  state->silent_failures = 0;
  lua_settop(L, -2);
  luaL_error(L, "not enough memory");
}

int32_t flowlua_make_room(flowlua_state *state, lua_State *L, int32_t count) {
  state->refused = false;
  if (lua_checkstack(L, count)) return LUA_OK;
  return state->refused ? FLOWLUA_NO_MEMORY : FLOWLUA_NO_ROOM;
}

void flowlua_require_room(lua_State *L, int32_t count, const char *purpose) {
  int32_t room = flowlua_make_room(state_of(L), L, count);
  if (room == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  if (room != LUA_OK) luaL_error(L, "stack overflow (%s)", purpose);
}
