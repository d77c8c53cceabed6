// Functions of `string` and `table` whose loops a script may make as long as it likes, such as `table.move(t, 1, 1 << 62, 2)`:
// Lua's own can't be asked to stop. They do the same as Lua's.
#include "paced.h"

// MARK: - Tables

enum { READS = 1, WRITES = 2, HAS_LENGTH = 4 };

static bool has_field(lua_State *L, const char *name) {
  lua_pushstring(L, name);
  bool has = lua_rawget(L, -2) != LUA_TNIL;
  lua_settop(L, -2);
  return has;
}

/// Refuses an argument that isn't a table, and has no metamethods to be used as one.
static void check_table(lua_State *L, int argument, int what) {
  if (lua_type(L, argument) == LUA_TTABLE) return;
  if (!lua_getmetatable(L, argument)) {
    luaL_checktype(L, argument, LUA_TTABLE);
    return;
  }
  bool is_usable = (!(what & READS) || has_field(L, "__index"))
      && (!(what & WRITES) || has_field(L, "__newindex"))
      && (!(what & HAS_LENGTH) || has_field(L, "__len"));
  lua_settop(L, -2);
  if (!is_usable) luaL_checktype(L, argument, LUA_TTABLE);
}

/// How often loops over a value look: a metamethod may be a function in C, which takes any time.
static uint32_t pace_of(lua_State *L, int index) {
  if (!lua_istable(L, index)) return SLOW_PACE;
  if (!lua_getmetatable(L, index)) return PACE;
  lua_settop(L, -2);
  return SLOW_PACE;
}

static int table_insert(lua_State *L) {
  check_table(L, 1, READS | WRITES | HAS_LENGTH);
  lua_Integer end = luaL_len(L, 1);
  end = (lua_Integer)((lua_Unsigned)end + 1);  // the first free place
  int count = lua_gettop(L);
  lua_Integer place = end;
  if (count == 3) {
    place = luaL_checkinteger(L, 2);
    luaL_argcheck(L, (lua_Unsigned)place - 1u < (lua_Unsigned)end, 2, "position out of bounds");
    pace pace = begin_pace(L, lua_upvalueindex(1), pace_of(L, 1));
    for (lua_Integer i = end; i > place; i--) {
      count_step(&pace);
      lua_geti(L, 1, i - 1);
      lua_seti(L, 1, i);
    }
  } else if (count != 2) {
    return luaL_error(L, "wrong number of arguments to 'insert'");
  }
  lua_seti(L, 1, place);
  return 0;
}

static int table_remove(lua_State *L) {
  check_table(L, 1, READS | WRITES | HAS_LENGTH);
  lua_Integer size = luaL_len(L, 1);
  lua_Integer place = luaL_optinteger(L, 2, size);
  // The place after the last one is allowed.
  if (place != size)
    luaL_argcheck(L, (lua_Unsigned)place - 1u <= (lua_Unsigned)size, 2, "position out of bounds");
  lua_geti(L, 1, place);
  pace pace = begin_pace(L, lua_upvalueindex(1), pace_of(L, 1));
  for (; place < size; place++) {
    count_step(&pace);
    lua_geti(L, 1, place + 1);
    lua_seti(L, 1, place);
  }
  lua_pushnil(L);
  lua_seti(L, 1, place);
  return 1;
}

static int table_move(lua_State *L) {
  lua_Integer from = luaL_checkinteger(L, 2);
  lua_Integer end = luaL_checkinteger(L, 3);
  lua_Integer to = luaL_checkinteger(L, 4);
  int target = lua_isnoneornil(L, 5) ? 1 : 5;
  check_table(L, 1, READS);
  check_table(L, target, WRITES);
  if (end >= from) {
    luaL_argcheck(L, from > 0 || end < LUA_MAXINTEGER + from, 3, "too many elements to move");
    lua_Integer count = end - from + 1;
    luaL_argcheck(L, to <= LUA_MAXINTEGER - count + 1, 4, "destination wrap around");
    uint32_t each = pace_of(L, 1);
    if (pace_of(L, target) < each) each = SLOW_PACE;
    pace pace = begin_pace(L, lua_upvalueindex(1), each);
    bool is_apart = to > end || to <= from || (target != 1 && !lua_compare(L, 1, target, LUA_OPEQ));
    for (lua_Integer i = 0; i < count; i++) {
      count_step(&pace);
      lua_Integer place = is_apart ? i : count - 1 - i;
      lua_geti(L, 1, from + place);
      lua_seti(L, target, to + place);
    }
  }
  lua_pushvalue(L, target);
  return 1;
}

/// Adds the element at a place to a text.
static void add_element(lua_State *L, luaL_Buffer *buffer, lua_Integer i) {
  lua_geti(L, 1, i);
  if (!lua_isstring(L, -1))
    luaL_error(
        L, "invalid value (%s) at index %I in table for 'concat'", luaL_typename(L, -1),
        (LUAI_UACINT)i);
  luaL_addvalue(buffer);
}

static int table_concat(lua_State *L) {
  check_table(L, 1, READS | HAS_LENGTH);
  lua_Integer last = luaL_len(L, 1);
  size_t length;
  const char *separator = luaL_optlstring(L, 2, "", &length);
  lua_Integer i = luaL_optinteger(L, 3, 1);
  last = luaL_optinteger(L, 4, last);
  pace pace = begin_pace(L, lua_upvalueindex(1), pace_of(L, 1));
  luaL_Buffer buffer;
  luaL_buffinit(L, &buffer);
  for (; i < last; i++) {
    count_step(&pace);
    add_element(L, &buffer, i);
    luaL_addlstring(&buffer, separator, length);
  }
  if (i == last) add_element(L, &buffer, i);
  luaL_pushresult(&buffer);
  return 1;
}

/// Compares two values for table.sort. Upvalues: the function that does nothing, how many steps are left until a look, and a
/// function in C that compares, or nil for `<`.
static int is_less(lua_State *L) {
  uint32_t *left = lua_touserdata(L, lua_upvalueindex(2));
  bool compares = !lua_isnil(L, lua_upvalueindex(3));
  pace pace = begin_pace(L, lua_upvalueindex(1), compares ? SLOW_PACE : PACE);
  if (!compares) pace.left = *left;
  size_t a = 0, b = 0;
  if (lua_type(L, 1) == LUA_TSTRING && lua_type(L, 2) == LUA_TSTRING) {
    lua_tolstring(L, 1, &a);
    lua_tolstring(L, 2, &b);
  }
  count_steps(&pace, steps_of(a < b ? a : b));
  *left = pace.left;
  if (!compares) {
    lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
    return 1;
  }
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

/// Whether sorting a table by `<` takes so short that nothing has to look: few numbers and short strings.
static bool sorts_quickly(lua_State *L) {
  lua_Unsigned count = lua_rawlen(L, 1);
  if (count >= PACE || pace_of(L, 1) != PACE) return false;
  bool is_quick = true;
  for (lua_Unsigned i = 1; i <= count && is_quick; i++) {
    int type = lua_rawgeti(L, 1, (lua_Integer)i);
    is_quick = type == LUA_TNUMBER || (type == LUA_TSTRING && lua_rawlen(L, -1) < 256);
    lua_settop(L, -2);
  }
  return is_quick;
}

/// table.sort. Upvalues: the function that does nothing, Lua's own.
static int table_sort(lua_State *L) {
  lua_CFunction standard = lua_tocfunction(L, lua_upvalueindex(2));
  const bool has_function = !lua_isnoneornil(L, 2);
  // Instructions of a function in Lua look themselves; a wrong argument is refused.
  bool is_safe = has_function ? !lua_iscfunction(L, 2)
                              : lua_isnone(L, 1) || (lua_istable(L, 1) && sorts_quickly(L));
  if (is_safe) return standard(L);
  lua_settop(L, 2);
  lua_pushvalue(L, lua_upvalueindex(1));
  uint32_t *left = lua_newuserdatauv(L, sizeof *left, 0);
  *left = PACE;
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, is_less, 3);
  lua_replace(L, 2);
  return standard(L);
}

// MARK: - Reading chunks

/// The key in the registry of the function that does nothing.
static const char rest_key;

/// Upvalues: the function that does nothing, a function in C that returns a piece of a chunk.
static int read_piece(lua_State *L) {
  pace pace = begin_pace(L, lua_upvalueindex(1), SLOW_PACE);
  count_step(&pace);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_call(L, 0, 1);
  return 1;
}

void flowlua_pace_reader(lua_State *L, int index) {
  if (!lua_iscfunction(L, index)) return;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &rest_key) == LUA_TNIL) {
    lua_settop(L, -2);
    return;
  }
  lua_pushvalue(L, index);
  lua_pushcclosure(L, read_piece, 2);
  lua_replace(L, index);
}

// MARK: - Strings

/// string.rep, whose loop for an empty string has no end. Upvalues: the function that does nothing, Lua's own.
static int string_rep(lua_State *L) {
  size_t length, separator = 0;
  luaL_checklstring(L, 1, &length);
  luaL_checkinteger(L, 2);
  if (!lua_isnoneornil(L, 3)) luaL_checklstring(L, 3, &separator);
  if (length + separator > 0) return lua_tocfunction(L, lua_upvalueindex(2))(L);
  lua_pushliteral(L, "");
  return 1;
}

// MARK: - Installing

static void replace(lua_State *L, const char *name, lua_CFunction function) {
  lua_pushvalue(L, -2);
  lua_getfield(L, -2, name);
  lua_pushcclosure(L, function, 2);
  lua_setfield(L, -2, name);
}

void flowlua_install_paced(lua_State *L, uint32_t libraries) {
  if (luaL_loadbufferx(L, "", 0, "=", "t") != LUA_OK) lua_error(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &rest_key);
  if (libraries & FLOWLUA_LIBRARY_TABLE) {
    lua_getglobal(L, LUA_TABLIBNAME);
    replace(L, "insert", table_insert);
    replace(L, "remove", table_remove);
    replace(L, "move", table_move);
    replace(L, "sort", table_sort);
    replace(L, "concat", table_concat);
    lua_settop(L, -2);
  }
  if (libraries & FLOWLUA_LIBRARY_SAFE_STRING) {
    lua_getglobal(L, LUA_STRLIBNAME);
    replace(L, "rep", string_rep);
    flowlua_add_patterns(L);
    lua_settop(L, -2);
  }
  lua_settop(L, -2);
}
