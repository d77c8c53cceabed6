// Memory from Lua's allocator that grows.
#include "json_memory.h"

bool flowlua_json_grow(lua_State *L, json_memory *memory, size_t count) {
  if (count > SIZE_MAX / 4 - memory->count) {
    if (memory->never_raises) return false;
    flowlua_raise_memory(L);
  }
  size_t capacity = memory->capacity < 1024 ? 1024 : memory->capacity;
  while (capacity - memory->count < count) capacity *= 2;
  void *context;
  lua_Alloc allocate = lua_getallocf(L, &context);
  char *grown = allocate(context, memory->bytes, memory->capacity, capacity);
  if (grown == NULL && memory->never_raises) return false;
  if (grown == NULL) {
    // As Lua does it, once more after a collection.
    lua_gc(L, LUA_GCCOLLECT);
    grown = allocate(context, memory->bytes, memory->capacity, capacity);
  }
  if (grown == NULL) flowlua_raise_memory(L);
  memory->bytes = grown;
  memory->capacity = capacity;
  return true;
}

void flowlua_json_free(lua_State *L, json_memory *memory) {
  void *context;
  lua_Alloc allocate = lua_getallocf(L, &context);
  if (memory->bytes != NULL) allocate(context, memory->bytes, memory->capacity, 0);
  *memory = (json_memory){0};
}
