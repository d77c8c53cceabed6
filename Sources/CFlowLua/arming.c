// The hook of a coroutine, which the stop hook borrows while something is asked for, and gives back.
#include "internal.h"

/// Safe in a signal handler.
void flowlua_arm_stop(lua_State *L) {
  lua_Hook present = lua_gethook(L);
  flowlua_state *state = state_of(L);
  if (present == state->stop_hook) return;
  // Where instructions are counted, no coroutine has a hook of a script.
  if (present != NULL && !state->counts) {
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
  lua_sethook(L, NULL, 0, 0);
}
