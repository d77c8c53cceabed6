// What signals and other threads have asked of a state, in bits.
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

bool flowlua_runs_scheduled(const flowlua_state *state) {
  return scheduled_activity(state) != NULL;
}
