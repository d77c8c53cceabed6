// The limit of instructions, by a count hook on every coroutine.
//
// A coroutine is granted a few instructions at a time, before it executes them: also one that ends sooner
// uses up what it was granted, so that many short coroutines can't evade the limit. (Lua's own count starts
// again in each.) Without a limit no coroutine has the hook.
#include "internal.h"

/// How many instructions a coroutine is granted at a time: few, as a short coroutine uses up all of them.
enum { QUANTUM = 128 };

/// How many instructions are granted next.
static int next_grant(const flowlua_state *state) {
  return state->instructions_left < QUANTUM ? (int)state->instructions_left : QUANTUM;
}

/// Lua's message for lack of memory, which lua_error raises as that error. [-, +1, v]
static int raise_memory_message(lua_State *L) {
  lua_pushliteral(L, "not enough memory");
  return lua_error(L);
}

/// Whether lua_error raises LUA_ERRMEM for that message, for which no message handler is called. The manual
/// doesn't say so. [-0, +0, -]
static bool raises_by_message(lua_State *L) {
  enum { UNKNOWN, BY_MESSAGE, BY_ALLOCATION };
  static atomic_int known = UNKNOWN;
  if (atomic_load(&known) == UNKNOWN && lua_checkstack(L, 2)) {
    lua_pushcfunction(L, raise_memory_message);
    bool is_so = lua_pcall(L, 0, 0, 0) == LUA_ERRMEM;
    lua_settop(L, -2);
    atomic_store(&known, is_so ? BY_MESSAGE : BY_ALLOCATION);
  }
  return atomic_load(&known) == BY_MESSAGE;
}

/// As for lack of memory, no message handler is called: it would run without the hook. Raised again at the
/// next instruction, as a `pcall` may have caught it.
static void count_hook(lua_State *L, lua_Debug *frame) {
  (void)frame;
  flowlua_state *state = state_of(L);
  if (!state->counts) {
    // The limit was removed.
    flowlua_clear_hook(L);
    return;
  }
  int granted = next_grant(state);
  if (granted > 0) {
    clear_flag(L, CUT);
    if (lua_gethookcount(L) == granted) state->instructions_left -= granted;
    else flowlua_grant_instructions(state, L);
    return;
  }
  state->has_exceeded_instructions = true;
  // New coroutines take over the flags of the main one, which is never closed like them.
  if (L != state->main) set_flag(L, CUT);
  if (lua_gethookcount(L) != 1) flowlua_grant_instructions(state, L);
  // The other way collects first, and with many nested `pcall`s each of them would.
  if (state->raises_by_message) raise_memory_message(L);
  flowlua_raise_memory(L);
}

void flowlua_grant_instructions(flowlua_state *state, lua_State *L) {
  int granted = next_grant(state);
  state->instructions_left -= granted;
  lua_sethook(L, count_hook, LUA_MASKCOUNT, granted > 0 ? granted : 1);
}

void flowlua_begin_counting(flowlua_state *state, lua_State *co) {
  lua_Hook hook = lua_gethook(co);
  // It grants when it gives the coroutine its hook back.
  if (hook == state->stop_hook) return;
  // A new coroutine has the hook of the one that made it, with a count of its own.
  if (hook != count_hook || lua_status(co) == LUA_OK) flowlua_grant_instructions(state, co);
}

void flowlua_continue_counting(flowlua_state *state, lua_State *L) {
  lua_Hook hook = lua_gethook(L);
  if (hook != count_hook && hook != state->stop_hook) flowlua_grant_instructions(state, L);
}

void flowlua_set_instruction_limit(flowlua_state *state, int64_t limit) {
  state->counts = limit >= 0;
  state->instructions_left = limit;
  state->has_exceeded_instructions = false;
  if (!state->counts) return;
  state->raises_by_message = raises_by_message(state->running);
  flowlua_continue_counting(state, state->main);
  flowlua_continue_counting(state, state->running);
}

bool flowlua_has_exceeded_instructions(const flowlua_state *state) {
  return state->has_exceeded_instructions;
}
