// Memory from Lua's allocator, for the JSON reader and writer.
#ifndef CFLOWLUA_JSON_MEMORY_H
#define CFLOWLUA_JSON_MEMORY_H

#include "internal.h"

/// Memory from Lua's allocator, which counts it towards the limit of the state. The collector doesn't know
/// it: the caller of the protected call frees it.
typedef struct json_memory {
  char *bytes;
  size_t count;
  size_t capacity;
  bool never_raises;  // lack of memory is NULL then
} json_memory;

// json_memory.c
/// Sees to room for so many bytes more; the first are 1,024 at least. Where it never raises, false when there
/// is none. [-0, +0, m]
bool flowlua_json_grow(lua_State *L, json_memory *memory, size_t count);
void flowlua_json_free(lua_State *L, json_memory *memory);

/// Where so many bytes go; NULL only where it never raises. [-0, +0, m]
static inline char *json_space(lua_State *L, json_memory *memory, size_t count) {
  if (__builtin_expect(count > memory->capacity - memory->count, false)
      && !flowlua_json_grow(L, memory, count))
    return NULL;
  return memory->bytes + memory->count;
}

#endif
