// Writes a value as a log line shows it: short, deterministic, and without running a script's code but
// its __tostring.
#include <stdio.h>

#include "internal.h"

enum {
  /// No line shows more keys than this: each takes at least five characters of 120.
  MOST_KEYS = 40,
  MOST_CHARACTERS = 200,
  MOST_BYTES = MOST_CHARACTERS * 4 + 8,
};

typedef struct rendering {
  const flowlua_value *value;
  int32_t limit;
  int32_t characters;
  /// How many bytes the current character may still have.
  int32_t rest;
  size_t count;
  /// Where the text must be cut if one more character comes: after limit - 1 characters.
  size_t cut;
  bool full;
  char bytes[MOST_BYTES];
} rendering;

/// A table that is being rendered, for cycles.
typedef struct enclosing {
  const void *table;
  const struct enclosing *outer;
} enclosing;

/// Whether a byte begins a character. One that continues none counts as a character of its own, so that
/// the limit holds for any bytes.
static bool begins_character(rendering *text, unsigned char byte) {
  if ((byte & 0xC0) == 0x80 && text->rest > 0) {
    text->rest -= 1;
    return false;
  }
  text->rest = byte < 0xC0 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  return true;
}

static void append(rendering *text, const char *bytes, size_t count) {
  for (size_t i = 0; i < count && !text->full; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    bool begins = begins_character(text, byte);
    if (begins && text->characters == text->limit - 1) text->cut = text->count;
    if (begins && text->characters == text->limit) {
      text->full = true;
      text->count = text->cut;
      memcpy(text->bytes + text->count, "…", 3);
      text->count += 3;
      return;
    }
    if (begins) text->characters += 1;
    text->bytes[text->count++] = (char)byte;
  }
}

static void append_literal(rendering *text, const char *literal) {
  append(text, literal, strlen(literal));
}

/// `tostring` of the value on top, whose own function may fail, or take too long. [-0, +0, m]
static void append_tostring(lua_State *L, rendering *text) {
  lua_pushvalue(L, -1);
  if (flowlua_own_text(L) == LUA_OK) {
    size_t count = 0;
    const char *bytes = flowlua_bytes(L, -1, &count);
    if (bytes != NULL) append(text, bytes, count);
  } else {
    char shown[64];
    snprintf(shown, sizeof shown, "%s: %p", luaL_typename(L, -2), lua_topointer(L, -2));
    append_literal(text, shown);
  }
  lua_settop(L, -2);
}

/// The order of keys: numbers, strings, then the rest by kind.
static bool comes_before(lua_State *L, int a, int b) {
  int type_a = lua_type(L, a), type_b = lua_type(L, b);
  if (type_a == LUA_TNUMBER && type_b == LUA_TNUMBER) return lua_compare(L, a, b, LUA_OPLT);
  if (type_a == LUA_TSTRING && type_b == LUA_TSTRING) {
    size_t count_a, count_b;
    const char *bytes_a = lua_tolstring(L, a, &count_a);
    const char *bytes_b = lua_tolstring(L, b, &count_b);
    int order = memcmp(bytes_a, bytes_b, count_a < count_b ? count_a : count_b);
    return order != 0 ? order < 0 : count_a < count_b;
  }
  if (type_a == type_b)
    return type_a == LUA_TBOOLEAN && !lua_toboolean(L, a) && lua_toboolean(L, b);
  if (type_a == LUA_TNUMBER || type_b == LUA_TNUMBER) return type_a == LUA_TNUMBER;
  if (type_a == LUA_TSTRING || type_b == LUA_TSTRING) return type_a == LUA_TSTRING;
  return type_a < type_b;
}

static void render_value(lua_State *L, rendering *text, const enclosing *outer);

/// The table on top: 1, 2, … first, then the other keys in order. [-0, +0, m]
static void render_table(lua_State *L, rendering *text, const enclosing *outer) {
  flowlua_require_room(L, MOST_KEYS + 8, "too deep");
  int table = lua_gettop(L);
  if (flowlua_push_viewed(L, table)) lua_replace(L, table);
  enclosing here = {lua_topointer(L, table), outer};
  for (const enclosing *each = outer; each != NULL; each = each->outer) {
    if (each->table == here.table) {
      append_literal(text, "{…}");
      return;
    }
  }
  bool first = true;
  lua_Integer listed = 0;
  append_literal(text, "{");
  while (!text->full && lua_rawgeti(L, table, listed + 1) != LUA_TNIL) {
    listed += 1;
    if (!first) append_literal(text, ", ");
    first = false;
    render_value(L, text, &here);
    lua_settop(L, table);
  }
  lua_settop(L, table);
  if (!text->full) {
    // The smallest keys, in order, on the stack above the table.
    int kept = 0;
    lua_pushnil(L);
    while (lua_next(L, table)) {
      lua_settop(L, -2);
      bool in_list = lua_isinteger(L, -1) && lua_tointegerx(L, -1, NULL) >= 1
          && lua_tointegerx(L, -1, NULL) <= listed;
      if (!in_list) {
        int at = table + kept + 1;
        while (at > table + 1 && comes_before(L, -1, at - 1)) at -= 1;
        if (at <= table + MOST_KEYS) {
          lua_pushvalue(L, -1);
          lua_insert(L, at);
          if (kept == MOST_KEYS) lua_remove(L, table + MOST_KEYS + 1);
          else kept += 1;
        }
      }
    }
    for (int i = 1; i <= kept && !text->full; i++) {
      if (!first) append_literal(text, ", ");
      first = false;
      lua_settop(L, table + kept);
      lua_pushvalue(L, table + i);
      append_tostring(L, text);
      append_literal(text, " = ");
      lua_rawget(L, table);
      render_value(L, text, &here);
    }
    lua_settop(L, table);
  }
  append_literal(text, "}");
}

/// The value on top. [-0, +0, m]
static void render_value(lua_State *L, rendering *text, const enclosing *outer) {
  flowlua_require_room(L, 8, "too deep");
  int value = lua_gettop(L);
  bool own_text = luaL_getmetafield(L, value, "__tostring") != LUA_TNIL;
  lua_settop(L, value);
  bool is_null = lua_type(L, value) == LUA_TLIGHTUSERDATA && lua_touserdata(L, value) == NULL;
  if (lua_type(L, value) == LUA_TTABLE && !own_text) render_table(L, text, outer);
  // The null of JSON.
  else if (is_null && !own_text) append_literal(text, "null");
  else append_tostring(L, text);
}

static int render(lua_State *L, void *argument) {
  rendering *text = argument;
  flowlua_push_plain(L, state_of(L), text->value);
  int value = lua_gettop(L);
  render_value(L, text, NULL);
  lua_settop(L, value);
  lua_pushlstring(L, text->bytes, text->count);
  return 1;
}

int32_t flowlua_render(flowlua_state *state, const flowlua_value *value, int32_t limit) {
  rendering text;
  text.value = value;
  text.limit = limit < 1 ? 1 : limit > MOST_CHARACTERS ? MOST_CHARACTERS : limit;
  text.characters = 0;
  text.rest = 0;
  text.count = 0;
  text.cut = 0;
  text.full = false;
  return flowlua_protect(state, render, &text);
}
