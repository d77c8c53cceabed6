// Copies of tables: those of a flow's data for each of its runs.
#include "layout.h"

enum { COPY_MEMO = 1, COPY_QUEUE = 2, COPY_ROOM = 12 };

/// For how many elements of a list a copy has room from the start, unless it is seen to have more: the length of
/// a table with holes may be any number.
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
    size_t length = lua_rawlen(L, -1), numbers;
    if (length > COPY_SLOTS
        && (length > INT32_MAX || flowlua_list_slots(state_of(L), L, -1, &numbers) == NULL))
      length = COPY_SLOTS;
    lua_createtable(L, (int)length, 0);
    if (lua_getmetatable(L, -2)) {
      flowlua_strip_finalizer(L);
      lua_setmetatable(L, -2);
    }
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, COPY_MEMO);
    lua_pushvalue(L, -2);
    lua_rawseti(L, COPY_QUEUE, ++*queued);
  }
  lua_replace(L, -2);
}

/// Copies a table that has nothing but numbers as 1, 2, …; false for any other, and when the copy has no slots for
/// them. [-0, +0, m]
static bool copy_numbers(lua_State *L, int table, int copy) {
  size_t count;
  const list_slot *slots = flowlua_list_slots(state_of(L), L, table, &count);
  if (slots == NULL) return false;
  list_slot *copies = flowlua_slots_for(state_of(L), L, copy, count);
  if (copies == NULL) return false;
  if (count > 0) memcpy(copies, slots, count * sizeof *slots);
  return true;
}

/// Fills the copy on top from the table below it. [-0, +0, m]
static void fill_copy(lua_State *L, lua_Integer *queued) {
  int copy = lua_gettop(L), table = copy - 1;
  if (copy_numbers(L, table, copy)) return;
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

typedef struct copy_argument {
  int32_t table, memo;
} copy_argument;

/// Tables that were met are filled one after another, so that no depth of nesting recurses.
static int copy_table(lua_State *L, void *argument) {
  const copy_argument *what = argument;
  flowlua_state *state = state_of(L);
  flowlua_require_room(L, COPY_ROOM, "a table");
  flowlua_push_reference(state, L, what->memo);
  lua_createtable(L, 0, 0);
  flowlua_push_reference(state, L, what->table);
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
  copy_argument what = {table, memo};
  return flowlua_protect(state, copy_table, &what);
}
