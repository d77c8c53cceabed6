// Tables made of others: views, which show a table and refuse to be changed, and copies.
//
// A view of a table that isn't empty has one entry, from an address of ours to the table it shows, so
// that what reads tables without metamethods meets a key that no data has and doesn't take the view
// for an empty table. `next(view)` thus distinguishes an empty one from others; `pairs` iterates over it.
#include "internal.h"

const char flowlua_view_key;

bool flowlua_push_viewed(lua_State *L, int32_t index) {
  if (lua_type(L, index) != LUA_TTABLE) return false;
  if (lua_rawgetp(L, index, &flowlua_view_key) == LUA_TTABLE) return true;
  lua_settop(L, -2);
  return false;
}

// MARK: - Views

/// `__index`. Of a copy that somebody made of a view, with its metatable, it is nil.
static int view_index(lua_State *L) {
  if (!flowlua_push_viewed(L, 1)) return 0;
  lua_pushvalue(L, 2);
  lua_rawget(L, -2);
  return 1;
}

static int view_length(lua_State *L) {
  if (!flowlua_push_viewed(L, 1)) lua_settop(L, 1);
  lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
  return 1;
}

static int view_next(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  if (lua_next(L, 1)) return 2;
  lua_pushnil(L);
  return 1;
}

/// `__pairs`. What is walked is the table itself, so that only the first call has to look for it.
static int view_pairs(lua_State *L) {
  lua_settop(L, 1);
  lua_pushcfunction(L, view_next);
  if (!flowlua_push_viewed(L, 1)) lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

static int make_view_metatable(lua_State *L, void *argument) {
  const int32_t *refuse = argument;
  lua_createtable(L, 0, 5);
  lua_pushcfunction(L, view_index);
  lua_setfield(L, 1, "__index");
  lua_pushcfunction(L, view_length);
  lua_setfield(L, 1, "__len");
  lua_pushcfunction(L, view_pairs);
  lua_setfield(L, 1, "__pairs");
  flowlua_push_reference(state_of(L), L, *refuse);
  lua_setfield(L, 1, "__newindex");
  lua_pushboolean(L, false);
  lua_setfield(L, 1, "__metatable");
  return 1;
}

int32_t flowlua_make_view_metatable(flowlua_state *state, int32_t refuse) {
  return flowlua_protect(state, make_view_metatable, &refuse);
}

typedef struct table_pair {
  int32_t first, second;
} table_pair;

static int make_view(lua_State *L, void *argument) {
  const table_pair *what = argument;
  lua_createtable(L, 0, 1);
  flowlua_push_reference(state_of(L), L, what->first);
  lua_pushnil(L);
  if (lua_next(L, 2)) {
    lua_settop(L, 2);
    lua_rawsetp(L, 1, &flowlua_view_key);
  }
  lua_settop(L, 1);
  flowlua_push_reference(state_of(L), L, what->second);
  lua_setmetatable(L, 1);
  return 1;
}

int32_t flowlua_make_view(flowlua_state *state, int32_t table, int32_t metatable) {
  table_pair what = {table, metatable};
  return flowlua_protect(state, make_view, &what);
}

// MARK: - Copies

enum { COPY_MEMO = 1, COPY_QUEUE = 2, COPY_ROOM = 12 };

/// For how many elements of a list a copy has room from the start: the length of a table with holes may be
/// any number.
enum { COPY_SLOTS = 1 << 16 };

/// Puts the copy of the value on top in its place, if it is a plain table: a new one, which is yet to be
/// filled, or the one that it has. [-0, +0, m]
static void take_copy(lua_State *L, lua_Integer *queued) {
  if (lua_type(L, -1) != LUA_TTABLE) return;
  int32_t mark = flowlua_json_mark_of(state_of(L), L, -1);
  if (mark == FLOWLUA_JSON_OTHER) return;
  lua_pushvalue(L, -1);
  if (lua_rawget(L, COPY_MEMO) != LUA_TTABLE) {
    lua_settop(L, -2);
    size_t length = lua_rawlen(L, -1);
    lua_createtable(L, length > COPY_SLOTS ? COPY_SLOTS : (int)length, 0);
    if (lua_getmetatable(L, -2)) lua_setmetatable(L, -2);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, COPY_MEMO);
    lua_pushvalue(L, -2);
    lua_rawseti(L, COPY_QUEUE, ++*queued);
  }
  lua_replace(L, -2);
}

/// Fills the copy on top from the table below it. [-0, +0, m]
static void fill_copy(lua_State *L, lua_Integer *queued) {
  int copy = lua_gettop(L), table = copy - 1;
  lua_Integer length = (lua_Integer)lua_rawlen(L, table);
  for (lua_Integer i = 1; i <= length; i++) {
    int type = lua_rawgeti(L, table, i);
    if (type == LUA_TNIL) length = i - 1;
    if (type == LUA_TTABLE) take_copy(L, queued);
    lua_rawseti(L, copy, i);
  }
  lua_pushnil(L);
  while (lua_next(L, table)) {
    lua_Integer key = lua_isinteger(L, -2) ? lua_tointegerx(L, -2, NULL) : 0;
    if (key < 1 || key > length) {
      take_copy(L, queued);
      lua_pushvalue(L, -2);
      take_copy(L, queued);
      lua_insert(L, -2);
      lua_rawset(L, copy);
      lua_settop(L, copy + 1);
    } else {
      lua_settop(L, copy + 1);
    }
  }
}

/// Tables that were met are filled one after another, so that no depth of nesting recurses.
static int copy_table(lua_State *L, void *argument) {
  const table_pair *what = argument;
  flowlua_state *state = state_of(L);
  flowlua_require_room(L, COPY_ROOM, "a table");
  flowlua_push_reference(state, L, what->second);
  lua_createtable(L, 0, 0);
  flowlua_push_reference(state, L, what->first);
  lua_Integer queued = 0;
  take_copy(L, &queued);
  int top = lua_gettop(L);
  for (lua_Integer i = 1; i <= queued; i++) {
    lua_rawgeti(L, COPY_QUEUE, i);
    lua_pushvalue(L, -1);
    lua_rawget(L, COPY_MEMO);
    fill_copy(L, &queued);
    lua_settop(L, top);
  }
  return 1;
}

int32_t flowlua_copy_table(flowlua_state *state, int32_t table, int32_t memo) {
  table_pair what = {table, memo};
  return flowlua_protect(state, copy_table, &what);
}
