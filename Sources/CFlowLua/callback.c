// Callbacks with arguments of Swift's and a result that Swift wants: as operations, one call for each.
#include <stdio.h>

#include "internal.h"

// MARK: - Marked values

/// What a marked value holds besides the value; recognized by content, as all userdata of ours.
typedef struct mark_block {
  uint64_t magic;
  int32_t mark;
} mark_block;

/// No type of objects has this number.
static uint64_t mark_magic(const flowlua_host *host) { return ~host->secret; }

/// Upvalues: the mark and the metatable. [-, +1, m]
static int mark_value(lua_State *L) {
  flowlua_host *host = host_of(L);
  lua_settop(L, 1);
  mark_block *block = lua_newuserdatauv(L, sizeof(mark_block), 1);
  block->magic = mark_magic(host);
  block->mark = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  // Only a table counts: debug.setupvalue may have put anything there.
  if (lua_type(L, -1) == LUA_TTABLE) lua_setmetatable(L, -2);
  lua_settop(L, 2);
  return 1;
}

typedef struct mark_argument {
  int32_t mark;
  int32_t metatable;
} mark_argument;

static int make_marker(lua_State *L, void *argument) {
  const mark_argument *what = argument;
  lua_pushinteger(L, what->mark);
  flowlua_push_reference(host_of(L), L, what->metatable);
  lua_pushcclosure(L, mark_value, 2);
  return 1;
}

int32_t flowlua_make_marker(flowlua_host *host, int32_t mark, int32_t metatable) {
  mark_argument what = {mark, metatable};
  return flowlua_protect(host, make_marker, &what);
}

/// The mark of a marked value; 0 for anything else.
static int32_t mark_at(flowlua_host *host, lua_State *L, int index) {
  if (lua_rawlen(L, index) != sizeof(mark_block)) return 0;
  const mark_block *block = lua_touserdata(L, index);
  return block != NULL && block->magic == mark_magic(host) ? block->mark : 0;
}

int32_t flowlua_unmark(flowlua_host *host, lua_State *L) {
  if (lua_type(L, -1) != LUA_TUSERDATA) return 0;
  int32_t mark = mark_at(host, L, -1);
  if (mark != 0) {
    lua_getiuservalue(L, -1, 1);
    lua_rotate(L, -2, 1);
    lua_settop(L, -2);
  }
  return mark;
}

// MARK: - Calls

/// Pushes an argument on the stack of a coroutine that isn't running; an error status when there is no
/// memory for it.
static int32_t push_argument(flowlua_host *host, lua_State *co, flowlua_value *value) {
  switch (value->kind) {
    case FLOWLUA_NIL: lua_pushnil(co); return LUA_OK;
    case FLOWLUA_BOOLEAN: lua_pushboolean(co, value->integer != 0); return LUA_OK;
    case FLOWLUA_INTEGER: lua_pushinteger(co, value->integer); return LUA_OK;
    case FLOWLUA_NUMBER: lua_pushnumber(co, value->number); return LUA_OK;
    case FLOWLUA_REFERENCE: flowlua_push_reference(host, co, value->reference); return LUA_OK;
    default: break;
  }
  // What needs memory goes over the running coroutine, protected.
  int32_t status = flowlua_push_protected(host, value);
  if (status != LUA_OK) {
    flowlua_discard_error(host, status);
    return status;
  }
  lua_xmove(host->running, co, 1);
  return LUA_OK;
}

/// Takes the first result of a coroutine that has finished, out of its mark if it is marked: false
/// when only Swift can.
static bool take_result(
    flowlua_host *host, lua_State *co, const flowlua_value *arguments, int32_t count,
    int32_t *result_count, int32_t *mark, flowlua_value *result) {
  result->kind = FLOWLUA_NIL;
  *mark = 0;
  if (*result_count == 0) return true;
  lua_settop(co, lua_gettop(co) - *result_count + 1);
  *result_count = 1;
  if (lua_checkstack(co, 2)) *mark = flowlua_unmark(host, co);
  switch (lua_type(co, -1)) {
    case LUA_TNIL: return true;
    case LUA_TBOOLEAN:
      result->kind = FLOWLUA_BOOLEAN;
      result->integer = lua_toboolean(co, -1);
      return true;
    case LUA_TNUMBER:
      if (lua_isinteger(co, -1)) {
        result->kind = FLOWLUA_INTEGER;
        result->integer = lua_tointegerx(co, -1, NULL);
      } else {
        result->kind = FLOWLUA_NUMBER;
        result->number = lua_tonumberx(co, -1, NULL);
      }
      return true;
    case LUA_TTABLE: break;
    default: return false;
  }
  // A function often returns what it was given, which Swift has a reference to.
  for (int32_t i = 0; i < count; i++) {
    if (arguments[i].kind != FLOWLUA_REFERENCE || !lua_checkstack(co, 1)) continue;
    flowlua_push_reference(host, co, arguments[i].reference);
    bool is_same = lua_rawequal(co, -1, -2);
    lua_settop(co, -2);
    if (is_same) {
      result->kind = FLOWLUA_ARGUMENT;
      result->reference = i;
      return true;
    }
  }
  result->kind = FLOWLUA_REFERENCE;
  result->reference = flowlua_reference(host, co);
  return true;
}

int32_t flowlua_call_back(
    flowlua_host *host, int32_t function, flowlua_value *arguments, int32_t count,
    bool has_handle, uint32_t slot, uint64_t generation, int64_t deadline, int64_t grace,
    flowlua_coroutine **coroutine, int32_t *result_count, int32_t *mark,
    flowlua_value *result) {
  *coroutine = NULL;
  flowlua_coroutine *taken = flowlua_coroutine_take(host);
  if (taken == NULL) return FLOWLUA_NO_ROOM;
  lua_State *co = taken->L;
  int32_t status = lua_checkstack(co, count + 8) ? LUA_OK : LUA_ERRMEM;
  if (status == LUA_OK) {
    flowlua_coroutine_push_body(taken);
    flowlua_push_reference(host, co, function);
    for (int32_t i = 0; i < count && status == LUA_OK; i++)
      status = push_argument(host, co, &arguments[i]);
  }
  if (status == LUA_OK && has_handle && !flowlua_push_handle(host, co, slot, generation))
    status = LUA_ERRMEM;
  if (status == LUA_OK && deadline != 0 && !flowlua_watch(host, taken, deadline, grace))
    status = LUA_ERRMEM;
  if (status != LUA_OK) {
    flowlua_coroutine_release(host, taken, taken->generation, true);
    return FLOWLUA_NO_ROOM;
  }
  taken->handle_slot = slot;
  taken->handle_generation = generation;
  status = flowlua_coroutine_run(host, taken, count + 2 + has_handle, result_count);
  if (status == FLOWLUA_FINISHED
      && take_result(host, co, arguments, count, result_count, mark, result)) {
    flowlua_recycle(host, taken);
    return FLOWLUA_DONE;
  }
  *coroutine = taken;
  return status;
}

typedef struct function_place {
  int32_t function;
  char *buffer;
  int32_t capacity;
  int32_t length;
} function_place;

static int find_function(lua_State *L, void *argument) {
  function_place *place = argument;
  lua_Debug info;
  flowlua_push_reference(host_of(L), L, place->function);
  lua_getinfo(L, ">S", &info);
  int length = info.linedefined > 0
      ? snprintf(
          place->buffer, (size_t)place->capacity, "%s:%d: ", info.short_src, info.linedefined)
      : 0;
  place->length = length < place->capacity ? length : place->capacity - 1;
  return 0;
}

int32_t flowlua_where_defined(
    flowlua_host *host, int32_t function, char *buffer, int32_t capacity) {
  if (capacity < 1) return 0;
  buffer[0] = '\0';
  function_place place = {function, buffer, capacity, 0};
  int32_t status = flowlua_protect(host, find_function, &place);
  if (status == LUA_OK) return place.length;
  flowlua_discard_error(host, status);
  return 0;
}
