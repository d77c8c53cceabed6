// Marked values: what a function of a script returns when it has more to return than a value.
#include "internal.h"

/// What a marked value holds besides the value; recognized by content, as all userdata of ours.
typedef struct mark_block {
  uint64_t magic;
  int32_t mark;
} mark_block;

/// No type of objects has this number.
static uint64_t mark_magic(const flowlua_state *state) { return ~state->magic_base; }

/// Upvalues: the mark and the metatable. [-, +1, m]
static int mark_value(lua_State *L) {
  flowlua_state *state = state_of(L);
  lua_settop(L, 1);
  mark_block *block = lua_newuserdatauv(L, sizeof(mark_block), 1);
  block->magic = mark_magic(state);
  block->mark = (int32_t)lua_tointegerx(L, lua_upvalueindex(1), NULL);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  // Only a table counts: debug.setupvalue may have put anything there.
  flowlua_strip_finalizer(L);
  if (lua_type(L, -1) == LUA_TTABLE) lua_setmetatable(L, -2);
  lua_settop(L, 2);
  return 1;
}

typedef struct mark_argument {
  int32_t mark;
  int32_t metatable;
} mark_argument;

static int make_marker(lua_State *L, void *argument) {
  const mark_argument *what = argument;
  lua_pushinteger(L, what->mark);
  flowlua_push_reference(state_of(L), L, what->metatable);
  lua_pushcclosure(L, mark_value, 2);
  return 1;
}

int32_t flowlua_make_marker(flowlua_state *state, int32_t mark, int32_t metatable) {
  mark_argument what = {mark, metatable};
  return flowlua_protect(state, make_marker, &what);
}

int32_t flowlua_mark_at(flowlua_state *state, lua_State *L, int index) {
  if (lua_rawlen(L, index) != sizeof(mark_block)) return 0;
  const mark_block *block = lua_touserdata(L, index);
  return block != NULL && block->magic == mark_magic(state) ? block->mark : 0;
}

int32_t flowlua_unmark(flowlua_state *state, lua_State *L) {
  if (lua_type(L, -1) != LUA_TUSERDATA) return 0;
  int32_t mark = flowlua_mark_at(state, L, -1);
  if (mark != 0) {
    lua_getiuservalue(L, -1, 1);
    lua_rotate(L, -2, 1);
    lua_settop(L, -2);
  }
  return mark;
}
