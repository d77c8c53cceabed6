// What the functions of scheduled coroutines are called through, and what it notes of their errors.
#include <stdlib.h>

#include "internal.h"

void flowlua_forget_failure(flowlua_coroutine *coroutine) {
  if (coroutine->failure == NULL) return;
  free(coroutine->failure->traceback);
  free(coroutine->failure);
  coroutine->failure = NULL;
}

/// The message handler of scheduled coroutines. It leaves the error as it is.
static int note_failure(lua_State *L) {
  flowlua_state *state = state_of(L);
  flowlua_coroutine *coroutine = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (coroutine == NULL || coroutine->L != L) return 1;
  if (coroutine->failure == NULL) coroutine->failure = flowlua_zeroed_own(sizeof(failure_record));
  // Without memory for them, an error has neither position nor traceback.
  if (coroutine->failure == NULL) return 1;
  flowlua_where(L, 1, coroutine->failure->position, FLOWLUA_POSITION);
  flowlua_push_traceback(L, L, NULL, 1);
  free(coroutine->failure->traceback);
  coroutine->failure->traceback = flowlua_copy_own(lua_tostring(L, -1));
  lua_settop(L, 1);
  return 1;
}

static int finish_body(lua_State *L, int status, lua_KContext context) {
  (void)context;
  if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - 1;
  flowlua_state *state = state_of(L);
  flowlua_coroutine *coroutine = atomic_load_explicit(&state->activity, memory_order_relaxed);
  if (coroutine != NULL && coroutine->L == L) coroutine->error_status = (uint8_t)status;
  return lua_error(L);
}

/// Arguments: the message handler, the function and its own arguments.
int flowlua_run_body(lua_State *L) {
  int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 1, 0, finish_body);
  return finish_body(L, status, 0);
}

void flowlua_coroutine_push_body(flowlua_coroutine *coroutine) {
  lua_pushcfunction(coroutine->L, flowlua_run_body);
  lua_pushcfunction(coroutine->L, note_failure);
}

const char *flowlua_coroutine_traceback(const flowlua_coroutine *coroutine) {
  return coroutine->failure != NULL ? coroutine->failure->traceback : NULL;
}

bool flowlua_coroutine_has_cut_close(const flowlua_coroutine *coroutine) {
  return coroutine->failure != NULL && coroutine->failure->has_cut_close;
}

const char *flowlua_coroutine_position(const flowlua_coroutine *coroutine) {
  return coroutine->failure != NULL ? coroutine->failure->position : "";
}

int32_t flowlua_coroutine_error_status(const flowlua_coroutine *coroutine) {
  return coroutine->error_status;
}
