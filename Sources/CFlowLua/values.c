// Values from Swift to Lua and back, errors of Swift, and handles.
#include <stdlib.h>

#include "internal.h"
#include "layout.h"

// MARK: - Swift errors on their way through Lua

/// [-0, +0, m]
void flowlua_make_spare(lua_State *L) {
  flowlua_state *state = state_of(L);
  flowlua_new_block(L, state, 1);
  lua_xmove(L, state->anchor, 1);
  lua_replace(state->anchor, ANCHOR_SPARE);
  state->spare_used = false;
}

static int make_spare(lua_State *L, void *argument) {
  (void)argument;
  flowlua_make_spare(L);
  return 0;
}

bool flowlua_refill_spare(flowlua_state *state) {
  int32_t status = flowlua_protect(state, make_spare, NULL);
  if (status != LUA_OK) {
    flowlua_discard_error(state, status);
    return false;
  }
  return true;
}

/// Pushes a Swift error. It takes the userdata that was made in advance, so it needs no memory.
static void push_failure(lua_State *L, flowlua_state *state, flowlua_value *value) {
  object_block *block = NULL;
  if (!state->spare_used) {
    lua_pushvalue(state->anchor, ANCHOR_SPARE);
    lua_xmove(state->anchor, L, 1);
    block = flowlua_block_at(state, L, -1);
    if (block == NULL) lua_settop(L, -2);
    lua_pushnil(state->anchor);
    lua_replace(state->anchor, ANCHOR_SPARE);
    state->spare_used = true;
  }
  if (block == NULL) block = flowlua_new_block(L, state, 1);
  flowlua_hold_apart(state, block, (void *)value->pointer);
  value->pointer = NULL;
}

// MARK: - Pushing

/// Pushes a value that holds nothing but what Lua copies. The caller has seen to the room.
/// [-0, +1, m for strings, else -]
void flowlua_push_plain(lua_State *L, flowlua_state *state, const flowlua_value *value) {
  switch (value->kind) {
  case FLOWLUA_BOOLEAN: lua_pushboolean(L, value->integer != 0); break;
  case FLOWLUA_INTEGER: lua_pushinteger(L, value->integer); break;
  case FLOWLUA_NUMBER: lua_pushnumber(L, value->number); break;
  case FLOWLUA_STRING: lua_pushlstring(L, value->pointer, (size_t)value->integer); break;
  case FLOWLUA_REFERENCE: flowlua_push_reference(state, L, value->reference); break;
  case FLOWLUA_ARGUMENT: lua_pushvalue(L, value->reference); break;
  default: lua_pushnil(L); break;
  }
}

bool flowlua_push_light(lua_State *L, flowlua_state *state, flowlua_value *value) {
  switch (value->kind) {
  case FLOWLUA_OBJECT: return flowlua_push_object(L, state, value);
  case FLOWLUA_STRING:
  case FLOWLUA_FAILURE: return false;
  default: flowlua_push_plain(L, state, value); return true;
  }
}

/// Pushes any value. It clears in the value what it takes over. [-0, +1, m]
void flowlua_push_any(lua_State *L, flowlua_state *state, flowlua_value *value) {
  switch (value->kind) {
  case FLOWLUA_OBJECT: flowlua_require_object(L, state, value); break;
  case FLOWLUA_FAILURE: push_failure(L, state, value); break;
  default: flowlua_push_plain(L, state, value); break;
  }
}

/// Gives back what a value still holds: `reference` 1 of a string means that malloc made its bytes.
void flowlua_dispose(flowlua_state *state, flowlua_value *value) {
  if (value->pointer == NULL) return;
  if (value->kind == FLOWLUA_STRING && value->reference == 1) {
    free((void *)value->pointer);
  } else if (value->kind == FLOWLUA_OBJECT || value->kind == FLOWLUA_FAILURE) {
    state->callbacks.release((void *)value->pointer);
  } else {
    return;
  }
  value->pointer = NULL;
}

static int push_value(lua_State *L, void *argument) {
  flowlua_push_any(L, state_of(L), argument);
  return 1;
}

int32_t flowlua_push_protected(flowlua_state *state, const flowlua_value *value) {
  flowlua_value taken = *value;
  lua_State *L = state->running;
  int32_t status = flowlua_make_room(state, L, 2);
  if (status == LUA_OK) {
    // A value that needs no memory needs no protection.
    if (!flowlua_push_light(L, state, &taken)) status = flowlua_protect(state, push_value, &taken);
  }
  flowlua_dispose(state, &taken);
  return status;
}

flowlua_value *flowlua_results_of(flowlua_call *call) {
  return call->many_results != NULL ? call->many_results : call->results;
}

int flowlua_push_heavy_body(lua_State *L) {
  flowlua_call *call = lua_touserdata(L, 1);
  flowlua_value *results = flowlua_results_of(call);
  flowlua_require_room(L, call->result_count + 8, "too many results");
  for (int32_t i = 0; i < call->result_count; i++) {
    if (results[i].kind == FLOWLUA_ARGUMENT) lua_pushnil(L);  // of another frame: filled in below
    else flowlua_push_any(L, call->state, &results[i]);
  }
  return call->result_count;
}

// MARK: - Handles

/// Within the anchor's room.
enum { HANDLE_BATCH = 64 };

static int make_handles(lua_State *L, void *argument) {
  flowlua_state *state = argument;
  flowlua_push_reference(state, L, state->types[state->handle_type].metatable);
  while (state->handle_count < HANDLE_BATCH) {
    handle_block *block = lua_newuserdatauv(L, sizeof(handle_block), 0);
    *block = (handle_block){.magic = handle_magic(state, state->handle_type)};
    lua_pushvalue(L, 1);
    lua_setmetatable(L, 2);
    lua_xmove(L, state->anchor, 1);
    state->handle_count += 1;
  }
  // From the second batch on, new ones take the memory of those that are collected meanwhile, which
  // the pool makes cheap.
  if (state->has_made_handles) pool_from_now(state);
  state->has_made_handles = true;
  return 0;
}

void flowlua_set_handle_type(flowlua_state *state, int32_t type) {
  state->handle_type = type;
  // Those of the type before are of no use.
  state->handle_count = 0;
  lua_settop(state->anchor, ANCHOR_HANDLES - 1);
}

bool flowlua_push_handle(flowlua_state *state, lua_State *L, uint32_t slot, uint64_t generation) {
  if (state->handle_count == 0) {
    int32_t status = flowlua_protect(state, make_handles, state);
    if (status != LUA_OK) flowlua_discard_error(state, status);
    if (state->handle_count == 0) return false;
  }
  state->handle_count -= 1;
  lua_xmove(state->anchor, L, 1);
  handle_block *block = lua_touserdata(L, -1);
  block->slot = slot;
  block->generation = generation;
  return true;
}

bool flowlua_handle(
    flowlua_state *state, lua_State *L, int32_t index, int32_t type, uint32_t *slot,
    uint64_t *generation) {
  // Like flowlua_block_at.
  if (lua_rawlen(L, index) != sizeof(handle_block)) return false;
  const handle_block *block = lua_touserdata(L, index);
  if (block == NULL || block->magic != handle_magic(state, type)) return false;
  *slot = block->slot;
  *generation = block->generation;
  return true;
}

// MARK: - Reading

const char *flowlua_bytes(lua_State *L, int32_t index, size_t *count) {
  // lua_tolstring raises only where it converts a number, which this excludes.
  if (lua_type(L, index) != LUA_TSTRING) return NULL;
  return lua_tolstring(L, index, count);
}

bool flowlua_read_scalar(lua_State *L, int index, flowlua_value *value) {
  return flowlua_read_scalar_of(L, index, lua_type(L, index), value);
}

bool flowlua_read_scalar_of(lua_State *L, int index, int type, flowlua_value *value) {
  switch (type) {
  case LUA_TNIL: value->kind = FLOWLUA_NIL; return true;
  case LUA_TBOOLEAN:
    value->kind = FLOWLUA_BOOLEAN;
    value->integer = lua_toboolean(L, index);
    return true;
  case LUA_TNUMBER:
    if (lua_isinteger(L, index)) {
      value->kind = FLOWLUA_INTEGER;
      value->integer = lua_tointegerx(L, index, NULL);
    } else {
      value->kind = FLOWLUA_NUMBER;
      value->number = lua_tonumberx(L, index, NULL);
    }
    return true;
  default: return false;
  }
}

const char *flowlua_type_name(flowlua_state *state, lua_State *L, int32_t index, size_t *count) {
  const char *name = NULL;
  int type = lua_type(L, index);
  if (type == LUA_TTABLE || type == LUA_TUSERDATA) {
    index = lua_absindex(L, index);
    if (lua_checkstack(L, 3) && lua_getmetatable(L, index)) {
      lua_pushvalue(state->anchor, ANCHOR_NAME_KEY);
      lua_xmove(state->anchor, L, 1);
      lua_rawget(L, -2);
      // The metatable keeps the string alive.
      name = flowlua_bytes(L, -1, count);
      lua_settop(L, -3);
    }
  } else if (type == LUA_TLIGHTUSERDATA) {
    name = "light userdata";
    *count = strlen(name);
  }
  if (name == NULL) {
    name = lua_typename(L, type);
    *count = strlen(name);
  }
  return name;
}

/// A walk over an unchanged table raises nothing and allocates nothing. If every key is an integer from 1 to
/// n and there are n of them, the table is the list 1…n.
static int64_t walk_list(lua_State *L, int32_t index, uint32_t *kinds) {
  lua_Integer largest = 0;
  int64_t count = 0;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    *kinds |= lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1) ? FLOWLUA_FLOATS
                                                                      : 1U << lua_type(L, -1);
    lua_settop(L, -2);
    lua_Integer key = lua_isinteger(L, -1) ? lua_tointegerx(L, -1, NULL) : 0;
    if (key < 1) {
      lua_settop(L, -2);
      return -1;
    }
    if (key > largest) largest = key;
    count += 1;
  }
  return largest == count ? count : -1;
}

int64_t flowlua_list_count(flowlua_state *state, lua_State *L, int32_t index, uint32_t *kinds) {
  *kinds = 0;
  if (lua_type(L, index) != LUA_TTABLE || !lua_checkstack(L, 3)) return -1;
  index = lua_absindex(L, index);
  int64_t count;
  return flowlua_look_at_list(state, L, index, &count, kinds) ? count : walk_list(L, index, kinds);
}

bool flowlua_in_finalizer(lua_State *L) {
  // While a finalizer runs, 5.4.4 returns -1 to every question about the collector.
  return lua_gc(L, LUA_GCCOUNT) < 0;
}

// Marked values: what a function of a script returns when it has more to return than a value.

/// The content of a marked value besides the value; recognized by its magic, as all userdata of ours.
typedef struct mark_block {
  uint64_t magic;
  int32_t mark;
} mark_block;

/// No type of objects has this number.
static uint64_t mark_magic(const flowlua_state *state) { return ~state->magic_base; }

/// Upvalues: the mark and the metatable. [-, +1, m]
static int mark_value(lua_State *L) {
  flowlua_state *state = state_of(L);
  lua_settop(L, 1);
  mark_block *block = lua_newuserdatauv(L, sizeof(mark_block), 1);
  block->magic = mark_magic(state);
  block->mark = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  // Only a table counts: debug.setupvalue may have put anything there.
  flowlua_strip_finalizer(L);
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
  flowlua_push_reference(state_of(L), L, what->metatable);
  lua_pushcclosure(L, mark_value, 2);
  return 1;
}

int32_t flowlua_make_marker(flowlua_state *state, int32_t mark, int32_t metatable) {
  mark_argument what = {mark, metatable};
  return flowlua_protect(state, make_marker, &what);
}

int32_t flowlua_mark_at(flowlua_state *state, lua_State *L, int index) {
  if (lua_rawlen(L, index) != sizeof(mark_block)) return 0;
  const mark_block *block = lua_touserdata(L, index);
  return block != NULL && block->magic == mark_magic(state) ? block->mark : 0;
}

int32_t flowlua_unmark(flowlua_state *state, lua_State *L) {
  if (lua_type(L, -1) != LUA_TUSERDATA) return 0;
  int32_t mark = flowlua_mark_at(state, L, -1);
  if (mark != 0) {
    lua_getiuservalue(L, -1, 1);
    lua_rotate(L, -2, 1);
    lua_settop(L, -2);
  }
  return mark;
}

// Integers for strings, which Swift compares instead of bytes.

/// Where a string that is interned is remembered by its address. The table of interned strings keeps
/// it alive, so that no other string can come to have the address.
static interned_string *remembered(flowlua_state *state, const void *string) {
  uintptr_t bits = (uintptr_t)string;
  return &state->interned[(bits >> 4 ^ bits >> 10) % INTERNED_CACHE];
}

int64_t flowlua_interned(flowlua_state *state, lua_State *L, int32_t index) {
  // Of what isn't a string it is NULL, or an address where no string can be.
  const void *string = lua_topointer(L, index);
  interned_string *place = remembered(state, string);
  if (place->string == string && string != NULL) return place->integer;
  size_t length;
  if (flowlua_bytes(L, index, &length) == NULL) return -1;
  if (!lua_checkstack(L, 3)) return -1;
  index = lua_absindex(L, index);
  lua_pushvalue(state->anchor, ANCHOR_INTERNED);
  lua_xmove(state->anchor, L, 1);
  lua_pushvalue(L, index);
  int64_t result = lua_rawget(L, -2) == LUA_TNUMBER ? lua_tointegerx(L, -1, NULL) : -1;
  lua_settop(L, -3);
  // A long string may be another one than the interned one that it equals.
  if (result >= 0 && length <= SHORT_STRING) *place = (interned_string){string, result};
  return result;
}

typedef struct intern_argument {
  const char *bytes;
  size_t count;
  int64_t integer;
} intern_argument;

static int intern(lua_State *L, void *argument) {
  flowlua_state *state = state_of(L);
  const intern_argument *what = argument;
  lua_pushvalue(state->anchor, ANCHOR_INTERNED);
  lua_xmove(state->anchor, L, 1);
  lua_pushlstring(L, what->bytes, what->count);
  lua_pushinteger(L, what->integer);
  lua_rawset(L, -3);
  return 0;
}

int32_t flowlua_intern(flowlua_state *state, lua_State *L, int32_t index, int64_t integer) {
  // Read here: in the protected call the index would mean another frame. The caller's stack keeps
  // the string alive.
  intern_argument what = {NULL, 0, integer};
  what.bytes = flowlua_bytes(L, index, &what.count);
  if (what.bytes == NULL) return LUA_OK;
  return flowlua_protect(state, intern, &what);
}
