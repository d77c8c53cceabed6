// The hook of a coroutine has one owner, this file. It lends it to scripts (debug.sethook), takes it
// while something is asked for, and gives it back. A hook that a script sets on the main coroutine, as tools
// for coverage and debugging do, holds for the scheduler's coroutines, too.
#include "internal.h"

// MARK: - The stop hook

static lua_CFunction function_of(lua_State *L, lua_Debug *frame) {
  lua_getinfo(L, "f", frame);
  lua_CFunction function = lua_tocfunction(L, -1);
  lua_settop(L, -2);
  return function;
}

/// Whether a function is one of this target's that scripts don't call: an error in it wouldn't reach them. A function that a protected
/// function calls, such as the maker of a text, is one, too.
static bool is_internal(lua_State *L, lua_Debug *frame) {
  lua_CFunction function = function_of(L, frame);
  if (function == NULL) return false;
  if (function == flowlua_run_protected || function == flowlua_run_call
      || function == flowlua_push_heavy_body || function == flowlua_run_body)
    return true;
  lua_Debug caller;
  return lua_getstack(L, 1, &caller) && function_of(L, &caller) == flowlua_run_protected;
}

/// Argument: where the traceback goes. The function that was stopped is its caller. [-1, +0, m]
static int make_stop_traceback(lua_State *L) {
  char **place = lua_touserdata(L, 1);
  flowlua_push_traceback(L, L, NULL, 1);
  *place = flowlua_copy_own(lua_tostring(L, -1));
  return 0;
}

/// Notes where the coroutine that is to stop is, unless that is known, and whether it is in a `__close`.
/// Called from the hook, as long as its stack stands; without memory for it nothing is noted. [-0, +0, -]
static void note_stop(flowlua_state *state, lua_State *L, bool is_closing) {
  flowlua_coroutine *coroutine = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (coroutine == NULL) return;
  if (coroutine->failure == NULL) coroutine->failure = flowlua_zeroed_own(sizeof(failure_record));
  if (coroutine->failure == NULL) return;
  if (is_closing) coroutine->failure->has_cut_close = true;
  if (coroutine->failure->traceback != NULL) return;
  lua_pushcfunction(L, make_stop_traceback);
  lua_pushlightuserdata(L, &coroutine->failure->traceback);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_settop(L, -2);
}

/// Parks the running coroutine, as a wait does, if that is wanted and possible. [-0, +0, -]
static void let_others_run(lua_State *L, bool is_in_code) {
  flowlua_state *state = state_of(L);
  void *wait = state->pause;
  state->pause = NULL;
  const flowlua_coroutine *activity = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (wait == NULL || !is_in_code || !lua_isyieldable(L) || activity == NULL
      || activity != scheduled_activity(state) || state->enclosure_count != 0
      || flowlua_runs_close(L))
    return;
  state->parked_wait = wait;
  set_flag(L, PARKED);
  lua_yield(L, 0);
}

/// How many nanoseconds a text for the host may take from a request on.
static const int64_t hurried = 100000000;

void flowlua_stop_hook(lua_State *L, lua_Debug *frame) {
  flowlua_state *state = state_of(L);
  // Like the stand-alone interpreter, this interrupts a C function when it returns, or calls
  // another.
  bool is_in_code = frame->event == LUA_HOOKCOUNT || frame->event == LUA_HOOKLINE;
  if (!is_asked_to_stop(state)) {
    // Attention may bring a stop, which ends nothing in a call: the C function that begins could take long.
    if (!is_in_code && (is_internal(L, frame) || flowlua_has_requested(state, FLOWLUA_ATTEND)))
      return;
    // For a signal, or a stale one: what it was meant for is over.
    flowlua_restore_hook(state, L);
    if (state->own_text != NULL && flowlua_has_request(state)) {
      // The host, which needs the text, handles the requests.
      if (flowlua_has_requested(state, FLOWLUA_INTERRUPT | FLOWLUA_TERMINATE))
        flowlua_watch(state, state->own_text, -hurried, 0);
      return;
    }
    // An error that was raised may have left one.
    state->pause = NULL;
    flowlua_answer_requests(L);
    // A stop takes effect here: the next instruction may be a call of a C function.
    if (!is_asked_to_stop(state)) return let_others_run(L, is_in_code);
    state->pause = NULL;
    flowlua_arm_stop(L);
  }
  // Only there it may yield.
  if (!is_in_code) return;
  bool is_closing = flowlua_runs_close(L);
  if (is_closing && flowlua_spares_close(state)) {
    flowlua_restore_hook(state, L);
    flowlua_answer_requests(L);
    state->pause = NULL;
    return;
  }
  flowlua_clear_hook(L);
  note_stop(state, L, is_closing);
  if (lua_isyieldable(L)) {
    set_flag(L, STOPPED);
    lua_yield(L, 0);
    return;
  }
  flowlua_arm_stop(L);
  flowlua_raise_memory(L);
}

// MARK: - The hook of the main coroutine

/// Takes note of what debug.sethook has set on the main coroutine; the function stands at `index`.
static void note_main_hook(lua_State *L, flowlua_state *state, int index) {
  if (state->main_hook != 0) flowlua_unreference(state, state->main_hook);
  state->main_hook = 0;
  state->hook_version = 0;
  if (!flowlua_has_hook(state->main)) return;
  lua_pushvalue(L, index);
  state->main_hook = flowlua_reference(state, L);
  if (state->main_hook == 0) return;
  state->main_hook_mask = lua_gethookmask(state->main);
  state->main_hook_count = lua_gethookcount(state->main);
  state->last_hook_version += 1;
  if (state->last_hook_version == OWN_HOOK || state->last_hook_version == 0)
    state->last_hook_version = 1;
  state->hook_version = state->last_hook_version;
}

/// debug.sethook, which can't take the stop hook away, nor that which counts.
static int debug_sethook(lua_State *L) {
  if (state_of(L)->counts)
    return luaL_error(
        L, "debug.sethook isn't allowed by the host of the script, which limits its instructions");
  lua_State *target = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
  int function = lua_isthread(L, 1) ? 2 : 1;
  // Called as the function itself, so that its messages name this one.
  int results = lua_tocfunction(L, lua_upvalueindex(1))(L);
  flowlua_state *state = state_of(L);
  flowlua_forget_hook(state, target);
  flowlua_coroutine *activity = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (target == state->main) note_main_hook(L, state, function);
  else if (activity != NULL && activity->L == target) activity->hook_version = OWN_HOOK;
  if (is_stopping(state)) flowlua_arm_stop(state->running);
  return results;
}

/// Sets the hook of the main coroutine on another one, by debug.sethook itself, which keeps the function.
static int inherit_hook(lua_State *L, void *argument) {
  const flowlua_state *state = state_of(L);
  lua_State *co = argument;
  if (state->set_hook == NULL || !lua_checkstack(co, 1)) return 0;
  lua_pushcfunction(L, state->set_hook);
  lua_pushthread(co);
  lua_xmove(co, L, 1);
  if (state->main_hook == 0) {
    lua_call(L, 1, 0);
    return 0;
  }
  flowlua_push_reference(state_of(L), L, state->main_hook);
  char mask[4];
  int length = 0;
  if (state->main_hook_mask & LUA_MASKCALL) mask[length++] = 'c';
  if (state->main_hook_mask & LUA_MASKRET) mask[length++] = 'r';
  if (state->main_hook_mask & LUA_MASKLINE) mask[length++] = 'l';
  lua_pushlstring(L, mask, (size_t)length);
  lua_pushinteger(L, state->main_hook_count);
  lua_call(L, 4, 0);
  return 0;
}

void flowlua_inherit_hook(flowlua_state *state, flowlua_coroutine *coroutine) {
  if (state->counts) return;
  // A hook that its own code has set stays until it ends.
  if (coroutine->hook_version == OWN_HOOK && has_flag(coroutine->L, PARKED)) return;
  coroutine->hook_version = state->hook_version;
  if (state->main_hook == 0 && !flowlua_has_hook(coroutine->L)) return;
  flowlua_forget_hook(state, coroutine->L);
  int32_t status = flowlua_protect(state, inherit_hook, coroutine->L);
  // Without memory it runs without.
  if (status != LUA_OK) flowlua_discard_error(state, status);
}

#if HAS_REST_HOOK
/// debug.gethook, which doesn't show the hook for the thread sanitizer.
static int debug_gethook(lua_State *L) {
  if (!flowlua_has_hook(lua_isthread(L, 1) ? lua_tothread(L, 1) : L)) {
    lua_pushnil(L);
    return 1;
  }
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}
#endif

void flowlua_install_debug_library(lua_State *L) {
  lua_getglobal(L, LUA_DBLIBNAME);
  lua_getfield(L, -1, "sethook");
  state_of(L)->set_hook = lua_tocfunction(L, -1);
  lua_pushcclosure(L, debug_sethook, 1);
  lua_setfield(L, -2, "sethook");
#if HAS_REST_HOOK
  lua_getfield(L, -1, "gethook");
  lua_pushcclosure(L, debug_gethook, 1);
  lua_setfield(L, -2, "gethook");
#endif
  lua_settop(L, -2);
}

// Requests by signals such as Ctrl-C to the running code. A handler only sets a bit and arms the hook on
// the running coroutine; the hook or a waiting loop, the one that runs first, takes the request.

/// Safe in a signal handler on the owner thread.
static void request(void *context, uint8_t what) {
  flowlua_state *state = context;
  if (state == NULL || state->closing) return;
  atomic_fetch_or(&state->requests, what);
  lua_State *running = state->running;
  if (running != NULL) flowlua_arm_stop(running);
}

static void interrupt(void *state) { request(state, FLOWLUA_INTERRUPT); }
static void terminate(void *state) { request(state, FLOWLUA_TERMINATE); }

void flowlua_interrupt_with(flowlua_state *state, int32_t value) {
  state->interruption = value;
  interrupt(state);
}

flowlua_request_function flowlua_interrupter(void) { return interrupt; }
flowlua_request_function flowlua_terminator(void) { return terminate; }

static bool is_interrupting(void *context) {
  const flowlua_state *state = context;
  return state != NULL && (atomic_load(&state->requests) & FLOWLUA_INTERRUPT) != 0;
}

flowlua_question_function flowlua_interruption_question(void) { return is_interrupting; }

bool flowlua_call_attention(flowlua_state *state) {
  atomic_fetch_or(&state->requests, FLOWLUA_ATTEND);
  return flowlua_signal_owner(state);
}

/// Calls back with L as the running coroutine. [-0, +0, -]
static void call_back(lua_State *L, void (*callback)(flowlua_state *)) {
  flowlua_state *state = state_of(L);
  lua_State *previous = state->running;
  state->running = L;
  callback(state);
  state->running = previous;
  flowlua_current = state;
}

void flowlua_answer_requests(lua_State *L) {
  flowlua_state *state = state_of(L);
  if (flowlua_take_request(state, FLOWLUA_TERMINATE)) call_back(L, state->callbacks.terminate);
  if (flowlua_take_request(state, FLOWLUA_ATTEND)) call_back(L, state->callbacks.attend);
  if (state->is_beyond) {
    state->is_beyond = false;
    lua_gc(L, LUA_GCCOLLECT);
    if (flowlua_exceeds_memory(state)) flowlua_raise_memory(L);
  }
  // Nothing is raised in cleanups, of which a `__close` is one.
  if (!flowlua_has_request(state) || (flowlua_activity(state) != NULL && flowlua_runs_close(L)))
    return;
  // As the stand-alone interpreter's hook, with the position of what called the interrupted function.
  if (flowlua_take_request(state, FLOWLUA_INTERRUPT)) {
    lua_State *previous = state->running;
    state->running = L;
    bool raises = state->callbacks.interrupt(state);
    state->running = previous;
    flowlua_current = state;
    if (raises) {
      int32_t value = state->interruption;
      state->interruption = 0;
      if (value == 0) luaL_error(L, "interrupted!");
      flowlua_push_reference(state, L, value);
      lua_error(L);
    }
    atomic_fetch_or(&state->requests, FLOWLUA_INTERRUPT);
  }
}
