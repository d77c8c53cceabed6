// Requests by signals such as Ctrl-C to the running code. A handler only sets a bit and arms the hook on
// the running coroutine; the hook or a waiting loop, the one that runs first, takes the request.
#include "internal.h"

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
