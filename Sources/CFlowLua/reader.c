// The bytes that a decoder reads, and the objects that were announced to it.
#include <stdlib.h>

#include "codec.h"

void flowlua_reader_open(
    flowlua_reader *r, flowlua_state *state, const uint8_t *bytes, size_t size, bool is_code) {
  memset(r, 0, offsetof(flowlua_reader, few));
  r->state = state;
  r->bytes = bytes;
  r->size = size;
  r->is_code = is_code;
  r->objects = r->few;
  r->capacity = INLINE_OBJECTS;
}

void flowlua_reader_close(flowlua_reader *r) {
  if (r->objects != r->few) free(r->objects);
  free(r->cells);
  // A value that an error kept from becoming one of Lua.
  flowlua_dispose(r->state, &r->held);
}

bool flowlua_get_number(flowlua_reader *r, uint64_t *number) {
  uint64_t result = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    uint8_t byte;
    if (!get_byte(r, &byte)) return false;
    result |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *number = result;
      return true;
    }
  }
  return decode_fail(r, "a length is too long");
}

bool flowlua_get_bytes(flowlua_reader *r, const char **bytes, size_t *count) {
  uint64_t length;
  if (!flowlua_get_number(r, &length)) return false;
  if (length > remaining(r)) return decode_fail(r, "a length goes beyond the end");
  *bytes = (const char *)r->bytes + r->offset;
  *count = length;
  r->offset += length;
  return true;
}

bool flowlua_announce(
    flowlua_reader *r, lua_State *L, uint32_t list, uint32_t entries, size_t size) {
  // All announced bodies must still fit, so that memory stays in proportion to the bytes.
  if (size > remaining(r) || r->promised > remaining(r) - size)
    return decode_fail(r, "a length goes beyond the end");
  r->promised += size;
  if (r->count == r->capacity) {
    bool is_inline = r->objects == r->few;
    announced *grown =
        flowlua_resize_own(is_inline ? NULL : r->objects, sizeof *grown * (size_t)r->capacity * 2);
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
