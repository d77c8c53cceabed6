// Code that may raise, under lua_pcall, so that Swift sees a status.
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

int32_t flowlua_protect(flowlua_state *state, int (*body)(lua_State *, void *), void *argument) {
  lua_State *L = state->running;
  protected_call call = {body, argument};
  int32_t room = flowlua_make_room(state, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  lua_pushcfunction(L, flowlua_run_protected);
  lua_pushlightuserdata(L, &call);
  return lua_pcall(L, 1, LUA_MULTRET, 0);
}

void flowlua_discard_error(flowlua_state *state, int32_t status) {
  if (status > LUA_OK) flowlua_pop(state->running, 1);
}

void flowlua_pop(lua_State *L, int32_t n) { lua_settop(L, -n - 1); }
