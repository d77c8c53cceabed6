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
