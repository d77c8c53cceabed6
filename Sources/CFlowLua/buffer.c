// Bytes that grow.
#include <stdlib.h>

#include "codec.h"

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
