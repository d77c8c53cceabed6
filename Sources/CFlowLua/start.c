// Starting functions of scripts as coroutines of the pool: one call from Swift for each.
#include "internal.h"

/// Pushes an argument onto a coroutine that isn't running, which has room. [-0, +(0|1), -]
static int32_t push_argument(flowlua_state *state, lua_State *co, const flowlua_value *value) {
  if (value->kind != FLOWLUA_STRING) {
    flowlua_push_plain(co, state, value);
    return LUA_OK;
  }
  // A string needs memory, so it goes over the running coroutine, protected.
  int32_t status = flowlua_push_protected(state, value);
  if (status == LUA_OK) {
    lua_xmove(state->running, co, 1);
    return LUA_OK;
  }
  flowlua_discard_error(state, status);
  return status == FLOWLUA_NO_ROOM ? FLOWLUA_NO_ROOM : FLOWLUA_NO_MEMORY;
}

/// Pushes the function with its arguments onto an idle coroutine.
static int32_t push_call(
    flowlua_state *state, flowlua_coroutine *coroutine, const flowlua_start *start) {
  lua_State *co = coroutine->L;
  int32_t count = start->bound_count + start->count;
  // An idle coroutine has room for LUA_MINSTACK values.
  int32_t status =
      count + 8 > LUA_MINSTACK ? flowlua_make_room(state, co, count + 8) : (int32_t)LUA_OK;
  if (status != LUA_OK) return status;
  flowlua_coroutine_push_body(coroutine);
  flowlua_push_reference(state, co, start->function);
  if (start->handle == FLOWLUA_HANDLE_FIRST
      && !flowlua_push_handle(state, co, start->slot, start->generation))
    return FLOWLUA_NO_MEMORY;
  if (start->bound_count > 0) {
    flowlua_push_reference(state, co, start->bound);
    int table = lua_gettop(co);
    for (int32_t i = 1; i <= start->bound_count; i++) lua_rawgeti(co, table, i);
    lua_remove(co, table);
  }
  for (int32_t i = 0; i < start->count && status == LUA_OK; i++)
    status = push_argument(state, co, &start->arguments[i]);
  if (status == LUA_OK && start->handle == FLOWLUA_HANDLE_LAST
      && !flowlua_push_handle(state, co, start->slot, start->generation))
    return FLOWLUA_NO_MEMORY;
  return status;
}

/// Reads the first result of a coroutine that has finished; false when only Swift can.
static bool read_result(flowlua_state *state, lua_State *co, flowlua_start *start) {
  int32_t count = start->result_count;
  start->mark = 0;
  start->result.kind = FLOWLUA_NIL;
  if (start->wanted == FLOWLUA_WANTS_ALL) return false;
  if (count == 0) return true;
  if (start->wanted == FLOWLUA_WANTS_USERDATA) {
    int type = lua_type(co, -count);
    if (type == LUA_TUSERDATA) return false;
    if (type != LUA_TNIL) {
      start->result.kind = FLOWLUA_INTEGER;
      start->result.integer = type;
    }
    return true;
  }
  if (flowlua_read_scalar(co, -count, &start->result)) return true;
  lua_settop(co, lua_gettop(co) - count + 1);
  start->result_count = 1;
  if (!lua_checkstack(co, 2)) return false;
  if (start->wanted == FLOWLUA_WANTS_UNMARKED) {
    start->mark = flowlua_unmark(state, co);
    if (flowlua_read_scalar(co, -1, &start->result)) return true;
    // A function often returns what it was given, which Swift has a reference to.
    for (int32_t i = 0; i < start->count; i++) {
      if (start->arguments[i].kind != FLOWLUA_REFERENCE) continue;
      flowlua_push_reference(state, co, start->arguments[i].reference);
      bool is_same = lua_rawequal(co, -1, -2);
      lua_settop(co, -2);
      if (is_same) {
        start->result.kind = FLOWLUA_ARGUMENT;
        start->result.reference = i;
        return true;
      }
    }
  }
  if (lua_type(co, -1) != LUA_TTABLE) return false;
  start->result.kind = FLOWLUA_REFERENCE;
  start->result.reference = flowlua_reference(state, co);
  return true;
}

int32_t flowlua_prepare_function(flowlua_state *state, flowlua_start *start) {
  flowlua_coroutine *coroutine = flowlua_coroutine_take(state);
  int32_t status =
      coroutine != NULL ? push_call(state, coroutine, start) : (int32_t)FLOWLUA_NO_MEMORY;
  if (start->is_used_up) flowlua_unreference(state, start->function);
  // Rather not begun than never stopped.
  if (status == LUA_OK && start->deadline != 0
      && !flowlua_watch(state, coroutine, start->deadline, start->grace))
    status = FLOWLUA_NO_MEMORY;
  if (status == LUA_OK && start->is_call) flowlua_mark_call(state, coroutine);
  if (status != LUA_OK) {
    if (coroutine != NULL) flowlua_coroutine_release(state, coroutine, coroutine->generation, true);
    return status;
  }
  coroutine->handle_slot = start->slot;
  coroutine->handle_generation = start->generation;
  start->coroutine = coroutine;
  bool has_handle = start->handle != FLOWLUA_HANDLE_NONE;
  start->pushed = start->bound_count + start->count + 2 + has_handle;
  return LUA_OK;
}

int32_t flowlua_start_function(flowlua_state *state, flowlua_start *start) {
  int32_t status = flowlua_prepare_function(state, start);
  if (status != LUA_OK) return status;
  flowlua_coroutine *coroutine = start->coroutine;
  status = flowlua_coroutine_run(state, coroutine, start->pushed, &start->result_count);
  if (status == FLOWLUA_FINISHED && read_result(state, coroutine->L, start)) {
    flowlua_recycle(state, coroutine);
    return FLOWLUA_RETURNED;
  }
  return status;
}

bool flowlua_watch_operation(
    flowlua_state *state, uint32_t slot, uint64_t generation, int64_t deadline, int64_t grace) {
  for (coroutine_block *block = state->made; block != NULL; block = block->next) {
    for (uint32_t i = 0; i < block->used; i++) {
      flowlua_coroutine *each = &block->coroutines[i];
      if (each->L != NULL && each->handle_generation == generation && each->handle_slot == slot)
        return flowlua_watch(state, each, deadline, grace);
    }
  }
  return false;
}
