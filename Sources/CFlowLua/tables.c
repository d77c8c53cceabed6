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
