// Tables that Swift makes, changes and walks through, each operation under lua_pcall.
#include "internal.h"

typedef struct table_argument {
  const flowlua_value *values;
  int32_t count;
  const flowlua_value *keyed;
  int32_t pairs;
  int32_t reference;  // the table itself, or its metatable
  int64_t first;      // where values begin in a table that is there
} table_argument;

static void set_fields_of_top(lua_State *L, flowlua_state *state, const table_argument *what) {
  for (int32_t i = 0; i < what->pairs; i++) {
    flowlua_push_plain(L, state, &what->keyed[2 * i]);
    flowlua_push_plain(L, state, &what->keyed[2 * i + 1]);
    lua_rawset(L, -3);
  }
}

static int make_table(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_state *state = state_of(L);
  lua_createtable(L, what->count, what->pairs);
  for (int32_t i = 0; i < what->count; i++) {
    flowlua_push_plain(L, state, &what->values[i]);
    lua_rawseti(L, -2, i + 1);
  }
  set_fields_of_top(L, state, what);
  if (what->reference > 0) {
    flowlua_push_reference(state, L, what->reference);
    flowlua_strip_finalizer(L);
    lua_setmetatable(L, -2);
  }
  return 1;
}

int32_t flowlua_make_table(
    flowlua_state *state, const flowlua_value *values, int32_t count, const flowlua_value *keyed,
    int32_t pairs, int32_t metatable) {
  table_argument what = {values, count, keyed, pairs, metatable, 1};
  return flowlua_protect(state, make_table, &what);
}

static int set_elements(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_state *state = state_of(L);
  flowlua_push_reference(state, L, what->reference);
  for (int32_t i = 0; i < what->count; i++) {
    flowlua_push_plain(L, state, &what->values[i]);
    lua_rawseti(L, -2, (lua_Integer)what->first + i);
  }
  return 0;
}

int32_t flowlua_set_elements(
    flowlua_state *state, int32_t table, int64_t first, const flowlua_value *values,
    int32_t count) {
  table_argument what = {.values = values, .count = count, .reference = table, .first = first};
  return flowlua_protect(state, set_elements, &what);
}

bool flowlua_read_element(
    flowlua_state *state, int32_t table, int64_t index, flowlua_value *value) {
  // The anchor has room for what is in transit.
  lua_State *L = state->anchor;
  lua_rawgeti(L, ANCHOR_REFERENCES, table);
  lua_rawgeti(L, -1, (lua_Integer)index);
  int type = lua_type(L, -1);
  bool result = true;
  if (type == LUA_TSTRING) {
    size_t count;
    value->kind = FLOWLUA_STRING;
    // The table holds it. Nothing is converted, so nothing is raised.
    value->pointer = lua_tolstring(L, -1, &count);
    value->integer = (int64_t)count;
  } else {
    result = flowlua_read_scalar_of(L, -1, type, value);
  }
  lua_settop(L, -3);
  return result;
}

static int make_list(lua_State *L, void *argument) {
  lua_createtable(L, ((const table_argument *)argument)->count, 0);
  return 1;
}

int32_t flowlua_make_list(flowlua_state *state, int32_t capacity) {
  table_argument what = {.count = capacity};
  return flowlua_protect(state, make_list, &what);
}

static int set_fields(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_push_reference(state_of(L), L, what->reference);
  set_fields_of_top(L, state_of(L), what);
  return 0;
}

int32_t flowlua_set_fields(
    flowlua_state *state, int32_t table, const flowlua_value *keyed, int32_t pairs) {
  table_argument what = {.keyed = keyed, .pairs = pairs, .reference = table};
  return flowlua_protect(state, set_fields, &what);
}

static int get_field(lua_State *L, void *argument) {
  const table_argument *what = argument;
  flowlua_push_reference(state_of(L), L, what->reference);
  flowlua_push_plain(L, state_of(L), what->keyed);
  lua_gettable(L, -2);
  return 1;
}

int32_t flowlua_get_field(flowlua_state *state, int32_t table, const flowlua_value *key) {
  table_argument what = {.keyed = key, .pairs = 1, .reference = table};
  return flowlua_protect(state, get_field, &what);
}

typedef struct walk_argument {
  int32_t table;
  /// Of fields: the names, each of which ends with NUL.
  const char *names, *end;
  bool (*each)(lua_State *, void *);
  void *argument;
} walk_argument;

static int walk_pairs(lua_State *L, void *argument) {
  const walk_argument *what = argument;
  flowlua_push_reference(state_of(L), L, what->table);
  luaL_checktype(L, 1, LUA_TTABLE);
  if (flowlua_push_viewed(L, 1)) lua_replace(L, 1);
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    if (!what->each(L, what->argument)) break;
    lua_settop(L, 2);
  }
  return 0;
}

int32_t flowlua_each_pair(
    flowlua_state *state, int32_t table, bool (*each)(lua_State *, void *), void *argument) {
  walk_argument what = {.table = table, .each = each, .argument = argument};
  return flowlua_protect(state, walk_pairs, &what);
}

static int walk_fields(lua_State *L, void *argument) {
  const walk_argument *what = argument;
  flowlua_push_reference(state_of(L), L, what->table);
  luaL_checktype(L, 1, LUA_TTABLE);
  if (flowlua_push_viewed(L, 1)) lua_replace(L, 1);
  for (const char *name = what->names; name < what->end; name += strlen(name) + 1) {
    lua_pushstring(L, name);
    lua_rawget(L, 1);
    if (!what->each(L, what->argument)) break;
    lua_settop(L, 1);
  }
  return 0;
}

int32_t flowlua_each_field(
    flowlua_state *state, int32_t table, const char *names, size_t length,
    bool (*each)(lua_State *, void *), void *argument) {
  walk_argument what = {
      .table = table, .names = names, .end = names + length, .each = each, .argument = argument};
  return flowlua_protect(state, walk_fields, &what);
}

// Views of tables: they show a table and refuse to be changed.
//
// A view of a table that isn't empty has one entry, from an address of ours to the table it shows, or to an
// object that is read key by key until something wants all of it. A function that reads tables without metamethods
// thus meets a key that no data has and doesn't take the view for an empty table. `next(view)` distinguishes an
// empty one from others; `pairs` iterates over it.

const char flowlua_view_key;

/// Puts the table that the source on top is read into in its place, in a view too; false when there is none.
/// [-0, +0, e]
static bool read_source(lua_State *L, int32_t view) {
  flowlua_require_room(L, 4, "a view");
  if (!lua_getmetatable(L, view)) return false;
  lua_rawgetp(L, -1, &flowlua_view_key);
  lua_replace(L, -2);
  if (lua_type(L, -1) != LUA_TFUNCTION) {
    lua_settop(L, -2);
    return false;
  }
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  if (lua_type(L, -1) != LUA_TTABLE) return false;
  lua_pushvalue(L, -1);
  lua_rawsetp(L, view, &flowlua_view_key);
  return true;
}

bool flowlua_push_viewed(lua_State *L, int32_t index) {
  if (lua_type(L, index) != LUA_TTABLE) return false;
  index = lua_absindex(L, index);
  int type = lua_rawgetp(L, index, &flowlua_view_key);
  if (type == LUA_TTABLE || (type == LUA_TUSERDATA && read_source(L, index))) return true;
  lua_settop(L, -2);
  return false;
}

static int push_shown(lua_State *L, void *argument) {
  flowlua_push_reference(state_of(L), L, *(int32_t *)argument);
  flowlua_push_viewed(L, 1);
  return 1;
}

int32_t flowlua_push_shown(flowlua_state *state, int32_t table) {
  return flowlua_protect(state, push_shown, &table);
}

// MARK: - Views

/// `__index`. Of a copy that somebody made of a view, with its metatable, it is nil.
static int view_index(lua_State *L) {
  lua_settop(L, 2);
  if (lua_type(L, 1) == LUA_TTABLE && lua_rawgetp(L, 1, &flowlua_view_key) == LUA_TUSERDATA) {
    if (lua_type(L, 2) != LUA_TSTRING) return 0;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 3);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 2);
    if (lua_toboolean(L, 4)) flowlua_push_viewed(L, 1);
    lua_settop(L, 3);
    return 1;
  }
  lua_settop(L, 2);
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

/// `__pairs`. It walks the table itself, so that only the first call has to look for it.
static int view_pairs(lua_State *L) {
  lua_settop(L, 1);
  lua_pushcfunction(L, view_next);
  if (!flowlua_push_viewed(L, 1)) lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

typedef struct view_functions {
  int32_t refuse, read, read_all;
} view_functions;

static int make_view_metatable(lua_State *L, void *argument) {
  const view_functions *functions = argument;
  lua_createtable(L, 0, 6);
  flowlua_push_reference(state_of(L), L, functions->read);
  lua_pushcclosure(L, view_index, 1);
  lua_setfield(L, 1, "__index");
  lua_pushcfunction(L, view_length);
  lua_setfield(L, 1, "__len");
  lua_pushcfunction(L, view_pairs);
  lua_setfield(L, 1, "__pairs");
  flowlua_push_reference(state_of(L), L, functions->refuse);
  lua_setfield(L, 1, "__newindex");
  flowlua_push_reference(state_of(L), L, functions->read_all);
  lua_rawsetp(L, 1, &flowlua_view_key);
  lua_pushboolean(L, false);
  lua_setfield(L, 1, "__metatable");
  return 1;
}

int32_t flowlua_make_view_metatable(
    flowlua_state *state, int32_t refuse, int32_t read, int32_t read_all) {
  view_functions functions = {refuse, read, read_all};
  return flowlua_protect(state, make_view_metatable, &functions);
}

typedef struct table_pair {
  int32_t first, second;
} table_pair;

static int make_view(lua_State *L, void *argument) {
  const table_pair *what = argument;
  lua_createtable(L, 0, 1);
  flowlua_push_reference(state_of(L), L, what->first);
  bool is_filled = lua_type(L, 2) == LUA_TUSERDATA;
  if (!is_filled) lua_pushnil(L);
  if (is_filled || lua_next(L, 2)) {
    lua_settop(L, 2);
    lua_rawsetp(L, 1, &flowlua_view_key);
  }
  lua_settop(L, 1);
  flowlua_push_reference(state_of(L), L, what->second);
  flowlua_strip_finalizer(L);
  lua_setmetatable(L, 1);
  return 1;
}

int32_t flowlua_make_view(flowlua_state *state, int32_t source, int32_t metatable) {
  table_pair what = {source, metatable};
  return flowlua_protect(state, make_view, &what);
}
