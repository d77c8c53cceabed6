// The hook of a coroutine, which the stop hook borrows while something is asked for, and gives back.
#include "internal.h"

#if HAS_REST_HOOK
#include <unistd.h>

/// Calls a function at which the thread sanitizer delivers the signals that it holds back: busy Lua code calls none.
static void rest_hook(lua_State *L, lua_Debug *frame) {
  (void)L;
  (void)frame;
  usleep(0);
}

void flowlua_clear_hook(lua_State *L) { lua_sethook(L, rest_hook, LUA_MASKCOUNT, 10000); }

bool flowlua_has_hook(lua_State *L) {
  return lua_gethook(L) != NULL && lua_gethook(L) != rest_hook;
}
#endif

/// Safe in a signal handler.
void flowlua_arm_stop(lua_State *L) {
  lua_Hook present = lua_gethook(L);
  flowlua_state *state = state_of(L);
  if (present == state->stop_hook) return;
  // Where instructions are counted, no coroutine has a hook of a script.
  if (flowlua_has_hook(L) && !state->counts) {
    saved_hook *place = &state->saved_hooks[0];
    for (int i = 0; i < SAVED_HOOKS; i++) {
      saved_hook *saved = &state->saved_hooks[i];
      if (saved->L == NULL || saved->L == L) {
        place = saved;
        break;
      }
    }
    place->function = present;
    place->mask = lua_gethookmask(L);
    place->count = lua_gethookcount(L);
    place->L = L;
  }
  lua_sethook(L, state->stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

void flowlua_forget_hook(flowlua_state *state, lua_State *L) {
  for (int i = 0; i < SAVED_HOOKS; i++) {
    if (state->saved_hooks[i].L == L) state->saved_hooks[i].L = NULL;
  }
}

/// Gives a coroutine the hook that the stop hook has taken the place of.
void flowlua_restore_hook(flowlua_state *state, lua_State *L) {
  if (state->counts) {
    flowlua_grant_instructions(state, L);
    return;
  }
  for (int i = 0; i < SAVED_HOOKS; i++) {
    saved_hook *saved = &state->saved_hooks[i];
    if (saved->L != L) continue;
    lua_sethook(L, saved->function, saved->mask, saved->count);
    saved->L = NULL;
    return;
  }
  flowlua_clear_hook(L);
}
