// From Lua into Swift: the trampoline. Swift answers in a plain struct; what can raise happens here,
// when no Swift frame is left.
#include <stdlib.h>

#include "internal.h"

static flowlua_value *results_of(flowlua_call *call) {
  return call->many_results != NULL ? call->many_results : call->results;
}

int flowlua_push_heavy_body(lua_State *L) {
  flowlua_call *call = lua_touserdata(L, 1);
  flowlua_value *results = results_of(call);
  flowlua_require_room(L, call->result_count + 8, "too many results");
  for (int32_t i = 0; i < call->result_count; i++) {
    if (results[i].kind == FLOWLUA_ARGUMENT)
      lua_pushnil(L);  // of another frame: filled in below
    else
      flowlua_push_any(L, call->host, &results[i]);
  }
  return call->result_count;
}

/// Pushes results that hold memory or Swift references; gives all of it back whatever happens.
static bool push_heavy(flowlua_call *call) {
  lua_State *L = call->L;
  flowlua_value *results = results_of(call);
  int32_t count = call->result_count;
  int status = LUA_ERRMEM;
  int32_t room = call->overflow;
  if (room == LUA_OK) room = flowlua_make_room(call->host, L, count + 8);
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
  for (int32_t i = 0; i < count; i++) flowlua_dispose(call->host, &results[i]);
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
  if (!flowlua_push_object(call->L, call->host, result)) return false;
  flowlua_dispose(call->host, result);
  return true;
}

/// Raises a Swift error in the userdata that was made in advance: no memory is needed. [-0, +0, v]
static int raise_failure(flowlua_call *call) {
  flowlua_push_any(call->L, call->host, &call->results[0]);
  return lua_error(call->L);
}

static int finish(flowlua_call *call, int32_t outcome) {
  lua_State *L = call->L;
  if (outcome == FLOWLUA_WAIT) return flowlua_begin_wait(L, call->host, call->wait);
  if (outcome == FLOWLUA_RAISE && call->results[0].kind == FLOWLUA_FAILURE
      && !call->host->spare_used)
    return raise_failure(call);
  if (call->heavy || call->overflow != LUA_OK || call->many_results != NULL) {
    if (!push_single_object(call) && !push_heavy(call)) return lua_error(L);
  } else {
    // A C function has room for 20 values beyond its arguments; of these Swift has used at most one
    // for each of the 6 results.
    for (int32_t i = 0; i < call->result_count; i++)
      flowlua_push_plain(L, call->host, &call->results[i]);
  }
  return outcome == FLOWLUA_RAISE ? lua_error(L) : call->result_count;
}

static void prepare(flowlua_call *call, lua_State *L, flowlua_host *host) {
  call->L = L;
  call->host = host;
  call->context = host->context;
  call->argument_count = lua_gettop(L);
  call->result_count = 0;
  call->heavy = false;
  call->overflow = LUA_OK;
  call->inline_used = 0;
  call->wait = NULL;
  call->many_results = NULL;
}

/// Enters Swift. What it calls finds L as the running coroutine, also where a C module has resumed
/// or closed it behind the host's back.
static int32_t enter(flowlua_call *call, int32_t (*callback)(flowlua_call *)) {
  flowlua_host *host = call->host;
  lua_State *previous = host->running;
  host->running = call->L;
  int32_t outcome = callback(call);
  host->running = previous;
  // Swift may have used another state meanwhile.
  flowlua_current = host;
  return outcome;
}

/// The userdata for an error that Swift may throw is there before Swift is called. [-0, +0, m]
static inline void ensure_spare(lua_State *L, flowlua_host *host) {
  if (__builtin_expect(host->spare_used, false)) flowlua_make_spare(L);
}

static int trampoline(lua_State *L) {
  flowlua_host *host = host_of(L);
  flowlua_call call;
  ensure_spare(L, host);
  prepare(&call, L, host);
  call.function = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  return finish(&call, enter(&call, host->callbacks.call));
}

/// Reads an argument that is a string; its bytes are lent as long as it stands there.
static bool read_string(lua_State *L, int index, flowlua_value *value) {
  size_t length;
  value->pointer = flowlua_bytes(L, index, &length);
  value->kind = FLOWLUA_STRING;
  value->reference = 0;
  value->integer = (int64_t)length;
  return value->pointer != NULL;
}

/// A method that is mostly called with a handle, an interned string and at most one scalar or string:
/// Swift gets these ready to use. Whatever is different goes the way of all calls.
static int keyed_trampoline(lua_State *L) {
  flowlua_host *host = host_of(L);
  int count = lua_gettop(L);
  flowlua_keyed_call call;
  const handle_block *block;
  if ((count != 2 && count != 3) || (block = flowlua_handle_block(host, L, 1)) == NULL)
    return trampoline(L);
  call.key = flowlua_interned(host, L, 2);
  if (call.key < 0
      || (count == 3 && !flowlua_read_scalar(L, 3, &call.value)
          && !read_string(L, 3, &call.value)))
    return trampoline(L);
  call.context = host->context;
  call.function = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  call.argument_count = count;
  call.slot = block->slot;
  call.generation = block->generation;
  // As in `enter`: what is released on the way may use this state, or another one.
  lua_State *previous = host->running;
  host->running = L;
  int32_t results = host->callbacks.keyed_call(&call);
  host->running = previous;
  flowlua_current = host;
  if (results < 0) return trampoline(L);
  // A string stands on the stack already.
  if (results == 1 && call.value.kind != FLOWLUA_STRING) flowlua_push_plain(L, host, &call.value);
  return results;
}

/// A method that is mostly called with its object and at most one argument, a scalar or a function, and
/// that answers a scalar or an object: Swift gets these ready to use, without the means to raise.
/// Whatever is different goes the way of all calls.
static int object_trampoline(lua_State *L) {
  flowlua_host *host = host_of(L);
  int count = lua_gettop(L);
  flowlua_object_call call;
  const object_block *block;
  if (count < 1 || count > 2 || (block = flowlua_block_at(host, L, 1)) == NULL
      || block->pointer == NULL)
    return trampoline(L);
  if (count == 2) {
    if (lua_type(L, 2) == LUA_TFUNCTION) {
      call.value.kind = FLOWLUA_ARGUMENT;
      call.value.reference = 2;
    } else if (!flowlua_read_scalar(L, 2, &call.value)) {
      return trampoline(L);
    }
  }
  call.L = L;
  call.host = host;
  call.context = host->context;
  call.function = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  call.argument_count = count;
  call.type = (int32_t)(block->magic ^ host->secret);
  call.object = block->pointer;
  lua_State *previous = host->running;
  host->running = L;
  int32_t results = host->callbacks.object_call(&call);
  flowlua_current = host;
  int32_t status = LUA_OK;
  if (results == 1) {
    // A C function has room for it.
    if (!flowlua_push_light(L, host, &call.value))
      status = flowlua_push_protected(host, &call.value);
    else
      flowlua_dispose(host, &call.value);
  }
  host->running = previous;
  if (results < 0) return trampoline(L);
  if (status == FLOWLUA_NO_ROOM) return luaL_error(L, "stack overflow");
  if (status == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  return status == LUA_OK ? results : lua_error(L);
}

int flowlua_wait_continuation(lua_State *L, int status, lua_KContext wait) {
  (void)status;
  flowlua_host *host = host_of(L);
  flowlua_call call;
  // Also without it the wait has to end, so a failure is no reason to give up.
  if (host->spare_used) flowlua_refill_spare(host);
  prepare(&call, L, host);
  call.function = -1;
  call.wait = (void *)wait;
  return finish(&call, enter(&call, host->callbacks.resume_wait));
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
  flowlua_host *host = host_of(L);
  flowlua_call call;
  ensure_spare(L, host);
  prepare(&call, L, host);
  call.function = (int32_t)lua_tointegerx(L, lua_upvalueindex(2), NULL);
  return finish(&call, enter(&call, host->callbacks.call));
}

// MARK: - Making functions and metatables

static const lua_CFunction trampolines[] = {
    [FLOWLUA_PLAIN_FUNCTION] = trampoline,
    [FLOWLUA_KEYED_FUNCTION] = keyed_trampoline,
    [FLOWLUA_OBJECT_FUNCTION] = object_trampoline,
};

static int make_function(lua_State *L, void *argument) {
  lua_pushinteger(L, *(int32_t *)argument);
  lua_pushcclosure(L, trampoline, 1);
  return 1;
}

int32_t flowlua_make_function(flowlua_host *host, int32_t function) {
  return flowlua_protect(host, make_function, &function);
}

typedef struct function_list {
  int32_t table;
  const char *names;
  const flowlua_named_function *functions;
  int32_t count;
} function_list;

static int set_functions(lua_State *L, void *argument) {
  const function_list *list = argument;
  if (list->table == 0)
    lua_createtable(L, 0, list->count);
  else
    flowlua_push_reference(host_of(L), L, list->table);
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
    flowlua_host *host, const char *names, const flowlua_named_function *functions,
    int32_t count) {
  function_list list = {0, names, functions, count};
  return flowlua_protect(host, set_functions, &list);
}

int32_t flowlua_set_functions(
    flowlua_host *host, int32_t table, const char *names,
    const flowlua_named_function *functions, int32_t count) {
  function_list list = {table, names, functions, count};
  return flowlua_protect(host, set_functions, &list);
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
  flowlua_push_reference(host_of(L), L, what->methods);
  if (what->getter >= 0) {
    lua_pushinteger(L, what->getter);
    lua_pushcclosure(L, index_object, 2);
  }
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  return 1;
}

int32_t flowlua_make_metatable(
    flowlua_host *host, const char *name, int32_t methods, int32_t getter) {
  metatable_argument what = {name, methods, getter};
  return flowlua_protect(host, make_metatable, &what);
}
