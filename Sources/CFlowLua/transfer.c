// Values from a state into bytes, and from bytes into a state.
#include <stdio.h>
#include <stdlib.h>

#include "transfer.h"

// MARK: - Buffers

void flowlua_buffer_free(flowlua_buffer *buffer) {
  free(buffer->bytes);
  *buffer = (flowlua_buffer){NULL, 0, 0};
}

static bool make_space(flowlua_buffer *buffer, size_t count) {
  if (count <= buffer->capacity - buffer->count) return true;
  if (count > SIZE_MAX / 4 - buffer->count) return false;
  size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
  while (capacity - buffer->count < count) capacity *= 2;
  uint8_t *grown = realloc(buffer->bytes, capacity);
  if (grown == NULL) return false;
  buffer->bytes = grown;
  buffer->capacity = capacity;
  return true;
}

bool flowlua_buffer_append(flowlua_buffer *buffer, const void *bytes, size_t count) {
  if (!make_space(buffer, count)) return false;
  if (count > 0) memcpy(buffer->bytes + buffer->count, bytes, count);
  buffer->count += count;
  return true;
}

/// [-0, +0, m]
static inline uint8_t *space(lua_State *L, flowlua_buffer *out, size_t count) {
  if (count > out->capacity - out->count && !make_space(out, count)) flowlua_raise_memory(L);
  return out->bytes + out->count;
}

void flowlua_put(lua_State *L, flowlua_buffer *out, const void *bytes, size_t count) {
  memcpy(space(L, out, count + 1), bytes, count);
  out->count += count;
}

void flowlua_put_byte(lua_State *L, flowlua_buffer *out, uint8_t byte) {
  *space(L, out, 1) = byte;
  out->count += 1;
}

static size_t write_number(uint8_t *at, uint64_t number) {
  size_t count = 0;
  for (; number >= 0x80; number >>= 7) at[count++] = (uint8_t)(number | 0x80);
  at[count++] = (uint8_t)number;
  return count;
}

void flowlua_put_number(lua_State *L, flowlua_buffer *out, uint64_t number) {
  out->count += write_number(space(L, out, 10), number);
}

// MARK: - Objects that were met

void flowlua_encoder_open(
    encoder *e, flowlua_host *host, flowlua_buffer *out, flowlua_refusal *refusal) {
  memset(e, 0, offsetof(encoder, few));
  e->host = host;
  e->out = out;
  e->refusal = refusal;
  e->start = out->count;
  e->objects = e->few;
  e->capacity = INLINE_OBJECTS;
  e->current = NO_OBJECT;
}

void flowlua_encoder_close(encoder *e) {
  if (e->objects != e->few) free(e->objects);
  free(e->buckets);
  free(e->cells);
  free(e->upvalues);
}

static uint32_t bucket_of(const encoder *e, const void *identity) {
  return (uint32_t)(((uintptr_t)identity >> 4) * 0x9E3779B97F4A7C15u >> 32) & e->mask;
}

/// The bucket of an object, or the empty one where it would go.
static uint32_t *find_met(encoder *e, const void *identity) {
  uint32_t i = bucket_of(e, identity);
  while (e->buckets[i] != NO_OBJECT && e->objects[e->buckets[i]].identity != identity)
    i = (i + 1) & e->mask;
  return &e->buckets[i];
}

/// Room for one object more. [-0, +0, m]
static void grow_objects(encoder *e, lua_State *L) {
  uint32_t capacity = e->capacity * 2;
  if (capacity > UINT32_MAX / 8) flowlua_raise_memory(L);
  bool is_inline = e->objects == e->few;
  met_object *grown = realloc(is_inline ? NULL : e->objects, sizeof *grown * capacity);
  if (grown == NULL) flowlua_raise_memory(L);
  if (is_inline) memcpy(grown, e->few, sizeof e->few);
  e->objects = grown;
  uint32_t *buckets = realloc(e->buckets, sizeof *buckets * capacity * 2);
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

void flowlua_push_met(encoder *e, lua_State *L, uint32_t index) {
  if (index == 0) lua_pushvalue(L, e->root);
  else lua_rawgeti(L, e->queue, index);
}

// MARK: - Refusals

/// Puts a text in front of the path; what doesn't fit is cut at the front.
static void prepend(flowlua_refusal *refusal, const char *text) {
  size_t length = strlen(text), present = strlen(refusal->path);
  const char *cut = "…";
  if (strncmp(refusal->path, cut, strlen(cut)) == 0) return;
  // There is always room for the mark.
  if (length + strlen(cut) + present + 1 > sizeof refusal->path) {
    text = cut;
    length = strlen(cut);
  }
  memmove(refusal->path + length, refusal->path, present + 1);
  memcpy(refusal->path, text, length);
}

static bool is_name(const char *bytes, size_t count) {
  if (count == 0 || (bytes[0] >= '0' && bytes[0] <= '9')) return false;
  for (size_t i = 0; i < count; i++) {
    char c = bytes[i];
    bool fits = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
        || (c >= '0' && c <= '9');
    if (!fits) return false;
  }
  return true;
}

/// The key at an index as a step of a path: `.name`, `[3]`, `["a b"]`. [-0, +0, -]
static void prepend_key(flowlua_refusal *refusal, lua_State *L, int key) {
  char step[72];
  size_t count = 0;
  const char *bytes = flowlua_bytes(L, key, &count);
  if (bytes != NULL) {
    int shown = count > 48 ? 48 : (int)count;
    bool plain = is_name(bytes, count);
    snprintf(step, sizeof step, plain ? ".%.*s%s" : "[\"%.*s%s\"]", shown, bytes,
        count > 48 ? "…" : "");
  } else if (lua_isinteger(L, key)) {
    snprintf(step, sizeof step, "[%lld]", (long long)lua_tointegerx(L, key, NULL));
  } else if (lua_type(L, key) == LUA_TNUMBER) {
    snprintf(step, sizeof step, "[%.14g]", lua_tonumberx(L, key, NULL));
  } else if (lua_type(L, key) == LUA_TBOOLEAN) {
    snprintf(step, sizeof step, "[%s]", lua_toboolean(L, key) ? "true" : "false");
  } else {
    snprintf(step, sizeof step, "[%s]", lua_typename(L, lua_type(L, key)));
  }
  prepend(refusal, step);
}

/// The step that leads from a table to the value on top: found by a search, as only messages need it.
/// [-0, +0, v]
static void prepend_step(encoder *e, lua_State *L, uint32_t table) {
  int value = lua_gettop(L);
  flowlua_push_met(e, L, table);
  lua_pushnil(L);
  while (lua_next(L, value + 1)) {
    if (lua_rawequal(L, -1, value)) {
      prepend_key(e->refusal, L, value + 2);
      lua_settop(L, value);
      return;
    }
    if (lua_rawequal(L, -2, value)) {
      e->refusal->is_key = true;
      lua_settop(L, value);
      return;
    }
    lua_settop(L, -2);
  }
  if (lua_getmetatable(L, value + 1) && lua_rawequal(L, -1, value))
    prepend(e->refusal, "(its metatable)");
  lua_settop(L, value);
}

bool flowlua_refuse(encoder *e, lua_State *L) {
  flowlua_refusal *refusal = e->refusal;
  e->is_refused = true;
  *refusal = (flowlua_refusal){.type = lua_type(L, -1)};
  flowlua_require_room(L, 8, "a value");
  size_t length = 0;
  const char *name = flowlua_type_name(e->host, L, -1, &length);
  if (strncmp(name, "FILE*", 5) == 0) name = "file", length = 4;
  if (refusal->type == LUA_TTHREAD) name = "coroutine", length = 9;
  if (length >= sizeof refusal->type_name) length = sizeof refusal->type_name - 1;
  memcpy(refusal->type_name, name, length);
  size_t offset = e->out->count;
  // From the value up to the root, or to the function that it is an upvalue of.
  lua_pushvalue(L, -1);
  for (uint32_t i = e->current; i != NO_OBJECT; i = e->objects[i].parent) {
    flowlua_push_met(e, L, i);
    if (lua_type(L, -1) == LUA_TFUNCTION) {
      flowlua_name_upvalue(e, L, i, offset);
      lua_settop(L, -2);
      break;
    }
    // The object goes below what it names, and is in turn what the next one names.
    lua_insert(L, -2);
    prepend_step(e, L, i);
    lua_settop(L, -2);
    offset = e->objects[i].named_at;
  }
  lua_settop(L, -2);
  return false;
}

// MARK: - Writing

static inline void put_bits(lua_State *L, flowlua_buffer *out, uint8_t tag, const void *bits) {
  uint8_t *at = space(L, out, 9);
  at[0] = tag;
  memcpy(at + 1, bits, 8);
  out->count += 9;
}

static void put_string(lua_State *L, flowlua_buffer *out, const char *bytes, size_t count) {
  uint8_t *at = space(L, out, count + 11);
  *at = TAG_STRING;
  size_t used = 1 + write_number(at + 1, count);
  memcpy(at + used, bytes, count);
  out->count += used + count;
}

static bool encode_table(encoder *e, lua_State *L) {
  uint32_t index;
  if (e->is_code && flowlua_encode_name(e, L)) return true;
  if (flowlua_meet(e, L, &index)) {
    uint8_t *at = space(L, e->out, 9);
    memset(at, 0, 9);
    at[0] = TAG_TABLE;
    e->out->count += 9;
  } else {
    flowlua_put_byte(L, e->out, TAG_KNOWN);
    flowlua_put_number(L, e->out, index);
  }
  return true;
}

static bool encode_userdata(encoder *e, lua_State *L) {
  flowlua_host *host = e->host;
  if (e->is_code && flowlua_encode_name(e, L)) return true;
  void *object = host->secret_type == 0 ? NULL : flowlua_object(host, L, -1, host->secret_type);
  flowlua_value value = {0};
  if (object == NULL || !host->callbacks.unwrap(host, object, &value))
    return flowlua_refuse(e, L);
  flowlua_put_byte(L, e->out, TAG_SECRET);
  if (value.kind == FLOWLUA_STRING) {
    // Without making it a string of Lua's.
    bool fits = make_space(e->out, (size_t)value.integer + 11);
    if (fits) put_string(L, e->out, value.pointer, (size_t)value.integer);
    flowlua_dispose(host, &value);
    if (!fits) flowlua_raise_memory(L);
    return true;
  }
  flowlua_require_room(L, 8, "a value");
  flowlua_push_plain(L, host, &value);
  bool done = flowlua_encode_top(e, L);
  lua_settop(L, -2);
  return done;
}

bool flowlua_encode_top(encoder *e, lua_State *L) {
  flowlua_buffer *out = e->out;
  switch (lua_type(L, -1)) {
  case LUA_TNIL: flowlua_put_byte(L, out, TAG_NIL); return true;
  case LUA_TBOOLEAN:
    flowlua_put_byte(L, out, lua_toboolean(L, -1) ? TAG_TRUE : TAG_FALSE);
    return true;
  case LUA_TNUMBER:
    if (lua_isinteger(L, -1)) {
      lua_Integer integer = lua_tointegerx(L, -1, NULL);
      put_bits(L, out, TAG_INTEGER, &integer);
    } else {
      lua_Number number = lua_tonumberx(L, -1, NULL);
      put_bits(L, out, TAG_FLOAT, &number);
    }
    return true;
  case LUA_TSTRING: {
    size_t count;
    const char *bytes = lua_tolstring(L, -1, &count);
    put_string(L, out, bytes, count);
    return true;
  }
  case LUA_TTABLE: return encode_table(e, L);
  case LUA_TFUNCTION:
    return e->is_code ? flowlua_encode_function(e, L, true) : flowlua_refuse(e, L);
  case LUA_TUSERDATA: return encode_userdata(e, L);
  default: return flowlua_refuse(e, L);
  }
}

/// The values of 1, 2, … up to the first hole; -1 when one is refused. They are read a pile at a time,
/// as most of the time goes into calls. [-0, +0, m]
static int64_t encode_list(encoder *e, lua_State *L, int table) {
  lua_Integer length = (lua_Integer)lua_rawlen(L, table);
  lua_Integer done = 0;
  if (length > UINT32_MAX) flowlua_raise_memory(L);
  while (done < length) {
    int count = length - done > FLOWLUA_PILE ? FLOWLUA_PILE : (int)(length - done);
    int top = lua_gettop(L);
    bool only_numbers = true;
    for (int i = 1; i <= count; i++) {
      int type = lua_rawgeti(L, table, done + i);
      if (type != LUA_TNUMBER) {
        only_numbers = false;
        if (type == LUA_TNIL) {
          length = done + i - 1;
          count = i - 1;
        }
      }
    }
    if (only_numbers) {
      uint8_t *at = space(L, e->out, (size_t)count * 9);
      for (int i = 1; i <= count; i++, at += 9) {
        if (lua_isinteger(L, top + i)) {
          lua_Integer integer = lua_tointegerx(L, top + i, NULL);
          at[0] = TAG_INTEGER;
          memcpy(at + 1, &integer, 8);
        } else {
          lua_Number number = lua_tonumberx(L, top + i, NULL);
          at[0] = TAG_FLOAT;
          memcpy(at + 1, &number, 8);
        }
      }
      e->out->count += (size_t)count * 9;
    } else {
      for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, top + i);
        if (!flowlua_encode_top(e, L)) return -1;
        lua_settop(L, -2);
      }
    }
    lua_settop(L, top);
    done += count;
  }
  return done;
}

static int64_t count_keys(lua_State *L, int table) {
  int64_t count = 0;
  lua_pushnil(L);
  while (lua_next(L, table)) {
    count += 1;
    lua_settop(L, -2);
  }
  return count;
}

static bool is_listed(lua_State *L, int key, int64_t listed) {
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

static bool is_sortable(lua_State *L, int key) {
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
static int64_t push_sorted_keys(lua_State *L, int table, int64_t listed) {
  int keys = lua_gettop(L) + 1, other = keys + 1;
  int64_t count = 0, sortable = 0;
  lua_createtable(L, 0, 0);
  lua_createtable(L, 0, 0);
  for (int pass = 0; pass < 2; pass++) {
    lua_pushnil(L);
    while (lua_next(L, table)) {
      lua_settop(L, -2);
      if (is_listed(L, -1, listed) || is_sortable(L, -1) != (pass == 0)) continue;
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

/// Writes key and value, which are on top. [-0, +0, m]
static bool encode_entry(encoder *e, lua_State *L) {
  lua_pushvalue(L, -2);
  if (!flowlua_encode_top(e, L)) return false;
  lua_settop(L, -2);
  return flowlua_encode_top(e, L);
}

static int64_t encode_entries(encoder *e, lua_State *L, int table, int64_t listed) {
  int64_t count = 0;
  if (listed > 0 && count_keys(L, table) == listed) return 0;
  if (e->is_code) {
    int64_t total = push_sorted_keys(L, table, listed);
    int keys = lua_gettop(L);
    for (int64_t i = 0; i < total; i++) {
      lua_rawgeti(L, keys, i);
      lua_pushvalue(L, -1);
      lua_rawget(L, table);
      if (!encode_entry(e, L)) return -1;
      lua_settop(L, keys);
    }
    lua_settop(L, keys - 1);
    return total;
  }
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (!is_listed(L, -2, listed)) {
      if (!encode_entry(e, L)) return -1;
      if (++count > UINT32_MAX) flowlua_raise_memory(L);
    }
    lua_settop(L, -2);
  }
  return count;
}

/// Writes the table on top: list values, entries, and in code its metatable. [-0, +0, m]
static bool encode_body(encoder *e, lua_State *L) {
  int table = lua_gettop(L);
  int64_t listed, entries = 0;
  size_t numbers;
  const list_slot *slots = flowlua_list_slots(e, L, table, &numbers);
  if (slots != NULL) {
    flowlua_write_slots(space(L, e->out, numbers * 9), slots, numbers);
    e->out->count += numbers * 9;
    listed = (int64_t)numbers;
  } else {
    listed = encode_list(e, L, table);
    if (listed < 0) return false;
    entries = encode_entries(e, L, table, listed);
    if (entries < 0) return false;
  }
  uint32_t counts[2] = {(uint32_t)listed, (uint32_t)entries};
  memcpy(e->out->bytes + e->objects[e->current].named_at + 1, counts, sizeof counts);
  if (!e->is_code) return true;
  if (!lua_getmetatable(L, table)) lua_pushnil(L);
  return flowlua_encode_top(e, L);
}

bool flowlua_encode_bodies(encoder *e, lua_State *L) {
  int top = lua_gettop(L);
  for (e->current = 0; e->current < e->count; e->current++) {
    e->objects[e->current].body = e->out->count;
    flowlua_push_met(e, L, e->current);
    bool done = lua_type(L, -1) == LUA_TTABLE ? encode_body(e, L) : flowlua_encode_upvalues(e, L);
    if (!done) return false;
    lua_settop(L, top);
  }
  return true;
}

/// The value at 1. [-1, +0, m]
static int encode(lua_State *L) {
  encoder *e = lua_touserdata(L, 2);
  lua_settop(L, 1);
  flowlua_require_room(L, FLOWLUA_PILE + 20, "a value");
  lua_createtable(L, 0, 0);
  e->root = 1;
  e->queue = 2;
  lua_pushvalue(L, 1);
  if (flowlua_encode_top(e, L)) {
    lua_settop(L, 2);
    flowlua_encode_bodies(e, L);
  }
  return 0;
}

const uint8_t flowlua_value_header[3] = {'F', 'P', 2};

void flowlua_set_secret_type(flowlua_host *host, int32_t type) { host->secret_type = type; }

/// Writes what is neither table nor object: nothing of that can raise. false for anything else, also
/// when memory ran out.
static bool encode_scalar(lua_State *L, int index, flowlua_buffer *out) {
  size_t count = 0;
  const char *bytes = NULL;
  int type = lua_type(L, index);
  if (type == LUA_TSTRING) bytes = lua_tolstring(L, index, &count);
  else if (type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TNIL) return false;
  if (!make_space(out, sizeof flowlua_value_header + 11 + count)) return false;
  memcpy(out->bytes + out->count, flowlua_value_header, sizeof flowlua_value_header);
  out->count += sizeof flowlua_value_header;
  if (bytes != NULL) {
    put_string(L, out, bytes, count);
  } else if (type == LUA_TNUMBER && lua_isinteger(L, index)) {
    lua_Integer integer = lua_tointegerx(L, index, NULL);
    put_bits(L, out, TAG_INTEGER, &integer);
  } else if (type == LUA_TNUMBER) {
    lua_Number number = lua_tonumberx(L, index, NULL);
    put_bits(L, out, TAG_FLOAT, &number);
  } else {
    bool is_true = lua_toboolean(L, index);
    flowlua_put_byte(
        L, out, type == LUA_TNIL ? TAG_NIL : is_true ? TAG_TRUE : TAG_FALSE);
  }
  return true;
}

int32_t flowlua_encode(
    flowlua_host *host, lua_State *L, int32_t index, flowlua_buffer *buffer,
    flowlua_refusal *refusal) {
  if (encode_scalar(L, index, buffer)) return LUA_OK;
  index = lua_absindex(L, index);
  int32_t room = flowlua_make_room(host, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  size_t start = buffer->count;
  if (!flowlua_buffer_append(buffer, flowlua_value_header, sizeof flowlua_value_header)) return FLOWLUA_NO_MEMORY;
  encoder e;
  flowlua_encoder_open(&e, host, buffer, refusal);
  lua_pushcfunction(L, encode);
  lua_pushvalue(L, index);
  lua_pushlightuserdata(L, &e);
  int32_t status = lua_pcall(L, 2, 0, 0);
  flowlua_encoder_close(&e);
  if (status == LUA_OK && e.is_refused) status = FLOWLUA_REFUSED;
  if (status != LUA_OK) buffer->count = start;
  return status;
}

// MARK: - Reading

bool flowlua_decode_fail(flowlua_reader *r, const char *problem) {
  if (r->problem == NULL) r->problem = problem;
  return false;
}

static inline size_t remaining(const flowlua_reader *r) { return r->size - r->offset; }

static bool ends_early(flowlua_reader *r) { return flowlua_decode_fail(r, "it ends too early"); }

bool flowlua_get_byte(flowlua_reader *r, uint8_t *byte) {
  if (remaining(r) == 0) return ends_early(r);
  *byte = r->bytes[r->offset++];
  return true;
}

bool flowlua_get_number(flowlua_reader *r, uint64_t *number) {
  uint64_t result = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    uint8_t byte;
    if (!flowlua_get_byte(r, &byte)) return false;
    result |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *number = result;
      return true;
    }
  }
  return flowlua_decode_fail(r, "a length is too long");
}

bool flowlua_get_bytes(flowlua_reader *r, const char **bytes, size_t *count) {
  uint64_t length;
  if (!flowlua_get_number(r, &length)) return false;
  if (length > remaining(r)) return flowlua_decode_fail(r, "a length goes beyond the end");
  *bytes = (const char *)r->bytes + r->offset;
  *count = length;
  r->offset += length;
  return true;
}

bool flowlua_announce(
    flowlua_reader *r, lua_State *L, uint32_t list, uint32_t entries, size_t size) {
  // All announced bodies must still fit, so that memory stays in proportion to the bytes.
  if (size > remaining(r) || r->promised > remaining(r) - size)
    return flowlua_decode_fail(r, "a length goes beyond the end");
  r->promised += size;
  if (r->count == r->capacity) {
    bool is_inline = r->objects == r->few;
    announced *grown =
        realloc(is_inline ? NULL : r->objects, sizeof *grown * (size_t)r->capacity * 2);
    if (grown == NULL) flowlua_raise_memory(L);
    if (is_inline) memcpy(grown, r->few, sizeof r->few);
    r->objects = grown;
    r->capacity *= 2;
  }
  r->objects[r->count] = (announced){list, entries};
  return true;
}

void flowlua_keep_announced(flowlua_reader *r, lua_State *L) {
  lua_pushvalue(L, -1);
  if (r->count == 0) {
    lua_replace(L, r->first);
  } else {
    if (r->count == 1) {
      lua_createtable(L, 4, 0);
      lua_replace(L, r->others);
    }
    lua_rawseti(L, r->others, r->count);
  }
  r->count += 1;
}

void flowlua_push_announced(flowlua_reader *r, lua_State *L, uint32_t index) {
  if (index == 0) lua_pushvalue(L, r->first);
  else lua_rawgeti(L, r->others, index);
}

static bool decode_table(flowlua_reader *r, lua_State *L) {
  uint32_t counts[2];
  if (remaining(r) < sizeof counts) return ends_early(r);
  memcpy(counts, r->bytes + r->offset, sizeof counts);
  r->offset += sizeof counts;
  size_t size = (size_t)counts[0] + 2 * (size_t)counts[1] + (r->is_code ? 1 : 0);
  if (!flowlua_announce(r, L, counts[0], counts[1], size)) return false;
  if (counts[0] > INT32_MAX || counts[1] > INT32_MAX) flowlua_raise_memory(L);
  lua_createtable(L, (int)counts[0], (int)counts[1]);
  flowlua_keep_announced(r, L);
  return true;
}

static bool decode_secret(flowlua_reader *r, lua_State *L) {
  flowlua_host *host = r->host;
  if (remaining(r) == 0) return ends_early(r);
  uint8_t next = r->bytes[r->offset];
  if (next == TAG_NIL || next == TAG_SECRET)
    return flowlua_decode_fail(r, "a secret has nothing in it");
  if (host->secret_type == 0) return flowlua_decode_fail(r, "this state has no secrets");
  if (!flowlua_decode_value(r, L)) return false;
  flowlua_value value = {0};
  size_t count;
  const char *bytes = flowlua_bytes(L, -1, &count);
  if (bytes != NULL) {
    // The string on the stack keeps its bytes alive.
    value = (flowlua_value){.kind = FLOWLUA_STRING, .integer = (int64_t)count, .pointer = bytes};
  } else if (!flowlua_read_scalar(L, -1, &value)) {
    lua_pushvalue(L, -1);
    value.kind = FLOWLUA_REFERENCE;
    value.integer = lua_type(L, -1);
    value.reference = flowlua_reference(host, L);
    if (value.reference == 0) flowlua_raise_memory(L);
  }
  if (!host->callbacks.wrap(host, &value))
    return flowlua_decode_fail(r, "a secret can't be made of what is in it");
  r->held = value;
  flowlua_require_object(L, host, &r->held);
  lua_replace(L, -2);
  return true;
}

/// Pushes a number, most of what large lists have, if one comes next. [-0, +(0|1), -]
static inline bool decode_number(flowlua_reader *r, lua_State *L) {
  if (remaining(r) < 9) return false;
  const uint8_t *at = r->bytes + r->offset;
  if (*at == TAG_INTEGER) {
    lua_Integer integer;
    memcpy(&integer, at + 1, 8);
    lua_pushinteger(L, integer);
  } else if (*at == TAG_FLOAT) {
    lua_Number number;
    memcpy(&number, at + 1, 8);
    lua_pushnumber(L, number);
  } else {
    return false;
  }
  r->offset += 9;
  return true;
}

bool flowlua_decode_value(flowlua_reader *r, lua_State *L) {
  uint8_t tag;
  if (decode_number(r, L)) return true;
  if (!flowlua_get_byte(r, &tag)) return false;
  switch (tag) {
  case TAG_NIL: lua_pushnil(L); return true;
  case TAG_FALSE: lua_pushboolean(L, 0); return true;
  case TAG_TRUE: lua_pushboolean(L, 1); return true;
  case TAG_INTEGER:
  case TAG_FLOAT: return ends_early(r);
  case TAG_STRING: {
    const char *bytes;
    size_t count;
    if (!flowlua_get_bytes(r, &bytes, &count)) return false;
    lua_pushlstring(L, bytes, count);
    return true;
  }
  case TAG_KNOWN: {
    uint64_t index;
    if (!flowlua_get_number(r, &index)) return false;
    if (index >= r->count) return flowlua_decode_fail(r, "a table is named that isn't there");
    flowlua_push_announced(r, L, (uint32_t)index);
    return true;
  }
  case TAG_TABLE: return decode_table(r, L);
  case TAG_SECRET: return decode_secret(r, L);
  default:
    if (r->is_code && tag == TAG_FUNCTION) return flowlua_decode_function(r, L);
    if (r->is_code && tag <= TAG_GLOBALS) return flowlua_decode_named(r, L, tag);
    break;
  }
  r->offset -= 1;
  return flowlua_decode_fail(r, "a tag isn't known");
}

static bool is_key(flowlua_reader *r, lua_State *L) {
  if (lua_type(L, -1) == LUA_TNIL) return flowlua_decode_fail(r, "a key is nil");
  if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1)) {
    lua_Number number = lua_tonumberx(L, -1, NULL);
    if (number != number) return flowlua_decode_fail(r, "a key is not a number");
  }
  return true;
}

/// Fills the table on top. [-0, +0, m]
static bool decode_body(flowlua_reader *r, lua_State *L, announced counts) {
  int table = lua_gettop(L);
  r->promised -= (size_t)counts.list + 2 * (size_t)counts.entries + (r->is_code ? 1 : 0);
  for (uint32_t i = 1; i <= counts.list; i++) {
    if (!decode_number(r, L) && !flowlua_decode_value(r, L)) return false;
    lua_rawseti(L, table, i);
  }
  for (uint32_t i = 0; i < counts.entries; i++) {
    if (!flowlua_decode_value(r, L) || !is_key(r, L) || !flowlua_decode_value(r, L))
      return false;
    lua_rawset(L, table);
  }
  if (!r->is_code) return true;
  if (!flowlua_decode_value(r, L)) return false;
  if (lua_type(L, -1) == LUA_TTABLE) {
    lua_pushvalue(L, table);
    lua_insert(L, -2);
    lua_rawset(L, r->metatables);
  } else if (lua_type(L, -1) != LUA_TNIL) {
    return flowlua_decode_fail(r, "a metatable is no table");
  }
  return true;
}

static bool decode_bodies(flowlua_reader *r, lua_State *L) {
  int top = lua_gettop(L);
  for (uint32_t i = 0; i < r->count; i++) {
    flowlua_push_announced(r, L, i);
    bool done = lua_type(L, -1) == LUA_TTABLE ? decode_body(r, L, r->objects[i])
                                              : flowlua_decode_upvalues(r, L, i);
    if (!done) return false;
    lua_settop(L, top);
  }
  return true;
}

void flowlua_reader_open(
    flowlua_reader *r, flowlua_host *host, const uint8_t *bytes, size_t size, bool is_code) {
  memset(r, 0, offsetof(flowlua_reader, few));
  r->host = host;
  r->bytes = bytes;
  r->size = size;
  r->is_code = is_code;
  r->objects = r->few;
  r->capacity = INLINE_OBJECTS;
}

void flowlua_reader_close(flowlua_reader *r) {
  if (r->objects != r->few) free(r->objects);
  free(r->cells);
  // What an error kept from becoming a value.
  flowlua_dispose(r->host, &r->held);
}

static bool decode_header(flowlua_reader *r) {
  const uint8_t *header = r->is_code ? flowlua_code_header : flowlua_value_header;
  if (remaining(r) < 3) return ends_early(r);
  const uint8_t *bytes = r->bytes + r->offset;
  if (memcmp(bytes, header, 2) != 0)
    return flowlua_decode_fail(r, "these bytes aren't an encoded value");
  if (bytes[2] != header[2])
    return flowlua_decode_fail(r, "this version of the encoding isn't known");
  r->offset += 3;
  return true;
}

bool flowlua_decode_graph(flowlua_reader *r, lua_State *L) {
  int top = lua_gettop(L);
  flowlua_require_room(L, LUA_MINSTACK, "a value");
  lua_settop(L, top + 2);
  r->first = top + 1;
  r->others = top + 2;
  r->count = 0;
  r->promised = 0;
  if (r->is_code) {
    lua_createtable(L, 0, 0);
    r->metatables = top + 3;
  }
  if (!decode_header(r) || !flowlua_decode_value(r, L)) return false;
  if (r->count > 0) {
    if (!decode_bodies(r, L)) return false;
    if (r->is_code) flowlua_set_metatables(r, L);
  }
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return true;
}

static int decode(lua_State *L) {
  flowlua_reader *r = lua_touserdata(L, 1);
  int count = (int)lua_tointegerx(L, 2, NULL);
  lua_settop(L, 0);
  flowlua_require_room(L, count, "values");
  for (int i = 0; i < count; i++) {
    if (!flowlua_decode_graph(r, L)) return 0;
  }
  return count;
}

int32_t flowlua_decode_protected(flowlua_reader *r, lua_State *L, int32_t count) {
  int32_t status = flowlua_make_room(r->host, L, LUA_MINSTACK);
  if (status != LUA_OK) return status;
  lua_pushcfunction(L, decode);
  lua_pushlightuserdata(L, r);
  lua_pushinteger(L, count);
  status = lua_pcall(L, 2, LUA_MULTRET, 0);
  flowlua_reader_close(r);
  return status == LUA_OK && r->problem != NULL ? FLOWLUA_MALFORMED : status;
}

/// Pushes a value that needs no memory: no string, no table. [-0, +(0|1), -]
static bool decode_scalar(flowlua_host *host, lua_State *L, flowlua_reader *r) {
  size_t start = r->offset;
  if (decode_header(r) && remaining(r) > 0 && r->bytes[r->offset] <= TAG_FLOAT
      && flowlua_make_room(host, L, 1) == LUA_OK && flowlua_decode_value(r, L))
    return true;
  r->offset = start;
  r->problem = NULL;
  return false;
}

int32_t flowlua_decode(
    flowlua_host *host, lua_State *L, const uint8_t *bytes, size_t size, int32_t count,
    size_t *used, const char **problem) {
  flowlua_reader r;
  flowlua_reader_open(&r, host, bytes, size, false);
  int32_t status = LUA_OK;
  if (count != 1 || !decode_scalar(host, L, &r)) status = flowlua_decode_protected(&r, L, count);
  *used = r.offset;
  *problem = r.problem;
  return status;
}
