// Values from bytes into a state.
#include <stdlib.h>

#include "transfer.h"

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
  size_t size = (size_t)counts[0] + 2 * (size_t)counts[1];
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
  case TAG_TYPED:
    // Its body is set without metamethods.
    return decode_table(r, L) && flowlua_decode_metatable(r, L);
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
  r->promised -= (size_t)counts.list + 2 * (size_t)counts.entries;
  for (uint32_t i = 1; i <= counts.list; i++) {
    if (!decode_number(r, L) && !flowlua_decode_value(r, L)) return false;
    lua_rawseti(L, table, i);
  }
  for (uint32_t i = 0; i < counts.entries; i++) {
    if (!flowlua_decode_value(r, L) || !is_key(r, L) || !flowlua_decode_value(r, L))
      return false;
    lua_rawset(L, table);
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
  if (!decode_header(r) || !flowlua_decode_value(r, L)) return false;
  if (r->count > 0 && !decode_bodies(r, L)) return false;
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
