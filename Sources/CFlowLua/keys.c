// The keys of a table in an order of their own.
#include "codec.h"

bool flowlua_is_listed(lua_State *L, int key, int64_t listed) {
  if (!lua_isinteger(L, key)) return false;
  lua_Integer integer = lua_tointegerx(L, key, NULL);
  return integer >= 1 && integer <= listed;
}

/// The keys that can be sorted, smallest first, in code: the same content gives the same bytes then, in
/// whatever order the table has it.
static int compare_keys(lua_State *L, int a, int b) {
  int type_a = lua_type(L, a), type_b = lua_type(L, b);
  if (type_a != type_b) return type_a < type_b ? -1 : 1;
  if (type_a == LUA_TSTRING) {
    size_t count_a, count_b;
    const char *bytes_a = lua_tolstring(L, a, &count_a);
    const char *bytes_b = lua_tolstring(L, b, &count_b);
    int order = memcmp(bytes_a, bytes_b, count_a < count_b ? count_a : count_b);
    return order != 0 ? order : count_a < count_b ? -1 : count_a > count_b;
  }
  if (type_a == LUA_TNUMBER) return lua_compare(L, a, b, LUA_OPLT) ? -1 : 1;
  if (type_a == LUA_TBOOLEAN) return lua_toboolean(L, a) - lua_toboolean(L, b);
  return 0;
}

bool flowlua_is_sortable(lua_State *L, int key) {
  int type = lua_type(L, key);
  return type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

/// Merges two sorted runs of the list at `from` into that at `to`. [-0, +0, m]
static void merge(lua_State *L, int from, int to, int64_t start, int64_t middle, int64_t end) {
  int64_t a = start, b = middle;
  for (int64_t i = start; i < end; i++) {
    bool takes_a = b >= end;
    if (a < middle && b < end) {
      lua_rawgeti(L, from, a);
      lua_rawgeti(L, from, b);
      takes_a = compare_keys(L, -2, -1) <= 0;
      lua_settop(L, -3);
    }
    lua_rawgeti(L, from, takes_a ? a++ : b++);
    lua_rawseti(L, to, i);
  }
}

/// The keys of a table but 1 to `listed`, as a list: those that can be sorted are, before the others.
/// [-0, +1, m]
int64_t flowlua_push_sorted_keys(lua_State *L, int table, int64_t listed) {
  int keys = lua_gettop(L) + 1, other = keys + 1;
  int64_t count = 0, sortable = 0;
  lua_createtable(L, 0, 0);
  lua_createtable(L, 0, 0);
  for (int pass = 0; pass < 2; pass++) {
    lua_pushnil(L);
    while (lua_next(L, table)) {
      lua_settop(L, -2);
      if (flowlua_is_listed(L, -1, listed) || flowlua_is_sortable(L, -1) != (pass == 0)) continue;
      lua_pushvalue(L, -1);
      lua_rawseti(L, keys, count++);
    }
    if (pass == 0) sortable = count;
  }
  for (int64_t width = 1; width < sortable; width *= 2) {
    for (int64_t start = 0; start < sortable; start += 2 * width) {
      int64_t middle = start + width < sortable ? start + width : sortable;
      int64_t end = start + 2 * width < sortable ? start + 2 * width : sortable;
      merge(L, keys, other, start, middle, end);
    }
    // Those that can't be sorted stay where they are, in the list that is at last the answer.
    for (int64_t i = 0; i < sortable; i++) {
      lua_rawgeti(L, other, i);
      lua_rawseti(L, keys, i);
    }
  }
  lua_settop(L, keys);
  return count;
}
