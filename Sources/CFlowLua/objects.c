// Swift objects in userdata: always the same userdata for the same object while Lua has it.
//
// Each userdata has a place among those that hold a Swift reference, and a table with weak values has
// it at that place. An index of our own finds the place by the object's address.
//
// The userdata have no finalizers: Lua would keep each for a round of its collector more, and call it,
// which takes longer than all else that is done for it. Instead the allocator tells when one is freed.
// That is in the middle of Lua's work, so the Swift reference is only noted there. It is given back by
// one finalizer for all, of the sweep sentinel: a userdata that nobody holds, and that gets its finalizer again in
// each round.
#include <stdlib.h>

#include "internal.h"

// MARK: - Userdata and their types

object_block *flowlua_block_at(flowlua_state *state, lua_State *L, int index) {
  // Light userdata, whose pointer may be anything, has the length 0; what else has a length is no
  // userdata.
  if (lua_rawlen(L, index) != sizeof(object_block)) return NULL;
  object_block *block = lua_touserdata(L, index);
  if (block == NULL) return NULL;
  uint64_t type = block->magic ^ state->magic_base;
  return type >= 1 && type <= (uint64_t)state->type_count ? block : NULL;
}

int32_t flowlua_define_type(flowlua_state *state, int32_t metatable) {
  if (state->type_count == state->type_capacity) {
    int32_t capacity = state->type_capacity * 2;
    if (capacity > 0x7FFF) return 0;
    object_type *grown =
        flowlua_resize_own(state->types, sizeof(object_type) * ((size_t)capacity + 1));
    if (grown == NULL) return 0;
    state->types = grown;
    state->type_capacity = capacity;
  }
  state->type_count += 1;
  state->types[state->type_count] = (object_type){.metatable = metatable};
  return state->type_count;
}

void *flowlua_object(flowlua_state *state, lua_State *L, int32_t index, int32_t type) {
  object_block *block = flowlua_block_at(state, L, index);
  if (block == NULL || block->magic != (state->magic_base ^ (uint64_t)type)) return NULL;
  return block->pointer;
}

void *flowlua_any_object(flowlua_state *state, lua_State *L, int32_t index, int32_t *type) {
  object_block *block = flowlua_block_at(state, L, index);
  if (block == NULL) return NULL;
  *type = (int32_t)(block->magic ^ state->magic_base);
  return block->pointer;
}

/// Without its metatable. [-0, +1, m]
static object_block *bare_block(lua_State *L, flowlua_state *state, int32_t type) {
  object_block *block = lua_newuserdatauv(L, sizeof(object_block), 0);
  block->magic = state->magic_base ^ (uint64_t)type;
  block->pointer = NULL;
  block->slot = NONE_HELD;
  return block;
}

static void make_sentinel(lua_State *L, flowlua_state *state);

/// There is none at first, and when Lua had no memory or no room on the C stack for the last one.
/// [-0, +0, m]
static inline void ensure_sentinel(lua_State *L, flowlua_state *state) {
  if (state->sweep_sentinel == NULL) make_sentinel(L, state);
}

// MARK: - The index: from an object's address to its place

// Open addressing: a place is at or after the bucket that its object's address hashes to. There are two
// buckets for each place, so that searches stay short.

/// Objects that are neighbours in memory, as those made one after another are, have buckets that are:
/// the caches then know the next one. The bits that the mask cuts off move each stretch of memory as a whole.
static uint32_t first_bucket(const flowlua_state *state, const void *pointer) {
  uint64_t unit = (uintptr_t)pointer >> 4;
  uint64_t stretch = (unit >> state->bucket_bits) * 0x9E3779B97F4A7C15u >> 32;
  return (uint32_t)(unit + stretch) & state->bucket_mask;
}

/// The bucket with the place of an object, or the empty one where it would go.
static uint32_t *find_bucket(flowlua_state *state, const void *pointer) {
  uint32_t i = first_bucket(state, pointer);
  while (state->buckets[i] != NONE_HELD && state->held[state->buckets[i]].pointer != pointer)
    i = (i + 1) & state->bucket_mask;
  return &state->buckets[i];
}

/// Takes a place out of the index, if it is still the one of its object.
static void forget_place(flowlua_state *state, uint32_t place) {
  uint32_t mask = state->bucket_mask;
  uint32_t gap = first_bucket(state, state->held[place].pointer);
  while (state->buckets[gap] != place) {
    if (state->buckets[gap] == NONE_HELD) return;
    gap = (gap + 1) & mask;
  }
  // Those after it that belong before the gap move up: a search ends at an empty bucket.
  for (uint32_t i = (gap + 1) & mask; state->buckets[i] != NONE_HELD; i = (i + 1) & mask) {
    uint32_t first = first_bucket(state, state->held[state->buckets[i]].pointer);
    if (((i - first) & mask) < ((i - gap) & mask)) continue;
    state->buckets[gap] = state->buckets[i];
    gap = i;
  }
  state->buckets[gap] = NONE_HELD;
}

static bool grow_index(flowlua_state *state, uint32_t count) {
  uint32_t *grown = flowlua_resize_own(NULL, sizeof(uint32_t) * count);
  if (grown == NULL) return false;
  memset(grown, 0xFF, sizeof(uint32_t) * count);
  uint32_t *old = state->buckets;
  uint32_t old_count = old != NULL ? state->bucket_mask + 1 : 0;
  state->buckets = grown;
  state->bucket_mask = count - 1;
  state->bucket_bits = (uint32_t)__builtin_ctz(count);
  for (uint32_t i = 0; i < old_count; i++) {
    if (old[i] != NONE_HELD) *find_bucket(state, state->held[old[i]].pointer) = old[i];
  }
  free(old);
  return true;
}

// MARK: - Places

/// A place for one more Swift reference; NONE_HELD if there is no memory. It stays free until
/// `take_place`.
static uint32_t free_place(flowlua_state *state) {
  if (state->free_held != NONE_HELD) return state->free_held;
  if (state->held_count == state->held_capacity) {
    uint32_t capacity = state->held_capacity == 0 ? 32 : state->held_capacity * 2;
    if (capacity > INT32_MAX / 2) return NONE_HELD;
    held_object *grown = flowlua_resize_own(state->held, sizeof(held_object) * capacity);
    if (grown == NULL) return NONE_HELD;
    state->held = grown;
    if (!grow_index(state, capacity * 2)) return NONE_HELD;
    state->held_capacity = capacity;
  }
  state->held[state->held_count] = (held_object){NULL, NONE_HELD};
  state->free_held = state->held_count++;
  return state->free_held;
}

/// Gives the first free place, which `free_place` has made sure of, to a userdata.
static void take_place(flowlua_state *state, object_block *block) {
  block->slot = state->free_held;
  state->free_held = state->held[block->slot].next_free;
  state->held[block->slot] = (held_object){NULL, NONE_HELD};
}

static void hold(flowlua_state *state, object_block *block, void *pointer) {
  block->pointer = pointer;
  state->held[block->slot].pointer = pointer;
}

object_block *flowlua_new_block(lua_State *L, flowlua_state *state, int32_t type) {
  ensure_sentinel(L, state);
  object_block *block = bare_block(L, state, type);
  flowlua_push_reference(state, L, state->types[type].metatable);
  lua_setmetatable(L, -2);
  if (free_place(state) == NONE_HELD) flowlua_raise_memory(L);
  take_place(state, block);
  return block;
}

void flowlua_hold_apart(flowlua_state *state, object_block *block, void *pointer) {
  hold(state, block, pointer);
}

void flowlua_release_held(flowlua_state *state) {
  state->dead_held = NONE_HELD;
  // A deinit may not make objects any more, so that the count stands.
  for (uint32_t i = 0; i < state->held_count; i++) {
    void *pointer = state->held[i].pointer;
    state->held[i].pointer = NULL;
    if (pointer != NULL) state->callbacks.release(pointer);
  }
}

// MARK: - The end of userdata

/// Notes that the Swift reference of a userdata is to be given back.
static void end_object(flowlua_state *state, object_block *block) {
  // The next owner of the memory may leave it as it is.
  block->magic = 0;
  // Objects that are left when the state is closed are given back then.
  if (block->pointer == NULL || state->closing) return;
  // Only what was written here by us gets so far; yet a list of places must never be wrong.
  if (block->slot >= state->held_count || state->held[block->slot].pointer != block->pointer)
    return;
  forget_place(state, block->slot);
  state->held[block->slot].next_free = state->dead_held;
  state->dead_held = block->slot;
}

void flowlua_object_freed(flowlua_state *state, void *memory) {
  object_block *block = object_in(state, memory);
  if (block == state->sweep_sentinel) {
    state->sweep_sentinel = NULL;
    return;
  }
  uint64_t type = block->magic ^ state->magic_base;
  if (type >= 1 && type <= (uint64_t)state->type_count) end_object(state, block);
}

/// Gives back the Swift references of userdata that were freed.
static void release_dead(flowlua_state *state) {
  while (state->dead_held != NONE_HELD) {
    uint32_t place = state->dead_held;
    void *pointer = state->held[place].pointer;
    state->dead_held = state->held[place].next_free;
    state->held[place] = (held_object){NULL, state->free_held};
    state->free_held = place;
    state->callbacks.release(pointer);
  }
  // A deinit may have used another state.
  flowlua_current = state;
}

/// Sends a sentinel on its way. [-0, +0, m]
static void make_sentinel(lua_State *L, flowlua_state *state) {
  // Of the size that the allocator reports, as Lua may abandon its finalizer.
  object_block *sentinel = lua_newuserdatauv(L, sizeof(object_block), 0);
  memset(sentinel, 0, sizeof *sentinel);
  lua_pushvalue(state->anchor, ANCHOR_SENTINEL);
  lua_xmove(state->anchor, L, 1);
  lua_setmetatable(L, -2);
  lua_settop(L, -2);
  state->sweep_sentinel = sentinel;
}

/// `__gc` of sweep sentinels: a round of the collector is over. No script can get hold of one.
static int sentinel_end(lua_State *L) {
  flowlua_state *state = state_of(L);
  if (state->closing) return 0;
  flowlua_note_collection(state);
  release_dead(state);
  if (state->memory_limit == 0) {
    state->sweep_sentinel = NULL;
    make_sentinel(L, state);
    return 0;
  }
  // It is the sentinel that was collected: a new one needs memory, of which there may be none before this one gives
  // some back.
  lua_settop(L, 1);
  lua_pushvalue(state->anchor, ANCHOR_SENTINEL);
  lua_xmove(state->anchor, L, 1);
  lua_setmetatable(L, 1);
  return 0;
}

int flowlua_object_end(lua_State *L) {
  flowlua_state *state = state_of(L);
  object_block *block = flowlua_block_at(state, L, 1);
  if (block == NULL) return 0;
  end_object(state, block);
  if (!state->closing) release_dead(state);
  return 0;
}

/// The allocator while a userdata is made: notes what is asked of it.
static void *observe(void *context, void *block, size_t old_size, size_t new_size) {
  flowlua_state *state = context;
  void *result = state->observed.allocate(context, block, old_size, new_size);
  state->observed.count += 1;
  state->observed.block = result;
  state->observed.size = new_size;
  return result;
}

/// Learns how large a userdata with an `object_block` is, if it is one block of memory with the object's
/// block at its end. [-0, +0, m]
static void learn_size(lua_State *L, flowlua_state *state) {
  state->object_size = NO_OBJECT_SIZE;
  // Should it raise, `observe` stays and does no harm: the state is closed.
  state->observed.allocate = lua_getallocf(L, NULL);
  lua_setallocf(L, observe, state);
  object_block *block = lua_newuserdatauv(L, sizeof *block, 0);
  lua_setallocf(L, state->observed.allocate, state);
  // This one was made before its size was known.
  block->magic = 0;
  lua_settop(L, -2);
  const char *end = (const char *)state->observed.block + state->observed.size;
  if ((state->withheld & FLOWLUA_FREED_OBJECTS) == 0 && state->observed.count == 1
      && (const char *)(block + 1) == end)
    state->object_size = state->observed.size;
  if (state->object_size != NO_OBJECT_SIZE) state->noted_sizes |= size_bit(state->object_size);
}

void flowlua_prepare_objects(lua_State *L) {
  learn_size(L, state_of(L));
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, sentinel_end);
  lua_setfield(L, -2, "__gc");
}
// MARK: - Pushing objects

/// Pushes the values that `new_object` needs on the stack. [-0, +2, -]
static void push_tables(lua_State *L, flowlua_state *state, int32_t type) {
  lua_pushvalue(state->anchor, ANCHOR_OBJECTS);
  lua_xmove(state->anchor, L, 1);
  flowlua_push_reference(state, L, state->types[type].metatable);
}

/// A userdata with a place, for the next object of its type, above the tables. [-0, +1, m]
static object_block *new_object(lua_State *L, flowlua_state *state, int32_t type) {
  ensure_sentinel(L, state);
  object_block *block = bare_block(L, state, type);
  lua_pushvalue(L, -2);
  lua_setmetatable(L, -2);
  // From here on no finalizer runs, which might take the place.
  uint32_t place = free_place(state);
  if (place == NONE_HELD) flowlua_raise_memory(L);
  lua_pushvalue(L, -1);
  lua_rawseti(L, -4, (lua_Integer)place + 1);
  take_place(state, block);
  return block;
}

enum {
  /// From so many objects of a type on, they are made in advance: the answer of a call then needs
  /// neither memory nor a protected call.
  MANY_OBJECTS = 32,
  OBJECT_BATCH = 64,
};

/// Fills the reserve of a type, where it pays. [-0, +0, m]
static void make_reserve(lua_State *L, flowlua_state *state, int32_t type) {
  if (state->types[type].made < MANY_OBJECTS) {
    state->types[type].made += 1;
    return;
  }
  if (state->types[type].reserve == NULL) {
    lua_pushvalue(state->anchor, ANCHOR_RESERVES);
    lua_xmove(state->anchor, L, 1);
    lua_State *reserve = lua_newthread(L);
    // A finalizer that runs while objects are made may fill it once more.
    if (!lua_checkstack(reserve, OBJECT_BATCH + LUA_MINSTACK)) flowlua_raise_memory(L);
    // One may have made it, too.
    if (state->types[type].reserve == NULL) {
      lua_rawseti(L, -2, type);
      state->types[type].reserve = reserve;
    } else {
      lua_settop(L, -2);
    }
    lua_settop(L, -2);
  } else {
    // As with handles: the memory of those that are collected is used again.
    pool_from_now(state);
  }
  push_tables(L, state, type);
  while (state->types[type].reserve_count < OBJECT_BATCH) {
    new_object(L, state, type);
    lua_xmove(L, state->types[type].reserve, 1);
    state->types[type].reserve_count += 1;
  }
  lua_settop(L, -3);
}

bool flowlua_push_object(lua_State *L, flowlua_state *state, flowlua_value *value) {
  void *pointer = (void *)value->pointer;
  if (state->buckets == NULL) return false;
  uint32_t *bucket = find_bucket(state, pointer);
  if (*bucket != NONE_HELD) {
    lua_rawgeti(state->anchor, ANCHOR_OBJECTS, (lua_Integer)*bucket + 1);
    lua_xmove(state->anchor, L, 1);
    object_block *block = flowlua_block_at(state, L, -1);
    if (block != NULL && block->pointer == pointer
        && block->magic == (state->magic_base ^ (uint64_t)value->reference))
      return true;  // the reference that came along is given back with the value
    lua_settop(L, -2);
  }
  object_type *type = &state->types[value->reference];
  // While the state closes objects aren't made any more. Without a sentinel one has to be made first.
  if (type->reserve_count == 0 || state->closing || state->sweep_sentinel == NULL) return false;
  type->reserve_count -= 1;
  lua_xmove(type->reserve, L, 1);
  object_block *block = lua_touserdata(L, -1);
  hold(state, block, pointer);
  *bucket = block->slot;
  value->pointer = NULL;
  return true;
}

void flowlua_require_object(lua_State *L, flowlua_state *state, flowlua_value *value) {
  if (flowlua_push_object(L, state, value)) return;
  if (state->closing) luaL_error(L, "the Lua state is closing");
  make_reserve(L, state, value->reference);
  if (flowlua_push_object(L, state, value)) return;
  push_tables(L, state, value->reference);
  object_block *block = new_object(L, state, value->reference);
  lua_rotate(L, -3, 1);
  lua_settop(L, -3);
  hold(state, block, (void *)value->pointer);
  *find_bucket(state, block->pointer) = block->slot;
  value->pointer = NULL;
}
