// Integers for strings, which Swift compares instead of bytes.
#include "internal.h"

/// Where a string that is interned is remembered by its address. The table of interned strings keeps
/// it alive, so that no other string can come to have the address.
static interned_string *remembered(flowlua_state *state, const void *string) {
  uintptr_t bits = (uintptr_t)string;
  return &state->interned[(bits >> 4 ^ bits >> 10) % INTERNED_CACHE];
}

int64_t flowlua_interned(flowlua_state *state, lua_State *L, int32_t index) {
  // Of what isn't a string it is NULL, or an address where no string can be.
  const void *string = lua_topointer(L, index);
  interned_string *place = remembered(state, string);
  if (place->string == string && string != NULL) return place->integer;
  size_t length;
  if (flowlua_bytes(L, index, &length) == NULL) return -1;
  if (!lua_checkstack(L, 3)) return -1;
  index = lua_absindex(L, index);
  lua_pushvalue(state->anchor, ANCHOR_INTERNED);
  lua_xmove(state->anchor, L, 1);
  lua_pushvalue(L, index);
  int64_t result = lua_rawget(L, -2) == LUA_TNUMBER ? lua_tointegerx(L, -1, NULL) : -1;
  lua_settop(L, -3);
  // A long string may be another one than the interned one that it equals.
  if (result >= 0 && length <= SHORT_STRING) *place = (interned_string){string, result};
  return result;
}

typedef struct intern_argument {
  const char *bytes;
  size_t count;
  int64_t integer;
} intern_argument;

static int intern(lua_State *L, void *argument) {
  flowlua_state *state = state_of(L);
  const intern_argument *what = argument;
  lua_pushvalue(state->anchor, ANCHOR_INTERNED);
  lua_xmove(state->anchor, L, 1);
  lua_pushlstring(L, what->bytes, what->count);
  lua_pushinteger(L, what->integer);
  lua_rawset(L, -3);
  return 0;
}

int32_t flowlua_intern(flowlua_state *state, lua_State *L, int32_t index, int64_t integer) {
  // Read here: in the protected call the index would mean another frame. The caller's stack keeps
  // the string alive.
  intern_argument what = {NULL, 0, integer};
  what.bytes = flowlua_bytes(L, index, &what.count);
  if (what.bytes == NULL) return LUA_OK;
  return flowlua_protect(state, intern, &what);
}
