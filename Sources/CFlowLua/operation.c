// Operations and continuations: the hot path, one call from Swift for each.
#include "internal.h"

/// Takes a coroutine, pushes function, handle and arguments, and runs it. NULL when memory ran out.
static flowlua_coroutine *start(
    flowlua_host *host, int32_t function, uint32_t slot, uint64_t generation,
    int32_t arguments, int32_t count, int64_t deadline, int64_t grace, int32_t *status,
    int32_t *result_count) {
  flowlua_coroutine *coroutine = flowlua_coroutine_take(host);
  if (coroutine == NULL) return NULL;
  lua_State *co = coroutine->L;
  // An idle coroutine has room for LUA_MINSTACK values.
  if ((count + 8 > LUA_MINSTACK && !lua_checkstack(co, count + 8))
      || (flowlua_coroutine_push_body(coroutine), flowlua_push_reference(host, co, function),
          !flowlua_push_handle(host, co, slot, generation))) {
    flowlua_coroutine_release(host, coroutine, coroutine->generation, true);
    return NULL;
  }
  if (count > 0) {
    flowlua_push_reference(host, co, arguments);
    int table = lua_gettop(co);
    for (int32_t i = 1; i <= count; i++) lua_rawgeti(co, table, i);
    lua_remove(co, table);
  }
  coroutine->handle_slot = slot;
  coroutine->handle_generation = generation;
  // Rather not begun than never stopped.
  if (deadline != 0 && !flowlua_watch(host, coroutine, deadline, grace)) {
    flowlua_coroutine_release(host, coroutine, coroutine->generation, true);
    return NULL;
  }
  *status = flowlua_coroutine_run(host, coroutine, count + 3, result_count);
  return coroutine;
}

int32_t flowlua_perform(
    flowlua_host *host, int32_t function, uint32_t slot, uint64_t generation,
    int32_t arguments, int32_t count, int64_t deadline, int64_t grace,
    flowlua_coroutine **coroutine, int32_t *result_count) {
  int32_t status = FLOWLUA_NO_ROOM;
  *coroutine = start(
      host, function, slot, generation, arguments, count, deadline, grace, &status,
      result_count);
  if (*coroutine == NULL) return FLOWLUA_NO_ROOM;
  if (status == FLOWLUA_FINISHED) {
    lua_State *L = flowlua_coroutine_state(*coroutine);
    if (*result_count == 0 || lua_type(L, -*result_count) != LUA_TUSERDATA) {
      flowlua_recycle(host, *coroutine);
      *coroutine = NULL;
      return FLOWLUA_DONE;
    }
  }
  return status;
}

int32_t flowlua_run_function(
    flowlua_host *host, int32_t function, flowlua_value *value, int64_t deadline,
    int64_t grace, flowlua_coroutine **coroutine, int32_t *result_count) {
  flowlua_coroutine *taken = flowlua_coroutine_take(host);
  *coroutine = NULL;
  if (taken == NULL) {
    flowlua_unreference(host, function);
    return FLOWLUA_NO_ROOM;
  }
  lua_State *co = taken->L;
  flowlua_coroutine_push_body(taken);
  flowlua_push_reference(host, co, function);
  flowlua_unreference(host, function);
  int32_t status;
  if (value->kind != FLOWLUA_STRING) {
    flowlua_push_plain(co, host, value);
  } else {
    // It needs memory, so it goes over the running coroutine, protected.
    status = flowlua_push_protected(host, value);
    if (status != LUA_OK) {
      flowlua_discard_error(host, status);
      flowlua_coroutine_release(host, taken, taken->generation, true);
      return FLOWLUA_NO_ROOM;
    }
    lua_xmove(host->running, co, 1);
  }
  if (deadline != 0 && !flowlua_watch(host, taken, deadline, grace)) {
    flowlua_coroutine_release(host, taken, taken->generation, true);
    return FLOWLUA_NO_ROOM;
  }
  status = flowlua_coroutine_run(host, taken, 3, result_count);
  if (status == FLOWLUA_FINISHED) {
    value->kind = FLOWLUA_NIL;
    if (*result_count == 0 || flowlua_read_scalar(co, -*result_count, value)) {
      flowlua_recycle(host, taken);
      return FLOWLUA_DONE;
    }
  }
  *coroutine = taken;
  return status;
}

bool flowlua_watch_operation(
    flowlua_host *host, uint32_t slot, uint64_t generation, int64_t deadline, int64_t grace) {
  for (coroutine_block *block = host->made; block != NULL; block = block->next) {
    for (uint32_t i = 0; i < block->used; i++) {
      flowlua_coroutine *each = &block->coroutines[i];
      if (each->L != NULL && each->handle_generation == generation && each->handle_slot == slot)
        return flowlua_watch(host, each, deadline, grace);
    }
  }
  return false;
}
