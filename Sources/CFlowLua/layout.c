// A look into Lua's own structures: the one place that knows, with its header, how liblua 5.4 lays them
// out. They are only read, and only when some that are made for the purpose look as expected; else all
// goes by the API.
//
// By the API a number of a list costs three calls, and telling that a table has no other keys a walk over
// all of it: 20 ns a number, most of what sending a list takes. Here it is 2 ns. A member of an object
// costs ten calls as JSON: half of what writing it takes.
#include "layout.h"

#include "codec.h"

_Static_assert(sizeof(list_slot) == 16 && sizeof(table_node) == 24, "as in liblua");
_Static_assert(offsetof(string_layout, bytes) == 24, "as in liblua");

/// Whether a list and the metatable of the table on top look as expected. [-0, +0, m]
static bool are_lists_as_expected(lua_State *L) {
  lua_createtable(L, 3, 0);
  lua_pushinteger(L, 11);
  lua_rawseti(L, -2, 1);
  lua_pushnumber(L, 22.5);
  lua_rawseti(L, -2, 2);
  lua_createtable(L, 2, 1);
  const table_layout *other = lua_topointer(L, -1);
  lua_setmetatable(L, -2);
  const table_layout *table = lua_topointer(L, -1);
  bool result = table->limit == 3 && (table->flags & LIMIT_IS_HINT) == 0 && table->array != NULL
      && table->last_free == NULL && table->array[0].type == SLOT_INTEGER
      && table->array[0].value.integer == 11 && table->array[1].type == SLOT_FLOAT
      && table->array[1].value.number == 22.5 && is_nil_slot(&table->array[2])
      && table->metatable == other && other->metatable == NULL && other->limit == 2
      && other->last_free != NULL;
  lua_settop(L, -2);
  return result;
}

/// Whether a string at an index looks as expected. [-0, +0, -]
static bool is_string_as_expected(lua_State *L, int index, uint8_t type, const void *pointer) {
  size_t count;
  const char *bytes = flowlua_bytes(L, index, &count);
  const string_layout *string = pointer;
  if (bytes == NULL || lua_topointer(L, index) != pointer) return false;
  return type == (count > SHORT_STRING ? SLOT_LONG_STRING : SLOT_SHORT_STRING)
      && string->type == (type & 63) && string_count(string) == count && string->bytes == bytes;
}

/// Pushes values of all types that are looked for. [-0, +7, m]
static void push_samples(lua_State *L) {
  lua_pushstring(L, "short");
  lua_pushstring(L, "a string that is longer than those of which Lua has only one");
  lua_createtable(L, 0, 0);
  lua_pushboolean(L, false);
  lua_pushboolean(L, true);
  lua_pushlightuserdata(L, NULL);
  lua_pushnumber(L, 0.5);
}

enum { SAMPLES = 7 };

/// Whether a node of a key and value that are on top looks as expected. [-0, +0, -]
static bool is_node_as_expected(lua_State *L, const table_node *node) {
  const list_slot *slot = slot_of(node);
  uint8_t type = slot->type;
  if (lua_isinteger(L, -2)) {
    if (node->key_type != SLOT_INTEGER || node->key.integer != lua_tointegerx(L, -2, NULL))
      return false;
  } else if (!is_string_as_expected(L, -2, node->key_type, node->key.pointer)) {
    return false;
  }
  switch (lua_type(L, -1)) {
  case LUA_TSTRING: return is_string_as_expected(L, -1, type, slot->value.pointer);
  case LUA_TTABLE: return type == SLOT_TABLE && slot->value.pointer == lua_topointer(L, -1);
  case LUA_TBOOLEAN: return type == (lua_toboolean(L, -1) ? SLOT_TRUE : SLOT_FALSE);
  case LUA_TLIGHTUSERDATA: return type == SLOT_LIGHT && slot->value.pointer == NULL;
  default: return type == SLOT_FLOAT && slot->value.number == lua_tonumberx(L, -1, NULL);
  }
}

/// Whether the nodes of a table look as expected, in the order of `lua_next`. [-0, +0, m]
static bool are_nodes_as_expected(lua_State *L) {
  int top = lua_gettop(L);
  flowlua_require_room(L, SAMPLES + LUA_MINSTACK, "tables");
  lua_createtable(L, 0, SAMPLES + 1);
  push_samples(L);
  for (int i = SAMPLES; i > 0; i--) {
    if (i > 2) {
      lua_rawseti(L, top + 1, -i);
    } else {
      // As a key, too.
      lua_pushvalue(L, -1);
      lua_rawset(L, top + 1);
    }
  }
  // What has no value any more isn't met.
  lua_pushboolean(L, true);
  lua_rawseti(L, top + 1, -1);
  lua_pushnil(L);
  lua_rawseti(L, top + 1, -1);
  const table_layout *table = lua_topointer(L, top + 1);
  size_t at = 0, count = node_count(table), met = 0;
  bool result = table->limit == 0 && count == SAMPLES + 1;
  lua_pushnil(L);
  while (result && lua_next(L, top + 1)) {
    while (at < count && is_nil_slot(slot_of(&table->nodes[at]))) at += 1;
    result = at < count && is_node_as_expected(L, &table->nodes[at++]);
    met += 1;
    lua_settop(L, -2);
  }
  while (at < count && is_nil_slot(slot_of(&table->nodes[at]))) at += 1;
  lua_settop(L, top);
  return result && at == count && met == SAMPLES;
}

bool flowlua_knows_layout(flowlua_state *state, lua_State *L) {
  if (state->layout == LAYOUT_UNKNOWN)
    state->layout = (state->withheld & FLOWLUA_TABLE_LAYOUT) == 0 && lua_version(L) == 504
            && are_lists_as_expected(L) && are_nodes_as_expected(L)
        ? LAYOUT_EXPECTED
        : LAYOUT_OTHER;
  return state->layout == LAYOUT_EXPECTED;
}

const list_slot *flowlua_list_slots(flowlua_state *state, lua_State *L, int index, size_t *count) {
  if (!flowlua_knows_layout(state, L)) return NULL;
  const table_layout *table = lua_topointer(L, index);
  if (table->last_free != NULL) return NULL;
  size_t slots = slot_count(table), listed = 0;
  while (listed < slots && (table->array[listed].type & SLOT_TYPE_BITS) == LUA_TNUMBER) listed += 1;
  for (size_t i = listed; i < slots; i++) {
    if (!is_nil_slot(&table->array[i])) return NULL;
  }
  *count = listed;
  return table->array;
}

void flowlua_write_slots(uint8_t *at, const list_slot *slots, size_t count) {
  for (size_t i = 0; i < count; i++, at += 9) {
    at[0] = slots[i].type == SLOT_INTEGER ? TAG_INTEGER : TAG_FLOAT;
    memcpy(at + 1, &slots[i].value, 8);
  }
}
