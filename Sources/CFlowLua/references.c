// References: numbers by which Swift keeps values of Lua.
#include "internal.h"

/// Doubles the array part of the table: all of it is in use, so that one value more makes Lua do so.
static int grow_references(lua_State *L, void *argument) {
  flowlua_state *state = argument;
  lua_pushvalue(state->anchor, ANCHOR_REFERENCES);
  lua_xmove(state->anchor, L, 1);
  lua_pushboolean(L, 1);
  lua_rawseti(L, -2, state->reference_capacity + 1);
  lua_pushnil(L);
  lua_rawseti(L, -2, state->reference_capacity + 1);
  return 0;
}

static bool make_room_for_references(flowlua_state *state) {
  int32_t old = state->reference_capacity;
  if (old > INT32_MAX / 4) return false;
  // The list is larger first: should the table fail to grow, nothing is lost.
  int32_t *grown = flowlua_resize_own(state->free_references, sizeof(int32_t) * (size_t)old * 2);
  if (grown == NULL) return false;
  state->free_references = grown;
  if (state->shares != NULL) {
    uint32_t *shares = flowlua_resize_own(state->shares, sizeof(uint32_t) * ((size_t)old * 2 + 1));
    if (shares == NULL) return false;
    memset(shares + old + 1, 0, sizeof(uint32_t) * (size_t)old);
    state->shares = shares;
  }
  int32_t status = flowlua_protect(state, grow_references, state);
  if (status != LUA_OK) {
    flowlua_discard_error(state, status);
    return false;
  }
  for (int32_t i = 0; i < old; i++) grown[i] = old * 2 - i;
  state->free_count = old;
  state->reference_capacity = old * 2;
  return true;
}

int32_t flowlua_reference(flowlua_state *state, lua_State *L) {
  if (state->free_count == 0) {
    // The value stays on L while the table grows. `L` may be the running coroutine, whose
    // stack the growing uses above it.
    if (!make_room_for_references(state)) {
      lua_settop(L, -2);
      return 0;
    }
  }
  int32_t reference = state->free_references[--state->free_count];
  lua_xmove(L, state->anchor, 1);
  lua_rawseti(state->anchor, ANCHOR_REFERENCES, reference);
  return reference;
}

/// Whether there is room to count owners.
static bool can_share(flowlua_state *state) {
  if (state->shares == NULL)
    state->shares = flowlua_zeroed_own(((size_t)state->reference_capacity + 1) * sizeof(uint32_t));
  return state->shares != NULL;
}

int32_t flowlua_share(flowlua_state *state, lua_State *L, int32_t index) {
  const void *function = lua_topointer(L, index);
  int32_t reference = state->shared_reference;
  // As long as there is the reference, no other function can have the address.
  if (reference != 0 && state->shared_function == function && can_share(state)) {
    state->shares[reference] += 1;
    return reference;
  }
  lua_pushvalue(L, index);
  reference = flowlua_reference(state, L);
  state->shared_reference = reference;
  state->shared_function = function;
  return reference;
}

void flowlua_unreference(flowlua_state *state, int32_t reference) {
  if (reference <= 0 || reference > state->reference_capacity) return;
  if (state->shares != NULL && state->shares[reference] > 0) {
    state->shares[reference] -= 1;
    return;
  }
  if (reference == state->shared_reference) state->shared_reference = 0;
  lua_pushnil(state->anchor);
  lua_rawseti(state->anchor, ANCHOR_REFERENCES, reference);
  state->free_references[state->free_count++] = reference;
}

void flowlua_push_reference(flowlua_state *state, lua_State *L, int32_t reference) {
  lua_rawgeti(state->anchor, ANCHOR_REFERENCES, reference);
  lua_xmove(state->anchor, L, 1);
}

int32_t flowlua_reference_count(const flowlua_state *state) {
  return state->reference_capacity - state->free_count;
}

// The marks of tables: the metatables by which an empty array remains one.

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
