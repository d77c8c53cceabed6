// A look into Lua's own structures: the one place that knows, with its header, how liblua 5.4 lays them
// out. They are used only when some that are made for the purpose look as expected; else all goes by the
// API. Nothing is written but numbers, which the collector doesn't follow, into slots that a table has.
//
// By the API a number of a list costs three calls, and telling that a table has no other keys a walk over
// all of it: 20 ns a number, most of what sending a list takes. Here it is 2 ns. A number that arrives takes
// 90 instructions by the API and 16 here, one that is copied 290 and 10. A member of an object costs ten calls
// as JSON: half of what writing it takes. Each op that names a list in `needs` has its values checked: 1 ns each.
#include "layout.h"

_Static_assert(sizeof(list_slot) == 16 && sizeof(table_node) == 24, "as in liblua");
_Static_assert(offsetof(string_layout, bytes) == 24, "as in liblua");

/// Whether the API finds in a list what is written into its slots. [-0, +0, m]
static bool are_slots_written_as_expected(lua_State *L) {
  lua_createtable(L, 3, 0);
  list_slot *slots = ((const table_layout *)lua_topointer(L, -1))->array;
  slots[0].value.integer = 11;
  slots[0].type = SLOT_INTEGER;
  slots[1].value.number = 22.5;
  slots[1].type = SLOT_FLOAT;
  bool result = lua_rawlen(L, -1) == 2;
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  result = result && lua_isinteger(L, -2) && lua_tointegerx(L, -2, NULL) == 11
      && !lua_isinteger(L, -1) && lua_tonumberx(L, -1, NULL) == 22.5;
  lua_settop(L, -4);
  return result;
}

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

/// Whether functions look as expected, a mere one of C and a closure. [-0, +0, m]
static bool are_functions_as_expected(lua_State *L) {
  lua_createtable(L, 2, 0);
  const table_layout *table = lua_topointer(L, -1);
  bool result = true;
  for (int upvalues = 0; upvalues < 2; upvalues++) {
    if (upvalues > 0) lua_pushnil(L);
    lua_pushcclosure(L, luaopen_base, upvalues);
    const void *pointer = lua_topointer(L, -1);
    lua_rawseti(L, -2, upvalues + 1);
    const list_slot *slot = &table->array[upvalues];
    result =
        result && (slot->type & SLOT_TYPE_BITS) == LUA_TFUNCTION && slot->value.pointer == pointer;
  }
  lua_settop(L, -2);
  return result;
}

/// Whether a string at an index looks as expected. [-0, +0, -]
static bool is_string_as_expected(lua_State *L, int index, uint8_t type, const void *pointer) {
  size_t count;
  const char *bytes = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &count) : NULL;
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
  // An entry that has no value any more isn't met.
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
            && are_lists_as_expected(L) && are_functions_as_expected(L) && are_nodes_as_expected(L)
            && are_slots_written_as_expected(L)
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

static int learn_layout(lua_State *L, void *argument) {
  (void)argument;
  flowlua_knows_layout(state_of(L), L);
  return 0;
}

/// The bits of the kinds of values that are in slots of these types, a bit for each.
static uint32_t kinds_of(uint64_t types) {
  uint64_t floats = (uint64_t)1 << SLOT_FLOAT;
  uint32_t kinds = (types & floats) != 0 ? FLOWLUA_FLOATS : 0;
  types &= ~floats;
  return kinds | ((uint32_t)(types | types >> 16 | types >> 32) & 0xFFFF);
}

bool flowlua_look_at_list(
    flowlua_state *state, lua_State *L, int index, int64_t *count, uint32_t *kinds) {
  if (state->layout == LAYOUT_UNKNOWN)
    flowlua_discard_error(state, flowlua_protect(state, learn_layout, NULL));
  if (state->layout != LAYOUT_EXPECTED) return false;
  const table_layout *table = lua_topointer(L, index);
  size_t listed = slot_count(table);
  while (listed > 0 && is_nil_slot(&table->array[listed - 1])) listed -= 1;
  uint64_t types = 0;
  for (size_t i = 0; i < listed; i++) types |= (uint64_t)1 << (table->array[i].type & 63);
  lua_Integer largest = (lua_Integer)listed, found = largest;
  const table_node *node = table->nodes, *end = node + node_count(table);
  for (; node < end; node++) {
    if (is_nil_slot(slot_of(node))) continue;
    types |= (uint64_t)1 << (slot_of(node)->type & 63);
    lua_Integer key = node->key_type == SLOT_INTEGER ? node->key.integer : 0;
    if (key < 1) found = -1;
    if (key > largest) largest = key;
    if (found >= 0) found += 1;
  }
  *kinds = kinds_of(types);
  // The array may have holes.
  *count = found == largest && (*kinds & 1U << LUA_TNIL) == 0 ? found : -1;
  return true;
}

list_slot *flowlua_slots_for(flowlua_state *state, lua_State *L, int index, size_t count) {
  if (!flowlua_knows_layout(state, L)) return NULL;
  const table_layout *table = lua_topointer(L, index);
  return slot_count(table) >= count ? table->array : NULL;
}
