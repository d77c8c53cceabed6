// Resuming: how a wait travels through a script's own coroutines up to the scheduler.
//
// An await yields nothing and marks its coroutine PARKED. The code that resumed that coroutine sees
// the mark: our own coroutine.resume and coroutine.wrap yield in turn, so the whole chain is parked
// and the scheduler at its end takes the wait; where a resumer can't yield (the main chunk, a C
// function), the loop is pumped in place. A script never sees the yield.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

// MARK: - lua_resume

/// liblua's lua_resume, which the one of this file replaces and calls.
resume_function flowlua_real_resume;

/// The name of liblua's lua_resume in a program that is linked with the library's archive; scripts/lib/liblua.sh
/// gives it that name.
__attribute__((weak)) int flowlua_library_resume(
    lua_State *L, lua_State *from, int count, int *result_count);

__attribute__((constructor)) static void find_real_resume(void) {
  if (flowlua_real_resume != NULL) return;
  flowlua_real_resume = flowlua_library_resume != NULL
      ? flowlua_library_resume
      : (resume_function)dlsym(RTLD_NEXT, "lua_resume");
}

/// Whether both functions are of the same library.
static bool are_together(void *a, void *b) {
  struct dl_find_object of_a, of_b;
  return a != NULL && b != NULL && _dl_find_object(a, &of_a) == 0 && _dl_find_object(b, &of_b) == 0
      && of_a.dlfo_map_start == of_b.dlfo_map_start;
}

/// Returns whether this coroutine is the one that runs, as far as its state knows.
static int is_running(lua_State *L) {
  lua_pushboolean(L, state_of(L)->running == L);
  return 1;
}

/// Whether liblua's own calls of lua_resume come to this file, and those of this file go to that liblua:
/// coroutine.resume of liblua resumes a coroutine that looks whether its state knows of it. [-0, +0, m]
static bool is_interposed(lua_State *L) {
  if (!are_together((void *)flowlua_real_resume, dlsym(RTLD_DEFAULT, "lua_pcallk"))) return false;
  int top = lua_gettop(L);
  lua_pushcfunction(L, luaopen_coroutine);
  lua_call(L, 0, 1);
  lua_getfield(L, -1, "resume");
  lua_pushcfunction(lua_newthread(L), is_running);
  lua_call(L, 1, 2);
  bool result = lua_toboolean(L, -2) && lua_toboolean(L, -1);
  lua_settop(L, top);
  return result;
}

bool flowlua_resume_is_ours(lua_State *L) {
  // The result is equal for all states of the process: only the first one looks.
  enum { UNKNOWN, OURS, FOREIGN };
  static atomic_int known = UNKNOWN;
  if (atomic_load(&known) == UNKNOWN) atomic_store(&known, is_interposed(L) ? OURS : FOREIGN);
  return atomic_load(&known) == OURS;
}

int flowlua_resume_tracked(
    flowlua_state *state, lua_State *co, lua_State *from, int count, int *result_count) {
  lua_State *previous = state->running;
  state->running = co;
  if (state->counts) flowlua_begin_counting(state, co);
  if (is_stopping(state)) flowlua_arm_stop(co);
  int status = flowlua_real_resume(co, from, count, result_count);
  state->running = previous;
  // The limit may have been set meanwhile.
  if (state->counts) flowlua_continue_counting(state, previous);
  if (is_stopping(state)) flowlua_arm_stop(previous);
  return status;
}

// MARK: - Closing

/// How deep coroutines can be in each other: Lua allows 200 levels of C.
enum { MOST_CHAINED = 200 };

/// Pushes a text of the anchor onto a coroutine from outside. [-0, +1, -]
static void push_text(flowlua_state *state, lua_State *co, int text) {
  lua_pushvalue(state->anchor, text);
  lua_xmove(state->anchor, co, 1);
}

bool flowlua_can_close(const flowlua_state *state) { return state->close_depth < MOST_CHAINED; }

/// lua_resetthread, with what its handlers do counted as running in the coroutine. On failure the
/// error is on its stack, else nothing is. [-?, +0|1, -]
int flowlua_close_coroutine(flowlua_state *state, lua_State *co) {
  if (has_flag(co, CUT) && lua_status(co) > LUA_YIELD) {
    // Lua leaves the hooks of a coroutine off in which one has raised an error, so that nothing would stop its
    // `__close`s. With the hook, they would end at their first instruction.
    if (lua_gettop(co) == 0 && lua_checkstack(co, 1)) push_text(state, co, ANCHOR_STOPPED);
    return lua_status(co);
  }
  if (!flowlua_can_close(state) && lua_status(co) > LUA_YIELD) {
    // Lua doesn't count them: the stack of C would overflow.
    if (lua_gettop(co) == 0 && lua_checkstack(co, 1)) push_text(state, co, ANCHOR_STOPPED);
    return lua_status(co);
  }
  lua_State *previous = state->running;
  state->running = co;
  state->close_depth += 1;
  if (state->counts) flowlua_continue_counting(state, co);
  if (is_stopping(state)) flowlua_arm_stop(co);
  int status = lua_resetthread(co);
  state->close_depth -= 1;
  state->running = previous;
  if (state->counts) flowlua_continue_counting(state, previous);
  flowlua_forget_hook(state, co);
  if (is_stopping(state)) flowlua_arm_stop(previous);
  return status;
}

/// Closes a coroutine and, innermost first, those that it is parked for: together they were one
/// stack, whose cleanups all run. Errors of the cleanups are dropped. [-?, +0, -]
void flowlua_close_chain(flowlua_state *state, lua_State *co) {
  lua_State *chain[MOST_CHAINED];
  int count = 0;
  lua_State *each = co;
  while (each != NULL && count < MOST_CHAINED) {
    chain[count++] = each;
    each = has_flag(each, CHAINED) ? lua_tothread(each, -1) : NULL;
  }
  while (count > 0) {
    each = chain[--count];
    clear_flag(each, EXTRA_FLAGS);
    set_flag(each, CLOSING);
    flowlua_close_coroutine(state, each);
    clear_flag(each, CLOSING);
    lua_settop(each, 0);
  }
}

/// Closes a coroutine that the stop hook has made yield. [-?, +0, -]
void flowlua_close_stopped(flowlua_state *state, lua_State *co) {
  flowlua_coroutine *activity = atomic_load(&state->activity);
  bool is_enclosed = (atomic_load(&state->requests) & FLOWLUA_STOP) != 0;
  if (activity != NULL) flowlua_begin_grace(activity);
  if (is_enclosed) flowlua_stop_enclosed(state);
  flowlua_close_chain(state, co);
  if (activity != NULL) flowlua_end_grace(activity);
  if (is_enclosed) atomic_fetch_or(&state->requests, FLOWLUA_STOP);
}

// MARK: - Resumers that know nothing of waits

/// Waits where the running coroutine can't yield.
void flowlua_wait_in_place(flowlua_state *state, void *wait) {
  // Other code that runs meanwhile isn't a part of a text.
  flowlua_coroutine *text = state->own_text;
  bool encloses = text != NULL && flowlua_encloses(text);
  if (encloses) flowlua_end_enclosure_of(state, text);
  state->own_text = NULL;
  state->waits_for_text = text != NULL;
  state->callbacks.pump(state, wait);
  state->waits_for_text = false;
  state->own_text = text;
  if (encloses) flowlua_begin_enclosure_of(state, text);
  // Others may have used another state meanwhile.
  flowlua_current = state;
}

void flowlua_refuse_text_waits(flowlua_state *state, bool refuses) {
  state->refuses_text_waits = refuses;
}

bool flowlua_refuses_text_waits(const flowlua_state *state) { return state->refuses_text_waits; }

bool flowlua_take_text_wait(flowlua_state *state) {
  bool waits = state->waits_for_text;
  state->waits_for_text = false;
  return waits;
}

bool flowlua_take_flag(lua_State *co, uintptr_t flag) {
  bool had = has_flag(co, flag);
  clear_flag(co, flag);
  return had;
}

/// Makes a parked coroutine ready for being resumed. [-(0|1), +0, -]
void flowlua_unpark(lua_State *co) {
  if (flowlua_take_flag(co, CHAINED)) lua_settop(co, -2);
  clear_flag(co, PARKED);
}

/// Exported, so that liblua and C modules call it instead of liblua's. Nobody else calls it. They know
/// nothing of waits and stops, so both end here.
__attribute__((visibility("default"), used)) int lua_resume(
    lua_State *co, lua_State *from, int count, int *result_count) {
  flowlua_state *state = flowlua_current;
  if (flowlua_real_resume == NULL) find_real_resume();
  if (flowlua_real_resume == NULL) {
    // No state of this target exists then, and nobody else could resume the coroutine.
    fputs("flowlua: liblua's lua_resume isn't there\n", stderr);
    abort();
  }
  if (state == NULL || state_of(co) != state)
    return flowlua_real_resume(co, from, count, result_count);
  if (has_flag(co, PARKED)) {
    // As lua_resume does for a running coroutine: a message replaces the arguments.
    lua_settop(co, -count - 1);
    *result_count = 0;
    if (lua_checkstack(co, 1)) {
      push_text(state, co, ANCHOR_NOT_SUSPENDED);
      *result_count = 1;
    }
    return LUA_ERRRUN;
  }
  int status = flowlua_resume_tracked(state, co, from, count, result_count);
  while (status == LUA_YIELD && has_flag(co, PARKED)) {
    flowlua_wait_in_place(state, state->parked_wait);
    flowlua_unpark(co);
    status = flowlua_resume_tracked(state, co, from, 0, result_count);
  }
  if (status == LUA_YIELD && flowlua_take_flag(co, STOPPED)) {
    flowlua_close_stopped(state, co);
    push_text(state, co, ANCHOR_STOPPED);
    *result_count = 1;
    flowlua_arm_stop(state->running);
    return LUA_ERRRUN;
  }
  return status;
}

// MARK: - Waiting

int flowlua_begin_wait(lua_State *L, flowlua_state *state, void *wait, lua_KFunction continuation) {
  if (lua_isyieldable(L)) {
    state->parked_wait = wait;
    set_flag(L, PARKED);
    return lua_yieldk(L, 0, (lua_KContext)wait, continuation);
  }
  flowlua_wait_in_place(state, wait);
  return continuation(L, LUA_OK, (lua_KContext)wait);
}

void *flowlua_parked_wait(flowlua_state *state) { return state->parked_wait; }
