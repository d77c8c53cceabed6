// The values that an encoder has met so far.
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

// Bytes that grow.

void flowlua_buffer_free(flowlua_buffer *buffer) {
  free(buffer->bytes);
  *buffer = (flowlua_buffer){0};
}

bool flowlua_buffer_reserve(flowlua_buffer *buffer, size_t count) {
  if (count <= buffer->capacity - buffer->count) return true;
  if (count > SIZE_MAX / 4 - buffer->count) return false;
  size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
  while (capacity - buffer->count < count) capacity *= 2;
  uint8_t *grown = flowlua_resize_own(buffer->bytes, capacity);
  if (grown == NULL) return false;
  buffer->bytes = grown;
  buffer->capacity = capacity;
  return true;
}

bool flowlua_buffer_append(flowlua_buffer *buffer, const void *bytes, size_t count) {
  if (!flowlua_buffer_reserve(buffer, count)) return false;
  if (count > 0) memcpy(buffer->bytes + buffer->count, bytes, count);
  buffer->count += count;
  return true;
}

void flowlua_put(lua_State *L, flowlua_buffer *out, const void *bytes, size_t count) {
  memcpy(space(L, out, count + 1), bytes, count);
  out->count += count;
}

void flowlua_put_number(lua_State *L, flowlua_buffer *out, uint64_t number) {
  out->count += write_number(space(L, out, 10), number);
}

/// Room for one element more, doubled by malloc. [-0, +0, m]
void *flowlua_grown(lua_State *L, void *list, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return list;
  uint32_t larger = *capacity == 0 ? 8 : *capacity * 2;
  void *result = larger > UINT32_MAX / 64 ? NULL : flowlua_resize_own(list, size * larger);
  if (result == NULL) flowlua_raise_memory(L);
  *capacity = larger;
  return result;
}

// The keys of a table in an order of their own.

bool flowlua_is_listed(lua_State *L, int key, int64_t listed) {
  if (!lua_isinteger(L, key)) return false;
  lua_Integer integer = lua_tointegerx(L, key, NULL);
  return integer >= 1 && integer <= listed;
}

/// The keys that can be sorted, smallest first, in code: the same content gives the same bytes then, in
/// whatever order the table has it.
static int compare_keys(lua_State *L, int a, int b) {
  int type_a = lua_type(L, a), type_b = lua_type(L, b);
  if (type_a != type_b) return type_a < type_b ? -1 : 1;
  if (type_a == LUA_TSTRING) {
    size_t count_a, count_b;
    const char *bytes_a = lua_tolstring(L, a, &count_a);
    const char *bytes_b = lua_tolstring(L, b, &count_b);
    int order = memcmp(bytes_a, bytes_b, count_a < count_b ? count_a : count_b);
    return order != 0 ? order : count_a < count_b ? -1 : count_a > count_b;
  }
  if (type_a == LUA_TNUMBER) return lua_compare(L, a, b, LUA_OPLT) ? -1 : 1;
  if (type_a == LUA_TBOOLEAN) return lua_toboolean(L, a) - lua_toboolean(L, b);
  return 0;
}

bool flowlua_is_sortable(lua_State *L, int key) {
  int type = lua_type(L, key);
  return type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

/// Merges two sorted runs of the list at `from` into that at `to`. [-0, +0, m]
static void merge(lua_State *L, int from, int to, int64_t start, int64_t middle, int64_t end) {
  int64_t a = start, b = middle;
  for (int64_t i = start; i < end; i++) {
    bool takes_a = b >= end;
    if (a < middle && b < end) {
      lua_rawgeti(L, from, a);
      lua_rawgeti(L, from, b);
      takes_a = compare_keys(L, -2, -1) <= 0;
      lua_settop(L, -3);
    }
    lua_rawgeti(L, from, takes_a ? a++ : b++);
    lua_rawseti(L, to, i);
  }
}

/// The keys of a table but 1 to `listed`, as a list: those that can be sorted are, before the others.
/// [-0, +1, m]
int64_t flowlua_push_sorted_keys(lua_State *L, int table, int64_t listed) {
  int keys = lua_gettop(L) + 1, other = keys + 1;
  int64_t count = 0, sortable = 0;
  lua_createtable(L, 0, 0);
  lua_createtable(L, 0, 0);
  for (int pass = 0; pass < 2; pass++) {
    lua_pushnil(L);
    while (lua_next(L, table)) {
      lua_settop(L, -2);
      if (flowlua_is_listed(L, -1, listed) || flowlua_is_sortable(L, -1) != (pass == 0)) continue;
      lua_pushvalue(L, -1);
      lua_rawseti(L, keys, count++);
    }
    if (pass == 0) sortable = count;
  }
  for (int64_t width = 1; width < sortable; width *= 2) {
    for (int64_t start = 0; start < sortable; start += 2 * width) {
      int64_t middle = start + width < sortable ? start + width : sortable;
      int64_t end = start + 2 * width < sortable ? start + 2 * width : sortable;
      merge(L, keys, other, start, middle, end);
    }
    // Those that can't be sorted stay where they are, in the list that is at last the answer.
    for (int64_t i = 0; i < sortable; i++) {
      lua_rawgeti(L, other, i);
      lua_rawseti(L, keys, i);
    }
  }
  lua_settop(L, keys);
  return count;
}
