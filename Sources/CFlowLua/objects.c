// Swift objects in userdata: always the same userdata for the same object while Lua has it.
//
// Each userdata has a place among those that hold a Swift reference, and a table with weak values has
// it at that place. An index of our own finds the place by the object's address.
//
// The userdata have no finalizers: Lua would keep each for a round of its collector more, and call it,
// which takes longer than all else that is done for it. Instead the allocator tells when one is freed.
// That is in the middle of Lua's work, so the Swift reference is only noted there. It is given back by
// one finalizer for all, that of the herald: a userdata that nobody holds, made anew in each round.
#include <stdlib.h>

#include "internal.h"

// MARK: - Userdata and their types

object_block *flowlua_block_at(flowlua_host *host, lua_State *L, int index) {
  // Light userdata, whose pointer may be anything, has the length 0; what else has a length is no
  // userdata.
  if (lua_rawlen(L, index) != sizeof(object_block)) return NULL;
  object_block *block = lua_touserdata(L, index);
  if (block == NULL) return NULL;
  uint64_t type = block->magic ^ host->secret;
  return type >= 1 && type <= (uint64_t)host->type_count ? block : NULL;
}

int32_t flowlua_define_type(flowlua_host *host, int32_t metatable) {
  if (host->type_count == host->type_capacity) {
    int32_t capacity = host->type_capacity * 2;
    if (capacity > 0x7FFF) return 0;
    object_type *grown = realloc(host->types, sizeof(object_type) * ((size_t)capacity + 1));
    if (grown == NULL) return 0;
    host->types = grown;
    host->type_capacity = capacity;
  }
  host->type_count += 1;
  host->types[host->type_count] = (object_type){.metatable = metatable};
  return host->type_count;
}

void *flowlua_object(flowlua_host *host, lua_State *L, int32_t index, int32_t type) {
  object_block *block = flowlua_block_at(host, L, index);
  if (block == NULL || block->magic != (host->secret ^ (uint64_t)type)) return NULL;
  return block->pointer;
}

/// Without its metatable. [-0, +1, m]
static object_block *bare_block(lua_State *L, flowlua_host *host, int32_t type) {
  object_block *block = lua_newuserdatauv(L, sizeof(object_block), 0);
  block->magic = host->secret ^ (uint64_t)type;
  block->pointer = NULL;
  block->slot = NONE_HELD;
  return block;
}

static void make_herald(lua_State *L, flowlua_host *host);

/// There is none at first, and when Lua had no memory or no room on the C stack for the last one.
/// [-0, +0, m]
static inline void ensure_herald(lua_State *L, flowlua_host *host) {
  if (host->herald == NULL) make_herald(L, host);
}

object_block *flowlua_new_block(lua_State *L, flowlua_host *host, int32_t type) {
  ensure_herald(L, host);
  object_block *block = bare_block(L, host, type);
  flowlua_push_reference(host, L, host->types[type].metatable);
  lua_setmetatable(L, -2);
  return block;
}

// MARK: - The index: from an object's address to its place

// Open addressing: a place stands at or behind where its object's address hashes to. There are two
// buckets for each place, so that searches stay short.

/// Objects that are neighbours in memory, as those made one after another are, have buckets that are:
/// the caches then know the next one. What the mask cuts off moves each stretch of memory as a whole.
static uint32_t first_bucket(const flowlua_host *host, const void *pointer) {
  uint64_t unit = (uintptr_t)pointer >> 4;
  uint64_t stretch = (unit >> host->bucket_bits) * 0x9E3779B97F4A7C15u >> 32;
  return (uint32_t)(unit + stretch) & host->bucket_mask;
}

/// The bucket with the place of an object, or the empty one where it would go.
static uint32_t *find_bucket(flowlua_host *host, const void *pointer) {
  uint32_t i = first_bucket(host, pointer);
  while (host->buckets[i] != NONE_HELD && host->held[host->buckets[i]].pointer != pointer)
    i = (i + 1) & host->bucket_mask;
  return &host->buckets[i];
}

/// Takes a place out of the index, if it is still the one of its object.
static void forget_place(flowlua_host *host, uint32_t place) {
  uint32_t mask = host->bucket_mask;
  uint32_t gap = first_bucket(host, host->held[place].pointer);
  while (host->buckets[gap] != place) {
    if (host->buckets[gap] == NONE_HELD) return;
    gap = (gap + 1) & mask;
  }
  // Those behind that belong before the gap move up: a search ends at an empty bucket.
  for (uint32_t i = (gap + 1) & mask; host->buckets[i] != NONE_HELD; i = (i + 1) & mask) {
    uint32_t first = first_bucket(host, host->held[host->buckets[i]].pointer);
    if (((i - first) & mask) < ((i - gap) & mask)) continue;
    host->buckets[gap] = host->buckets[i];
    gap = i;
  }
  host->buckets[gap] = NONE_HELD;
}

static bool grow_index(flowlua_host *host, uint32_t count) {
  uint32_t *grown = malloc(sizeof(uint32_t) * count);
  if (grown == NULL) return false;
  memset(grown, 0xFF, sizeof(uint32_t) * count);
  uint32_t *old = host->buckets;
  uint32_t old_count = old != NULL ? host->bucket_mask + 1 : 0;
  host->buckets = grown;
  host->bucket_mask = count - 1;
  host->bucket_bits = (uint32_t)__builtin_ctz(count);
  for (uint32_t i = 0; i < old_count; i++) {
    if (old[i] != NONE_HELD) *find_bucket(host, host->held[old[i]].pointer) = old[i];
  }
  free(old);
  return true;
}

// MARK: - Places

/// A place for one more Swift reference; NONE_HELD if there is no memory. It stays free until
/// `take_place`.
static uint32_t free_place(flowlua_host *host) {
  if (host->free_held != NONE_HELD) return host->free_held;
  if (host->held_count == host->held_capacity) {
    uint32_t capacity = host->held_capacity == 0 ? 32 : host->held_capacity * 2;
    if (capacity > INT32_MAX / 2) return NONE_HELD;
    held_object *grown = realloc(host->held, sizeof(held_object) * capacity);
    if (grown == NULL) return NONE_HELD;
    host->held = grown;
    if (!grow_index(host, capacity * 2)) return NONE_HELD;
    host->held_capacity = capacity;
  }
  host->held[host->held_count] = (held_object){NULL, NONE_HELD};
  host->free_held = host->held_count++;
  return host->free_held;
}

/// Gives the first free place, which `free_place` has made sure of, to a userdata.
static void take_place(flowlua_host *host, object_block *block) {
  block->slot = host->free_held;
  host->free_held = host->held[block->slot].next_free;
  host->held[block->slot] = (held_object){NULL, NONE_HELD};
}

static void hold(flowlua_host *host, object_block *block, void *pointer) {
  block->pointer = pointer;
  host->held[block->slot].pointer = pointer;
}

void flowlua_hold_apart(lua_State *L, object_block *block, void *pointer) {
  flowlua_host *host = host_of(L);
  if (free_place(host) == NONE_HELD) flowlua_raise_memory(L);
  take_place(host, block);
  hold(host, block, pointer);
}

void flowlua_release_held(flowlua_host *host) {
  host->dead_held = NONE_HELD;
  // A deinit may not make objects any more, so that the count stands.
  for (uint32_t i = 0; i < host->held_count; i++) {
    void *pointer = host->held[i].pointer;
    host->held[i].pointer = NULL;
    if (pointer != NULL) host->callbacks.release(pointer);
  }
}

// MARK: - The end of userdata

void flowlua_object_freed(flowlua_host *host, void *memory) {
  // What a userdata holds stands at its end.
  object_block *block =
      (object_block *)((char *)memory + host->object_size - sizeof(object_block));
  if (block == host->herald) {
    host->herald = NULL;
    return;
  }
  uint64_t type = block->magic ^ host->secret;
  if (type < 1 || type > (uint64_t)host->type_count) return;
  // What takes the memory next may leave it as it is.
  block->magic = 0;
  // What is left when the state is closed is given back then.
  if (block->pointer == NULL || host->closing) return;
  // Only what was written here by us gets so far; yet a list of places must never be wrong.
  if (block->slot >= host->held_count || host->held[block->slot].pointer != block->pointer) return;
  forget_place(host, block->slot);
  host->held[block->slot].next_free = host->dead_held;
  host->dead_held = block->slot;
}

/// Gives back the Swift references of userdata that were freed.
static void release_dead(flowlua_host *host) {
  while (host->dead_held != NONE_HELD) {
    uint32_t place = host->dead_held;
    void *pointer = host->held[place].pointer;
    host->dead_held = host->held[place].next_free;
    host->held[place] = (held_object){NULL, host->free_held};
    host->free_held = place;
    host->callbacks.release(pointer);
  }
  // A deinit may have used another state.
  flowlua_current = host;
}

/// Sends the next herald on its way. [-0, +0, m]
static void make_herald(lua_State *L, flowlua_host *host) {
  // Of the size of those whose end is told, as Lua may give its finalizer up.
  object_block *herald = lua_newuserdatauv(L, sizeof(object_block), 0);
  memset(herald, 0, sizeof *herald);
  lua_pushvalue(host->anchor, ANCHOR_HERALD);
  lua_xmove(host->anchor, L, 1);
  lua_setmetatable(L, -2);
  lua_settop(L, -2);
  host->herald = herald;
}

/// `__gc` of heralds: a round of the collector is over. No script can get hold of one.
static int herald_end(lua_State *L) {
  flowlua_host *host = host_of(L);
  host->herald = NULL;
  if (host->closing) return 0;
  flowlua_note_collection(host);
  release_dead(host);
  make_herald(L, host);
  return 0;
}

void flowlua_prepare_objects(lua_State *L) {
  flowlua_host *host = host_of(L);
  size_t before = host->memory_used;
  lua_newuserdatauv(L, sizeof(object_block), 0);
  host->object_size = host->memory_used - before;
  lua_settop(L, -2);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, herald_end);
  lua_setfield(L, -2, "__gc");
}
// MARK: - Pushing objects

/// What `new_object` needs on the stack. [-0, +2, -]
static void push_tables(lua_State *L, flowlua_host *host, int32_t type) {
  lua_pushvalue(host->anchor, ANCHOR_OBJECTS);
  lua_xmove(host->anchor, L, 1);
  flowlua_push_reference(host, L, host->types[type].metatable);
}

/// A userdata with a place, for the next object of its type, above the tables. [-0, +1, m]
static object_block *new_object(lua_State *L, flowlua_host *host, int32_t type) {
  ensure_herald(L, host);
  object_block *block = bare_block(L, host, type);
  lua_pushvalue(L, -2);
  lua_setmetatable(L, -2);
  // From here on no finalizer runs, which might take the place.
  uint32_t place = free_place(host);
  if (place == NONE_HELD) flowlua_raise_memory(L);
  lua_pushvalue(L, -1);
  lua_rawseti(L, -4, (lua_Integer)place + 1);
  take_place(host, block);
  return block;
}

enum {
  /// From so many objects of a type on, they are made in advance: the answer of a call then needs
  /// neither memory nor a protected call.
  MANY_OBJECTS = 32,
  OBJECT_BATCH = 64,
};

/// Fills the reserve of a type, where it pays. [-0, +0, m]
static void make_reserve(lua_State *L, flowlua_host *host, int32_t type) {
  if (host->types[type].made < MANY_OBJECTS) {
    host->types[type].made += 1;
    return;
  }
  if (host->types[type].reserve == NULL) {
    lua_pushvalue(host->anchor, ANCHOR_RESERVES);
    lua_xmove(host->anchor, L, 1);
    lua_State *reserve = lua_newthread(L);
    // A finalizer that runs while objects are made may fill it once more.
    if (!lua_checkstack(reserve, OBJECT_BATCH + LUA_MINSTACK)) flowlua_raise_memory(L);
    // One may have made it, too.
    if (host->types[type].reserve == NULL) {
      lua_rawseti(L, -2, type);
      host->types[type].reserve = reserve;
    } else {
      lua_settop(L, -2);
    }
    lua_settop(L, -2);
  } else {
    // As with handles: the memory of those that are collected is used again.
    host->pooled_from = 0;
  }
  push_tables(L, host, type);
  while (host->types[type].reserve_count < OBJECT_BATCH) {
    new_object(L, host, type);
    lua_xmove(L, host->types[type].reserve, 1);
    host->types[type].reserve_count += 1;
  }
  lua_settop(L, -3);
}

bool flowlua_push_object(lua_State *L, flowlua_host *host, flowlua_value *value) {
  void *pointer = (void *)value->pointer;
  if (host->buckets == NULL) return false;
  uint32_t *bucket = find_bucket(host, pointer);
  if (*bucket != NONE_HELD) {
    lua_rawgeti(host->anchor, ANCHOR_OBJECTS, (lua_Integer)*bucket + 1);
    lua_xmove(host->anchor, L, 1);
    object_block *block = flowlua_block_at(host, L, -1);
    if (block != NULL && block->pointer == pointer
        && block->magic == (host->secret ^ (uint64_t)value->reference))
      return true;  // the reference that came along is given back with the value
    lua_settop(L, -2);
  }
  object_type *type = &host->types[value->reference];
  // While the state closes objects aren't made any more. Without a herald one has to be made first.
  if (type->reserve_count == 0 || host->closing || host->herald == NULL) return false;
  type->reserve_count -= 1;
  lua_xmove(type->reserve, L, 1);
  object_block *block = lua_touserdata(L, -1);
  hold(host, block, pointer);
  *bucket = block->slot;
  value->pointer = NULL;
  return true;
}

void flowlua_require_object(lua_State *L, flowlua_host *host, flowlua_value *value) {
  if (flowlua_push_object(L, host, value)) return;
  if (host->closing) luaL_error(L, "the Lua state is closing");
  make_reserve(L, host, value->reference);
  if (flowlua_push_object(L, host, value)) return;
  push_tables(L, host, value->reference);
  object_block *block = new_object(L, host, value->reference);
  lua_rotate(L, -3, 1);
  lua_settop(L, -3);
  hold(host, block, (void *)value->pointer);
  *find_bucket(host, block->pointer) = block->slot;
  value->pointer = NULL;
}
