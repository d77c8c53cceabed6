// From Lua into Swift: the trampoline. Swift returns a plain struct; what can raise happens here,
// when no Swift frame is left.
#include <stdlib.h>

#include "internal.h"

/// Pushes results that hold memory or Swift references; gives all of it back whatever happens.
static bool push_heavy(flowlua_call *call) {
  lua_State *L = call->L;
  flowlua_value *results = flowlua_results_of(call);
  int32_t count = call->result_count;
  int status = LUA_ERRMEM;
  int32_t room = call->overflow;
  if (room == LUA_OK) room = flowlua_make_room(call->state, L, count + 8);
  if (room == LUA_OK) {
    lua_pushcfunction(L, flowlua_push_heavy_body);
    lua_pushlightuserdata(L, call);
    status = lua_pcall(L, 1, LUA_MULTRET, 0);
  }
  if (status == LUA_OK) {
    int first = lua_gettop(L) - count + 1;
    for (int32_t i = 0; i < count; i++) {
      if (results[i].kind == FLOWLUA_ARGUMENT) {
        lua_pushvalue(L, results[i].reference);
        lua_replace(L, first + i);
      }
    }
  }
  for (int32_t i = 0; i < count; i++) flowlua_dispose(call->state, &results[i]);
  free(call->many_results);
  call->many_results = NULL;
  if (status == LUA_OK) return true;
  if (room == FLOWLUA_NO_ROOM) luaL_error(L, "stack overflow (too many results)");
  if (room == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  return false;
}

/// Pushes a result that is one object without a protected call, where that is possible.
static bool push_single_object(flowlua_call *call) {
  flowlua_value *result = &call->results[0];
  if (call->result_count != 1 || result->kind != FLOWLUA_OBJECT || call->overflow != LUA_OK)
    return false;
  // A C function has room for it, as for results that aren't heavy.
  if (!flowlua_push_object(call->L, call->state, result)) return false;
  flowlua_dispose(call->state, result);
  return true;
}

/// Raises a Swift error in the userdata that was made in advance: no memory is needed. [-0, +0, v]
static int raise_failure(flowlua_call *call) {
  flowlua_push_any(call->L, call->state, &call->results[0]);
  return lua_error(call->L);
}

static int wait_continuation(lua_State *L, int status, lua_KContext wait);

static int finish(flowlua_call *call, int32_t outcome) {
  lua_State *L = call->L;
  if (outcome == FLOWLUA_WAIT)
    return flowlua_begin_wait(L, call->state, call->wait, wait_continuation);
  if (outcome == FLOWLUA_RAISE && call->results[0].kind == FLOWLUA_FAILURE
      && !call->state->spare_used)
    return raise_failure(call);
  if (call->heavy || call->overflow != LUA_OK || call->many_results != NULL) {
    if (!push_single_object(call) && !push_heavy(call)) return lua_error(L);
  } else {
    // A C function has room for 20 values beyond its arguments; of these Swift has used at most one
    // for each of the 6 results.
    for (int32_t i = 0; i < call->result_count; i++)
      flowlua_push_plain(L, call->state, &call->results[i]);
  }
  return outcome == FLOWLUA_RAISE ? lua_error(L) : call->result_count;
}

static void prepare(flowlua_call *call, lua_State *L, flowlua_state *state) {
  call->L = L;
  call->state = state;
  call->context = state->context;
  call->argument_count = lua_gettop(L);
  call->result_count = 0;
  call->heavy = false;
  call->overflow = LUA_OK;
  call->inline_used = 0;
  call->wait = NULL;
  call->many_results = NULL;
}

/// Enters Swift. Its callees find L as the running coroutine, also where a C module has resumed or
/// closed it without this target.
static int32_t enter(flowlua_call *call, int32_t (*callback)(flowlua_call *)) {
  flowlua_state *state = call->state;
  lua_State *previous = state->running;
  state->running = call->L;
  int32_t outcome = callback(call);
  state->running = previous;
  // Swift may have used another state meanwhile.
  flowlua_current = state;
  return outcome;
}

/// The userdata for an error that Swift may throw is there before Swift is called. [-0, +0, m]
static inline void ensure_spare(lua_State *L, flowlua_state *state) {
  if (__builtin_expect(state->spare_used, false)) flowlua_make_spare(L);
}

/// Calls the Swift function whose number is in an upvalue, with the arguments on the stack.
static inline int call_function(lua_State *L, int upvalue) {
  flowlua_state *state = state_of(L);
  flowlua_call call;
  ensure_spare(L, state);
  prepare(&call, L, state);
  call.function = (int32_t)lua_tointegerx(L, upvalue, NULL);
  return finish(&call, enter(&call, state->callbacks.call));
}

static int trampoline(lua_State *L) { return call_function(L, lua_upvalueindex(1)); }

/// Reads what a method is called on; false when it is neither an object nor a handle.
static inline bool read_self(flowlua_state *state, lua_State *L, flowlua_direct_call *call) {
  // Like flowlua_block_at: the length says what is worth a look.
  size_t length = lua_rawlen(L, 1);
  if (length == sizeof(handle_block)) {
    const handle_block *block = lua_touserdata(L, 1);
    if (block == NULL || block->magic != handle_magic(state, state->handle_type)) return false;
    call->type = 0;
    call->slot = block->slot;
    call->generation = block->generation;
    return true;
  }
  if (length != sizeof(object_block)) return false;
  const object_block *block = flowlua_block_at(state, L, 1);
  if (block == NULL || block->pointer == NULL) return false;
  call->type = (int32_t)(block->magic ^ state->magic_base);
  call->object = block->pointer;
  call->generation = 0;
  return true;
}

/// Reads an argument; false when it is neither a scalar nor a string or function.
static inline bool read_value(lua_State *L, int index, flowlua_value *value) {
  size_t length;
  int type = lua_type(L, index);
  switch (type) {
  case LUA_TSTRING:
    value->kind = FLOWLUA_STRING;
    // Raises nothing: it is a string already.
    value->pointer = lua_tolstring(L, index, &length);
    value->integer = (int64_t)length;
    return true;
  case LUA_TFUNCTION:
    value->kind = FLOWLUA_ARGUMENT;
    value->reference = index;
    return true;
  default: return flowlua_read_scalar_of(L, index, type, value);
  }
}

/// Calls Swift with the arguments of a method ready to use, and without the means to raise. Whatever is
/// different goes the way of all calls.
static inline __attribute__((always_inline)) int call_directly(lua_State *L, bool has_key) {
  flowlua_state *state = state_of(L);
  int count = lua_gettop(L);
  int value = has_key ? 3 : 2;
  flowlua_direct_call call;
  if ((count != value && count != value - 1) || !read_self(state, L, &call)) return trampoline(L);
  if (has_key && (call.key = flowlua_interned(state, L, 2)) < 0) return trampoline(L);
  call.has_value = count == value;
  if (call.has_value && !read_value(L, value, &call.value)) return trampoline(L);
  call.L = L;
  call.state = state;
  call.context = state->context;
  call.function = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  // Like `enter`: objects that are released on the way may use this state, or another one.
  lua_State *previous = state->running;
  state->running = L;
  int32_t results = state->callbacks.direct_call(&call);
  flowlua_current = state;
  int32_t status = LUA_OK;
  bool has_text = false;
  // A C function has room for the result. A long string stands on the stack already.
  if (results == 1 && call.value.kind == FLOWLUA_OBJECT) {
    if (!flowlua_push_object(L, state, &call.value))
      status = flowlua_push_protected(state, &call.value);
    else flowlua_dispose(state, &call.value);
  } else if (results == 1 && call.value.kind == FLOWLUA_STRING) {
    has_text = call.value.pointer != NULL;
  } else if (results == 1) {
    flowlua_push_plain(L, state, &call.value);
  }
  state->running = previous;
  if (results < 0) return trampoline(L);
  if (has_text) lua_pushlstring(L, call.text, (size_t)call.value.integer);
  if (status == FLOWLUA_NO_ROOM) return luaL_error(L, "stack overflow");
  if (status == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  return status == LUA_OK ? results : lua_error(L);
}

static int direct_trampoline(lua_State *L) { return call_directly(L, false); }
static int keyed_trampoline(lua_State *L) { return call_directly(L, true); }

static int wait_continuation(lua_State *L, int status, lua_KContext wait) {
  (void)status;
  flowlua_state *state = state_of(L);
  flowlua_call call;
  // Also without it the wait has to end, so a failure is no reason to give up.
  if (state->spare_used) flowlua_refill_spare(state);
  prepare(&call, L, state);
  call.function = -1;
  call.wait = (void *)wait;
  return finish(&call, enter(&call, state->callbacks.resume_wait));
}

/// `__index` of objects: methods first, then the getter. Upvalues: methods, getter's number.
static int index_object(lua_State *L) {
  if (lua_gettop(L) != 2) lua_settop(L, 2);
  lua_pushvalue(L, 2);
  // debug.setupvalue may have put anything there.
  if (lua_type(L, lua_upvalueindex(1)) != LUA_TTABLE)
    luaL_checktype(L, lua_upvalueindex(1), LUA_TTABLE);
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  lua_settop(L, 2);
  return call_function(L, lua_upvalueindex(2));
}

// MARK: - Making functions and metatables

static const lua_CFunction trampolines[] = {
    [FLOWLUA_GENERAL_FUNCTION] = trampoline,
    [FLOWLUA_DIRECT_FUNCTION] = direct_trampoline,
    [FLOWLUA_KEYED_FUNCTION] = keyed_trampoline,
};

static int make_function(lua_State *L, void *argument) {
  lua_pushinteger(L, *(int32_t *)argument);
  lua_pushcclosure(L, trampoline, 1);
  return 1;
}

int32_t flowlua_make_function(flowlua_state *state, int32_t function) {
  return flowlua_protect(state, make_function, &function);
}

typedef struct function_list {
  int32_t table;
  const char *names;
  const flowlua_named_function *functions;
  int32_t count;
} function_list;

static int set_functions(lua_State *L, void *argument) {
  const function_list *list = argument;
  if (list->table == 0) lua_createtable(L, 0, list->count);
  else flowlua_push_reference(state_of(L), L, list->table);
  const char *name = list->names;
  for (int32_t i = 0; i < list->count; i++) {
    const flowlua_named_function *function = &list->functions[i];
    lua_pushlstring(L, name, (size_t)function->name_length);
    name += function->name_length;
    lua_pushinteger(L, function->number);
    lua_pushcclosure(L, trampolines[function->kind], 1);
    lua_rawset(L, -3);
  }
  return list->table == 0 ? 1 : 0;
}

int32_t flowlua_make_functions(
    flowlua_state *state, const char *names, const flowlua_named_function *functions,
    int32_t count) {
  function_list list = {0, names, functions, count};
  return flowlua_protect(state, set_functions, &list);
}

int32_t flowlua_set_functions(
    flowlua_state *state, int32_t table, const char *names, const flowlua_named_function *functions,
    int32_t count) {
  function_list list = {table, names, functions, count};
  return flowlua_protect(state, set_functions, &list);
}

typedef struct metatable_argument {
  const char *name;
  int32_t methods;
  int32_t getter;
} metatable_argument;

static int make_metatable(lua_State *L, void *argument) {
  const metatable_argument *what = argument;
  lua_createtable(L, 0, 8);
  lua_pushstring(L, what->name);
  lua_setfield(L, -2, "__name");
  flowlua_push_reference(state_of(L), L, what->methods);
  if (what->getter >= 0) {
    lua_pushinteger(L, what->getter);
    lua_pushcclosure(L, index_object, 2);
  }
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  if (state_of(L)->object_size == NO_OBJECT_SIZE) {
    lua_pushcfunction(L, flowlua_object_end);
    lua_setfield(L, -2, "__gc");
  }
  return 1;
}

int32_t flowlua_make_metatable(
    flowlua_state *state, const char *name, int32_t methods, int32_t getter) {
  metatable_argument what = {name, methods, getter};
  return flowlua_protect(state, make_metatable, &what);
}
