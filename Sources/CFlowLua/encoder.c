// What an encoder has met so far.
#include <stdlib.h>

#include "codec.h"

const uint8_t flowlua_value_header[3] = {'F', 'P', 3};
const uint8_t flowlua_code_header[3] = {'F', 'C', 3};

void flowlua_encoder_open(
    encoder *e, flowlua_state *state, flowlua_buffer *out, flowlua_encode_error *error) {
  memset(e, 0, offsetof(encoder, few));
  e->state = state;
  e->out = out;
  e->error = error;
  e->start = out->count;
  e->objects = e->few;
  e->capacity = INLINE_OBJECTS;
  e->current = NO_OBJECT;
}

void flowlua_encoder_close(encoder *e) {
  if (e->objects != e->few) free(e->objects);
  free(e->buckets);
  free(e->cells);
  free(e->cell_buckets);
  free(e->upvalues);
  flowlua_buffer_free(&e->entries);
}

static uint32_t hash_of(const void *identity) {
  return (uint32_t)(((uintptr_t)identity >> 4) * 0x9E3779B97F4A7C15u >> 32);
}

/// The bucket of an object, or the empty one where it would go.
static uint32_t *find_met(encoder *e, const void *identity) {
  uint32_t i = hash_of(identity) & e->mask;
  while (e->buckets[i] != NO_OBJECT && e->objects[e->buckets[i]].identity != identity)
    i = (i + 1) & e->mask;
  return &e->buckets[i];
}

/// Room for one object more. [-0, +0, m]
static void grow_objects(encoder *e, lua_State *L) {
  uint32_t capacity = e->capacity * 2;
  if (capacity > UINT32_MAX / 8) flowlua_raise_memory(L);
  bool is_inline = e->objects == e->few;
  met_object *grown = flowlua_resize_own(is_inline ? NULL : e->objects, sizeof *grown * capacity);
  if (grown == NULL) flowlua_raise_memory(L);
  if (is_inline) memcpy(grown, e->few, sizeof e->few);
  e->objects = grown;
  uint32_t *buckets = flowlua_resize_own(e->buckets, sizeof *buckets * capacity * 2);
  if (buckets == NULL) flowlua_raise_memory(L);
  e->capacity = capacity;
  e->buckets = buckets;
  e->mask = capacity * 2 - 1;
  memset(buckets, 0xFF, sizeof *buckets * capacity * 2);
  for (uint32_t i = 0; i < e->count; i++) *find_met(e, e->objects[i].identity) = i;
}

bool flowlua_meet(encoder *e, lua_State *L, uint32_t *index) {
  const void *identity = lua_topointer(L, -1);
  if (e->buckets == NULL) {
    for (uint32_t i = 0; i < e->count; i++) {
      if (e->objects[i].identity == identity) {
        *index = i;
        return false;
      }
    }
  } else {
    *index = *find_met(e, identity);
    if (*index != NO_OBJECT) return false;
  }
  if (e->count == e->capacity) grow_objects(e, L);
  if (e->count == 0) {
    // Those that follow are kept in the queue; the first one has its place on the stack.
    lua_pushvalue(L, -1);
    lua_replace(L, e->root);
  } else {
    lua_pushvalue(L, -1);
    lua_rawseti(L, e->queue, e->count);
  }
  e->objects[e->count] = (met_object){identity, e->out->count, 0, e->current};
  if (e->buckets != NULL) *find_met(e, identity) = e->count;
  *index = e->count++;
  return true;
}

/// The bucket of a variable, or the empty one where it would go.
static uint32_t *find_cell(encoder *e, const void *identity) {
  uint32_t mask = e->cell_capacity * 2 - 1;
  uint32_t i = hash_of(identity) & mask;
  while (e->cell_buckets[i] != NO_OBJECT && e->cells[e->cell_buckets[i]] != identity)
    i = (i + 1) & mask;
  return &e->cell_buckets[i];
}

/// Room for one variable more. [-0, +0, m]
static void grow_cells(encoder *e, lua_State *L) {
  e->cells = flowlua_grown(L, e->cells, e->cell_count, &e->cell_capacity, sizeof *e->cells);
  if (e->cell_capacity <= INLINE_OBJECTS) return;
  size_t size = sizeof *e->cell_buckets * e->cell_capacity * 2;
  uint32_t *buckets = flowlua_resize_own(e->cell_buckets, size);
  if (buckets == NULL) flowlua_raise_memory(L);
  e->cell_buckets = buckets;
  memset(buckets, 0xFF, size);
  for (uint32_t i = 0; i < e->cell_count; i++) *find_cell(e, e->cells[i]) = i;
}

bool flowlua_meet_cell(encoder *e, lua_State *L, const void *identity, uint32_t *index) {
  if (e->cell_buckets == NULL) {
    for (uint32_t i = 0; i < e->cell_count; i++) {
      if (e->cells[i] == identity) {
        *index = i;
        return false;
      }
    }
  } else {
    *index = *find_cell(e, identity);
    if (*index != NO_OBJECT) return false;
  }
  if (e->cell_count == e->cell_capacity) grow_cells(e, L);
  e->cells[e->cell_count] = identity;
  if (e->cell_buckets != NULL) *find_cell(e, identity) = e->cell_count;
  *index = e->cell_count++;
  return true;
}

/// How large the list of parts may become: what comes after that isn't listed.
static const size_t most_bytes_of_parts = 256 << 10;

void flowlua_list_part(
    encoder *e, lua_State *L, int32_t kind, const char *name, size_t count, part_start start) {
  if (e->parts->count > most_bytes_of_parts) return;
  flowlua_code_part part = {
      .start = start.offset - e->start,
      .end = e->out->count - e->start,
      .kind = kind,
      .owner = e->current == NO_OBJECT ? FLOWLUA_NO_OBJECT : (int32_t)e->current,
      .child = e->count == start.known ? FLOWLUA_NO_OBJECT : (int32_t)start.known,
      .name = (uint32_t)count};
  flowlua_put(L, e->parts, &part, sizeof part);
  flowlua_put(L, e->parts, name, count);
}

void flowlua_push_met(encoder *e, lua_State *L, uint32_t index) {
  if (index == 0) lua_pushvalue(L, e->root);
  else lua_rawgeti(L, e->queue, index);
}
