// The marks of tables: the metatables by which an empty array remains one.
#include "internal.h"

void flowlua_push_json_mark(lua_State *L, flowlua_state *state, bool is_array) {
  int32_t *mark = &state->json_marks[is_array];
  if (*mark == 0) {
    lua_createtable(L, 0, 1);
    lua_pushstring(L, is_array ? "json.array" : "json.object");
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    int32_t made = flowlua_reference(state, L);
    if (made == 0) flowlua_raise_memory(L);
    if (*mark == 0) {
      *mark = made;
      state->json_mark_identities[is_array] = lua_topointer(L, -1);
      return;
    }
    // A finalizer has made it meanwhile.
    flowlua_unreference(state, made);
    lua_settop(L, -2);
  }
  flowlua_push_reference(state, L, *mark);
  flowlua_strip_finalizer(L);
}

int32_t flowlua_json_mark_of(flowlua_state *state, lua_State *L, int32_t index) {
  if (!lua_getmetatable(L, index)) return FLOWLUA_JSON_UNMARKED;
  const void *identity = lua_topointer(L, -1);
  lua_settop(L, -2);
  if (identity == state->json_mark_identities[1]) return FLOWLUA_JSON_ARRAY;
  if (identity == state->json_mark_identities[0]) return FLOWLUA_JSON_OBJECT;
  return FLOWLUA_JSON_OTHER;
}

bool flowlua_is_json_null(lua_State *L, int32_t index) {
  return lua_type(L, index) == LUA_TLIGHTUSERDATA && lua_touserdata(L, index) == NULL;
}

/// Pushes the mark. [-0, +1, m]
static int push_mark(lua_State *L, void *is_array) {
  flowlua_push_json_mark(L, state_of(L), *(const bool *)is_array);
  return 1;
}

int32_t flowlua_json_mark(flowlua_state *state, lua_State *L, int32_t index, bool is_array) {
  index = lua_absindex(L, index);
  int32_t status = flowlua_protect(state, push_mark, &is_array);
  if (status != LUA_OK) return status;
  lua_setmetatable(L, index);
  return LUA_OK;
}
