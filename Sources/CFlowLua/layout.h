// How liblua 5.4 lays out tables and strings; layout.c explains when that is used.
#ifndef CFLOWLUA_LAYOUT_H
#define CFLOWLUA_LAYOUT_H

#include "internal.h"

/// The types of slots, and of keys.
enum {
  SLOT_FALSE = 1,
  SLOT_LIGHT = 2,
  SLOT_INTEGER = 3,
  SLOT_TRUE = 17,
  SLOT_FLOAT = 19,
  SLOT_SHORT_STRING = 68,
  SLOT_TABLE = 69,
  SLOT_LONG_STRING = 84,
  SLOT_TYPE_BITS = 15,  // they say what `lua_type` returns
};

/// A place for a value (`TValue` in liblua).
typedef struct list_slot {
  union {
    lua_Integer integer;
    lua_Number number;
    const void *pointer;
  } value;
  uint8_t type;
} list_slot;

/// A key and its value (`Node` in liblua); the value, which is a slot, is nil where there is none.
typedef struct table_node {
  uint64_t value;
  uint8_t type, key_type;
  int32_t next;
  union {
    lua_Integer integer;
    const void *pointer;
  } key;
} table_node;

/// The beginning of a table (`Table` in liblua).
typedef struct table_layout {
  void *next_object;
  uint8_t type, mark, flags, log_of_nodes;
  unsigned limit;
  list_slot *array;
  const table_node *nodes;
  void *last_free;  // NULL while there are no keys but those of the array
  const void *metatable;
} table_layout;

/// A string (`TString` in liblua).
typedef struct string_layout {
  void *next_object;
  uint8_t type, mark, extra, short_count;
  unsigned hash;
  size_t long_count;  // of a long one
  char bytes[];
} string_layout;

enum { LIMIT_IS_HINT = 128 };

static inline bool is_nil_slot(const list_slot *slot) {
  return (slot->type & SLOT_TYPE_BITS) == LUA_TNIL;
}

static inline bool is_string_slot(uint8_t type) {
  return type == SLOT_SHORT_STRING || type == SLOT_LONG_STRING;
}

/// The slot of a node's value.
static inline const list_slot *slot_of(const table_node *node) {
  return (const list_slot *)(const void *)node;
}

/// How many slots the array has: the limit may be a hint within the power of two above it.
static inline size_t slot_count(const table_layout *table) {
  size_t limit = table->limit, power = 1;
  if ((table->flags & LIMIT_IS_HINT) == 0 || (limit & (limit - 1)) == 0) return limit;
  while (power < limit) power *= 2;
  return power;
}

/// How many nodes a table has, including those without a value.
static inline size_t node_count(const table_layout *table) {
  return table->last_free == NULL ? 0 : (size_t)1 << table->log_of_nodes;
}

static inline size_t string_count(const string_layout *string) {
  return string->type == (SLOT_SHORT_STRING & 63) ? string->short_count : string->long_count;
}

// layout.c
/// Whether tables and strings are laid out so. Pointers to them are valid until the state is used again. [-0, +0,
/// m]
bool flowlua_knows_layout(flowlua_state *state, lua_State *L);
/// The slots of a table that has nothing but numbers as 1, 2, …; NULL for any other, or when it isn't
/// known how to look. [-0, +0, m]
const list_slot *flowlua_list_slots(flowlua_state *state, lua_State *L, int index, size_t *count);
/// Finds the length of a list, or -1 for another table, and the kinds of its values: see
/// `flowlua_list_count`. False when it isn't known how to look. [-0, +0, -]
bool flowlua_look_at_list(
    flowlua_state *state, lua_State *L, int index, int64_t *count, uint32_t *kinds);
/// The slots of a new table, which may be set to numbers; NULL if it hasn't as many, or when it isn't known how to
/// look. [-0, +0, m]
list_slot *flowlua_slots_for(flowlua_state *state, lua_State *L, int index, size_t count);

#endif
