// A look into Lua's own structures: the one place that knows how liblua 5.4 lays them out. They are only
// read, and only when some that are made for the purpose look as expected; else all goes by the API.
//
// Tables: by the API a number of a list costs three calls, and telling that a table has no other keys a
// walk over all of it: 20 ns a number, most of what sending a list takes. Here it is 2 ns.
//
// Frames: by the API the line of a call is found by a walk over the function's code, and each time
// anew. Here the frame tells at which instruction the function is, so that the line is remembered.
#include "transfer.h"

/// A slot of a table's array (`TValue` in liblua).
struct list_slot {
  union {
    lua_Integer integer;
    lua_Number number;
    void *pointer;
  } value;
  uint8_t type;
};

/// The beginning of a table (`Table` in liblua).
typedef struct table_layout {
  void *next_object;
  uint8_t type, mark, flags, log_of_nodes;
  unsigned limit;
  const list_slot *array;
  void *nodes;
  void *last_free;  // NULL while there are no keys but those of the array
  void *metatable;
} table_layout;

enum { SLOT_INTEGER = 3, SLOT_FLOAT = 19, TYPE_BITS = 15, LIMIT_IS_HINT = 128 };

/// How many slots the array has: the limit may be a hint within the power of two above it.
static size_t slot_count(const table_layout *table) {
  size_t limit = table->limit, power = 1;
  if ((table->flags & LIMIT_IS_HINT) == 0 || (limit & (limit - 1)) == 0) return limit;
  while (power < limit) power *= 2;
  return power;
}

/// Looks at tables whose content is known. [-0, +0, m]
static bool is_as_expected(lua_State *L) {
  if (lua_version(L) != 504) return false;
  lua_createtable(L, 3, 0);
  lua_pushinteger(L, 11);
  lua_rawseti(L, -2, 1);
  lua_pushnumber(L, 22.5);
  lua_rawseti(L, -2, 2);
  const table_layout *table = lua_topointer(L, -1);
  bool result = table->limit == 3 && (table->flags & LIMIT_IS_HINT) == 0 && table->array != NULL
      && table->last_free == NULL && table->array[0].type == SLOT_INTEGER
      && table->array[0].value.integer == 11 && table->array[1].type == SLOT_FLOAT
      && table->array[1].value.number == 22.5 && (table->array[2].type & TYPE_BITS) == LUA_TNIL;
  lua_createtable(L, 2, 1);
  table = lua_topointer(L, -1);
  result = result && table->limit == 2 && table->last_free != NULL;
  lua_settop(L, -3);
  return result;
}

const list_slot *flowlua_list_slots(encoder *e, lua_State *L, int index, size_t *count) {
  flowlua_host *host = e->host;
  if (host->layout == LAYOUT_UNKNOWN)
    host->layout = is_as_expected(L) ? LAYOUT_EXPECTED : LAYOUT_OTHER;
  if (host->layout != LAYOUT_EXPECTED) return NULL;
  const table_layout *table = lua_topointer(L, index);
  if (table->last_free != NULL) return NULL;
  size_t slots = slot_count(table), listed = 0;
  while (listed < slots && (table->array[listed].type & TYPE_BITS) == LUA_TNUMBER) listed += 1;
  for (size_t i = listed; i < slots; i++) {
    if ((table->array[i].type & TYPE_BITS) != LUA_TNIL) return NULL;
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

// MARK: - Frames

/// The beginning of the frame of a function (`CallInfo` in liblua).
typedef struct frame_layout {
  const struct {
    const void *function;
  } *base;
  void *top;
  void *previous, *next;
  /// In a Lua function: the next instruction.
  const uint32_t *instruction;
} frame_layout;

/// What `note_frame` has seen.
typedef struct frame_notes {
  int count;
  bool is_as_expected;
  const uint32_t *instructions[2];
} frame_notes;

/// Looks at the frame of its caller. Upvalue: the notes. [-, +0, -]
static int note_frame(lua_State *L) {
  frame_notes *notes = lua_touserdata(L, lua_upvalueindex(1));
  lua_Debug info;
  if (notes->count == 2 || !lua_getstack(L, 1, &info)) return 0;
  lua_getinfo(L, "f", &info);
  const frame_layout *frame = (const void *)info.i_ci;
  if (frame->base->function != lua_topointer(L, -1)) notes->is_as_expected = false;
  notes->instructions[notes->count++] = frame->instruction;
  return 0;
}

static int call_noting(lua_State *L, void *argument) {
  frame_notes *notes = argument;
  static const char code[] = "local note = ... note() note()";
  notes->is_as_expected = lua_version(L) == 504;
  if (!notes->is_as_expected) return 0;
  if (luaL_loadbufferx(L, code, sizeof code - 1, "=", "t") != LUA_OK) return lua_error(L);
  lua_pushlightuserdata(L, notes);
  lua_pushcclosure(L, note_frame, 1);
  lua_callk(L, 1, 0, 0, NULL);
  return 0;
}

void flowlua_learn_frames(flowlua_host *host, lua_State *L) {
  if (lua_gethook(L) != NULL) return;
  frame_notes notes = {0};
  int32_t status = flowlua_protect(host, call_noting, &notes);
  // Another time, when there is memory.
  if (status != LUA_OK) return flowlua_discard_error(host, status);
  // Each call takes two instructions.
  bool is_expected = notes.is_as_expected && notes.count == 2
      && notes.instructions[1] - notes.instructions[0] == 2;
  host->frames = is_expected ? LAYOUT_EXPECTED : LAYOUT_OTHER;
}

const void *flowlua_frame_function(const lua_Debug *frame) {
  return ((const frame_layout *)(const void *)frame->i_ci)->base->function;
}

const void *flowlua_frame_instruction(const lua_Debug *frame) {
  return ((const frame_layout *)(const void *)frame->i_ci)->instruction;
}
