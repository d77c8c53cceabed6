// The requests of signals and other threads to a state, in bits.
#include "internal.h"

bool flowlua_has_request(const flowlua_state *state) {
  return atomic_load_explicit(&state->requests, memory_order_relaxed) != 0;
}

bool flowlua_has_requested(const flowlua_state *state, uint8_t what) {
  return (atomic_load_explicit(&state->requests, memory_order_relaxed) & what) != 0;
}

bool flowlua_take_request(flowlua_state *state, uint8_t what) {
  return flowlua_has_request(state)
      && (atomic_fetch_and(&state->requests, (uint8_t)~what) & what) != 0;
}

void flowlua_owe_termination(flowlua_state *state) { state->owes_termination = true; }

void flowlua_repay_termination(flowlua_state *state) {
  state->owes_termination = false;
  atomic_fetch_or(&state->requests, FLOWLUA_TERMINATE);
}

void flowlua_pause(flowlua_state *state, void *wait) { state->pause = wait; }

bool flowlua_runs_scheduled(const flowlua_state *state) {
  return scheduled_activity(state) != NULL;
}

// The hook of a coroutine, which the stop hook borrows while something is asked for, and gives back.

#if HAS_REST_HOOK
#include <sys/time.h>

/// Calls a function at which the thread sanitizer delivers signals: busy code calls none. This one costs little.
void flowlua_let_signals_in(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
}

static void rest_hook(lua_State *L, lua_Debug *frame) {
  (void)L;
  (void)frame;
  flowlua_let_signals_in();
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

// The limit of instructions, by a count hook on every coroutine.
//
// A coroutine is granted a few instructions at a time, before it executes them: also one that ends sooner
// uses up what it was granted, so that many short coroutines can't evade the limit. (Lua's own count starts
// again in each.) Without a limit no coroutine has the hook.

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

void flowlua_charge_instructions(flowlua_state *state, int64_t count) {
  if (!state->counts) return;
  state->instructions_left -= count < state->instructions_left ? count : state->instructions_left;
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

int64_t flowlua_instructions_left(const flowlua_state *state) { return state->instructions_left; }

void flowlua_set_instructions_left(flowlua_state *state, int64_t count) {
  state->instructions_left = count;
  if (count > 0) state->has_exceeded_instructions = false;
}
