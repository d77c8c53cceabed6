// Values from Swift to Lua, references, and handles.
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

// MARK: - References

/// Doubles the array part of the table: all of it is in use, so that one value more makes Lua do so.
static int grow_references(lua_State *L, void *argument) {
  flowlua_host *host = argument;
  lua_pushvalue(host->anchor, ANCHOR_REFERENCES);
  lua_xmove(host->anchor, L, 1);
  lua_pushboolean(L, 1);
  lua_rawseti(L, -2, host->reference_capacity + 1);
  lua_pushnil(L);
  lua_rawseti(L, -2, host->reference_capacity + 1);
  return 0;
}

static bool make_room_for_references(flowlua_host *host) {
  int32_t old = host->reference_capacity;
  if (old > INT32_MAX / 4) return false;
  // The list is larger first: should the table fail to grow, nothing is lost.
  int32_t *grown = realloc(host->free_references, sizeof(int32_t) * (size_t)old * 2);
  if (grown == NULL) return false;
  host->free_references = grown;
  if (host->shares != NULL) {
    uint32_t *shares = realloc(host->shares, sizeof(uint32_t) * ((size_t)old * 2 + 1));
    if (shares == NULL) return false;
    memset(shares + old + 1, 0, sizeof(uint32_t) * (size_t)old);
    host->shares = shares;
  }
  int32_t status = flowlua_protect(host, grow_references, host);
  if (status != LUA_OK) {
    flowlua_discard_error(host, status);
    return false;
  }
  for (int32_t i = 0; i < old; i++) grown[i] = old * 2 - i;
  host->free_count = old;
  host->reference_capacity = old * 2;
  return true;
}

int32_t flowlua_reference(flowlua_host *host, lua_State *L) {
  if (host->free_count == 0) {
    // The value stays on L while the table grows. `L` may be the running coroutine, whose
    // stack the growing uses above it.
    if (!make_room_for_references(host)) {
      lua_settop(L, -2);
      return 0;
    }
  }
  int32_t reference = host->free_references[--host->free_count];
  lua_xmove(L, host->anchor, 1);
  lua_rawseti(host->anchor, ANCHOR_REFERENCES, reference);
  return reference;
}

/// Whether there is room to count owners.
static bool can_share(flowlua_host *host) {
  if (host->shares == NULL)
    host->shares = calloc((size_t)host->reference_capacity + 1, sizeof(uint32_t));
  return host->shares != NULL;
}

int32_t flowlua_share(flowlua_host *host, lua_State *L, int32_t index) {
  const void *function = lua_topointer(L, index);
  int32_t reference = host->shared_reference;
  // As long as there is the reference, no other function can have the address.
  if (reference != 0 && host->shared_function == function && can_share(host)) {
    host->shares[reference] += 1;
    return reference;
  }
  lua_pushvalue(L, index);
  reference = flowlua_reference(host, L);
  host->shared_reference = reference;
  host->shared_function = function;
  return reference;
}

void flowlua_unreference(flowlua_host *host, int32_t reference) {
  if (reference <= 0 || reference > host->reference_capacity) return;
  if (host->shares != NULL && host->shares[reference] > 0) {
    host->shares[reference] -= 1;
    return;
  }
  if (reference == host->shared_reference) host->shared_reference = 0;
  lua_pushnil(host->anchor);
  lua_rawseti(host->anchor, ANCHOR_REFERENCES, reference);
  host->free_references[host->free_count++] = reference;
}

void flowlua_push_reference(flowlua_host *host, lua_State *L, int32_t reference) {
  lua_rawgeti(host->anchor, ANCHOR_REFERENCES, reference);
  lua_xmove(host->anchor, L, 1);
}

int32_t flowlua_reference_count(const flowlua_host *host) {
  return host->reference_capacity - host->free_count;
}

// MARK: - Swift errors on their way through Lua

/// [-0, +0, m]
void flowlua_make_spare(lua_State *L) {
  flowlua_host *host = host_of(L);
  flowlua_new_block(L, host, 1);
  lua_xmove(L, host->anchor, 1);
  lua_replace(host->anchor, ANCHOR_SPARE);
  host->spare_used = false;
}

static int make_spare(lua_State *L, void *argument) {
  (void)argument;
  flowlua_make_spare(L);
  return 0;
}

bool flowlua_refill_spare(flowlua_host *host) {
  int32_t status = flowlua_protect(host, make_spare, NULL);
  if (status != LUA_OK) {
    flowlua_discard_error(host, status);
    return false;
  }
  return true;
}

/// Pushes a Swift error. It takes the userdata that was made in advance, so it needs no memory.
static void push_failure(lua_State *L, flowlua_host *host, flowlua_value *value) {
  object_block *block = NULL;
  if (!host->spare_used) {
    lua_pushvalue(host->anchor, ANCHOR_SPARE);
    lua_xmove(host->anchor, L, 1);
    block = flowlua_block_at(host, L, -1);
    if (block == NULL) lua_settop(L, -2);
    lua_pushnil(host->anchor);
    lua_replace(host->anchor, ANCHOR_SPARE);
    host->spare_used = true;
  }
  if (block == NULL) block = flowlua_new_block(L, host, 1);
  flowlua_hold_apart(L, block, (void *)value->pointer);
  value->pointer = NULL;
}

// MARK: - Pushing

/// Pushes a value that holds nothing but what Lua copies. The caller has seen to the room.
/// [-0, +1, m for strings, else -]
void flowlua_push_plain(lua_State *L, flowlua_host *host, const flowlua_value *value) {
  switch (value->kind) {
  case FLOWLUA_BOOLEAN: lua_pushboolean(L, value->integer != 0); break;
  case FLOWLUA_INTEGER: lua_pushinteger(L, value->integer); break;
  case FLOWLUA_NUMBER: lua_pushnumber(L, value->number); break;
  case FLOWLUA_STRING: lua_pushlstring(L, value->pointer, (size_t)value->integer); break;
  case FLOWLUA_REFERENCE: flowlua_push_reference(host, L, value->reference); break;
  case FLOWLUA_ARGUMENT: lua_pushvalue(L, value->reference); break;
  default: lua_pushnil(L); break;
  }
}

bool flowlua_push_light(lua_State *L, flowlua_host *host, flowlua_value *value) {
  switch (value->kind) {
  case FLOWLUA_OBJECT: return flowlua_push_object(L, host, value);
  case FLOWLUA_STRING:
  case FLOWLUA_FAILURE: return false;
  default: flowlua_push_plain(L, host, value); return true;
  }
}

/// Pushes any value. What it takes over it clears in the value. [-0, +1, m]
void flowlua_push_any(lua_State *L, flowlua_host *host, flowlua_value *value) {
  switch (value->kind) {
  case FLOWLUA_OBJECT: flowlua_require_object(L, host, value); break;
  case FLOWLUA_FAILURE: push_failure(L, host, value); break;
  default: flowlua_push_plain(L, host, value); break;
  }
}

/// Gives back what a value still holds: `reference` 1 of a string means that malloc made its bytes.
void flowlua_dispose(flowlua_host *host, flowlua_value *value) {
  if (value->pointer == NULL) return;
  if (value->kind == FLOWLUA_STRING && value->reference == 1) {
    free((void *)value->pointer);
  } else if (value->kind == FLOWLUA_OBJECT || value->kind == FLOWLUA_FAILURE) {
    host->callbacks.release((void *)value->pointer);
  } else {
    return;
  }
  value->pointer = NULL;
}

// MARK: - Handles

/// Within the anchor's room.
enum { HANDLE_BATCH = 64 };

static int make_handles(lua_State *L, void *argument) {
  flowlua_host *host = argument;
  flowlua_push_reference(host, L, host->types[host->handle_type].metatable);
  while (host->handle_count < HANDLE_BATCH) {
    handle_block *block = lua_newuserdatauv(L, sizeof(handle_block), 0);
    *block = (handle_block){.magic = handle_magic(host, host->handle_type)};
    lua_pushvalue(L, 1);
    lua_setmetatable(L, 2);
    lua_xmove(L, host->anchor, 1);
    host->handle_count += 1;
  }
  // From the second batch on, new ones take the memory of those that are collected meanwhile, which
  // the pool makes cheap.
  if (host->has_made_handles) host->pooled_from = 0;
  host->has_made_handles = true;
  return 0;
}

void flowlua_set_handle_type(flowlua_host *host, int32_t type) {
  host->handle_type = type;
  // Those of the type before are of no use.
  host->handle_count = 0;
  lua_settop(host->anchor, ANCHOR_HANDLES - 1);
}

bool flowlua_push_handle(
    flowlua_host *host, lua_State *L, uint32_t slot, uint64_t generation) {
  if (host->handle_count == 0) {
    int32_t status = flowlua_protect(host, make_handles, host);
    if (status != LUA_OK) flowlua_discard_error(host, status);
    if (host->handle_count == 0) return false;
  }
  host->handle_count -= 1;
  lua_xmove(host->anchor, L, 1);
  handle_block *block = lua_touserdata(L, -1);
  block->slot = slot;
  block->generation = generation;
  return true;
}

/// The handle of a type at an index; NULL for anything else. [-0, +0, -]
static const handle_block *handle_at(
    const flowlua_host *host, lua_State *L, int index, int32_t type) {
  // As in flowlua_block_at.
  if (lua_rawlen(L, index) != sizeof(handle_block)) return NULL;
  const handle_block *block = lua_touserdata(L, index);
  return block != NULL && block->magic == handle_magic(host, type) ? block : NULL;
}

const handle_block *flowlua_handle_block(flowlua_host *host, lua_State *L, int index) {
  return handle_at(host, L, index, host->handle_type);
}

bool flowlua_handle(
    flowlua_host *host, lua_State *L, int32_t index, int32_t type, uint32_t *slot,
    uint64_t *generation) {
  const handle_block *block = handle_at(host, L, index, type);
  if (block == NULL) return false;
  *slot = block->slot;
  *generation = block->generation;
  return true;
}

// MARK: - Reading

void flowlua_pop(lua_State *L, int32_t n) { lua_settop(L, -n - 1); }

const char *flowlua_bytes(lua_State *L, int32_t index, size_t *count) {
  // lua_tolstring raises only where it converts a number, which this excludes.
  if (lua_type(L, index) != LUA_TSTRING) return NULL;
  return lua_tolstring(L, index, count);
}

bool flowlua_read_scalar(lua_State *L, int index, flowlua_value *value) {
  int type = lua_type(L, index);
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

bool flowlua_is_table(lua_State *L, int32_t index) { return lua_type(L, index) == LUA_TTABLE; }

const char *flowlua_type_name(
    flowlua_host *host, lua_State *L, int32_t index, size_t *count) {
  const char *name = NULL;
  int type = lua_type(L, index);
  if (type == LUA_TTABLE || type == LUA_TUSERDATA) {
    index = lua_absindex(L, index);
    if (lua_checkstack(L, 3) && lua_getmetatable(L, index)) {
      lua_pushvalue(host->anchor, ANCHOR_NAME_KEY);
      lua_xmove(host->anchor, L, 1);
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

int32_t flowlua_where(lua_State *L, int32_t level, char *buffer, int32_t capacity) {
  lua_Debug frame;
  if (capacity < 1) return 0;
  buffer[0] = '\0';
  for (; lua_getstack(L, level, &frame); level++) {
    // With "Sl" lua_getinfo pushes nothing and allocates nothing.
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline > 0) {
      int length =
          snprintf(buffer, (size_t)capacity, "%s:%d: ", frame.short_src, frame.currentline);
      return length < capacity ? length : capacity - 1;
    }
  }
  return 0;
}

/// The number, from 1, of the name of a source; 0 when there is no memory for it.
static uint32_t source_number(flowlua_host *host, const char *name) {
  for (uint32_t i = 0; i < host->source_count; i++) {
    if (strcmp(host->sources[i], name) == 0) return i + 1;
  }
  if (host->source_count == host->source_capacity) {
    uint32_t capacity = host->source_capacity == 0 ? 8 : host->source_capacity * 2;
    // Chunks made of ever new texts would fill the memory.
    if (capacity > MOST_SOURCES) return 0;
    char(*grown)[LUA_IDSIZE] = realloc(host->sources, capacity * sizeof *grown);
    if (grown == NULL) return 0;
    host->sources = grown;
    host->source_capacity = capacity;
  }
  snprintf(host->sources[host->source_count], LUA_IDSIZE, "%s", name);
  return ++host->source_count;
}

/// The origin of a call from a frame, if it was found before; else 0.
static uint64_t remembered_origin(const flowlua_host *host, const lua_Debug *frame) {
  // A function that was freed isn't found, even if another one has its address: see host.c.
  if (host->frames != LAYOUT_EXPECTED || flowlua_frame_function(frame) != host->origin_function) return 0;
  const void *instruction = flowlua_frame_instruction(frame);
  for (int i = 0; i < KNOWN_ORIGINS; i++) {
    if (host->origins[i].instruction == instruction) return host->origins[i].origin;
  }
  return 0;
}

/// Finds the origin of a call from a frame, and remembers it; 0 for a function of C. [-0, +0, -]
static uint64_t find_origin(flowlua_host *host, lua_State *L, lua_Debug *frame) {
  // First, as it may have a finalizer run that comes here.
  if (host->frames == LAYOUT_UNKNOWN) flowlua_learn_frames(host, L);
  // As in flowlua_where, but for the function, for which a C function has room.
  lua_getinfo(L, "fl", frame);
  const void *function = lua_topointer(L, -1);
  lua_settop(L, -2);
  if (frame->currentline <= 0) return 0;
  if (function != host->origin_function) {
    lua_getinfo(L, "S", frame);
    host->last_source = source_number(host, frame->short_src);
    host->origin_function = function;
    memset(host->origins, 0, sizeof host->origins);
  }
  uint64_t origin = (uint64_t)host->last_source << 32 | (uint32_t)frame->currentline;
  if (host->frames == LAYOUT_EXPECTED) {
    host->origins[host->next_origin] =
        (known_origin){flowlua_frame_instruction(frame), origin};
    host->next_origin = (host->next_origin + 1) % KNOWN_ORIGINS;
  }
  return origin;
}

uint64_t flowlua_origin(flowlua_host *host, lua_State *L) {
  lua_Debug frame;
  for (int level = 1; level < 10 && lua_getstack(L, level, &frame); level++) {
    uint64_t origin = remembered_origin(host, &frame);
    if (origin == 0) origin = find_origin(host, L, &frame);
    if (origin != 0) return origin;
  }
  return 0;
}

int32_t flowlua_origin_text(
    const flowlua_host *host, uint64_t origin, char *buffer, int32_t capacity) {
  uint32_t source = (uint32_t)(origin >> 32);
  const char *name = source > 0 && source <= host->source_count ? host->sources[source - 1] : "?";
  int length = snprintf(buffer, (size_t)capacity, "%s:%u", name, (uint32_t)origin);
  return length < capacity ? length : capacity - 1;
}

/// Where a string that is interned is remembered by its address. The table of interned strings keeps
/// it alive, so that no other string can come to have the address.
static interned_string *remembered(flowlua_host *host, const void *string) {
  uintptr_t bits = (uintptr_t)string;
  return &host->interned[(bits >> 4 ^ bits >> 10) % INTERNED_CACHE];
}

int64_t flowlua_interned(flowlua_host *host, lua_State *L, int32_t index) {
  // Of what isn't a string it is NULL, or an address where no string can be.
  const void *string = lua_topointer(L, index);
  interned_string *place = remembered(host, string);
  if (place->string == string && string != NULL) return place->integer;
  size_t length;
  if (flowlua_bytes(L, index, &length) == NULL) return -1;
  if (!lua_checkstack(L, 3)) return -1;
  index = lua_absindex(L, index);
  lua_pushvalue(host->anchor, ANCHOR_INTERNED);
  lua_xmove(host->anchor, L, 1);
  lua_pushvalue(L, index);
  int64_t result = lua_rawget(L, -2) == LUA_TNUMBER ? lua_tointegerx(L, -1, NULL) : -1;
  lua_settop(L, -3);
  // A long string may be another one than the interned one that it equals.
  if (result >= 0 && length <= SHORT_STRING)
    *place = (interned_string){string, result};
  return result;
}

typedef struct intern_argument {
  const char *bytes;
  size_t count;
  int64_t integer;
} intern_argument;

static int intern(lua_State *L, void *argument) {
  flowlua_host *host = host_of(L);
  const intern_argument *what = argument;
  lua_pushvalue(host->anchor, ANCHOR_INTERNED);
  lua_xmove(host->anchor, L, 1);
  lua_pushlstring(L, what->bytes, what->count);
  lua_pushinteger(L, what->integer);
  lua_rawset(L, -3);
  return 0;
}

int32_t flowlua_intern(flowlua_host *host, lua_State *L, int32_t index, int64_t integer) {
  // Read here: in the protected call the index would mean another frame. The caller's stack keeps
  // the string alive.
  intern_argument what = {NULL, 0, integer};
  what.bytes = flowlua_bytes(L, index, &what.count);
  if (what.bytes == NULL) return LUA_OK;
  return flowlua_protect(host, intern, &what);
}

int64_t flowlua_list_count(lua_State *L, int32_t index) {
  if (lua_type(L, index) != LUA_TTABLE || !lua_checkstack(L, 3)) return -1;
  index = lua_absindex(L, index);
  // A walk over an unchanged table raises nothing and allocates nothing. If every key is an integer
  // from 1 to n and there are n of them, the table is the list 1…n.
  lua_Integer largest = 0;
  int64_t count = 0;
  lua_pushnil(L);
  while (lua_next(L, index)) {
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

bool flowlua_in_finalizer(lua_State *L) {
  // While a finalizer runs, 5.4.4 answers -1 to every question about the collector.
  return lua_gc(L, LUA_GCCOUNT) < 0;
}
