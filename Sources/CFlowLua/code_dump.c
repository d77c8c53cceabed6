// The code of a function in a form that its place in a file doesn't change: what lua_dump writes without
// debug information, with zero as the numbers of lines.
//
// Even a stripped dump says at which lines each function begins and ends, so that a comment above a
// function would change it. The manual doesn't describe the form of dumps. It is only relied upon when
// those of known functions look as expected; else dumps stay as they are, and a moved line counts as a
// change.
#include "codec.h"

/// The first bytes of a dump by lua_dump of 5.4, up to the numbers that show the machine's formats.
static const uint8_t dump_header[] = {0x1B, 'L',  'u',  'a',  0x54, 0, 0x19, 0x93,
                                      '\r', '\n', 0x1A, '\n', 4,    8, 8};

enum {
  HEADER_NUMBERS = 16,  // an integer and a float
  INSTRUCTION_SIZE = 4,
  UPVALUE_SIZE = 3,
  CONSTANT_NIL = 0,
  CONSTANT_FALSE = 1,
  CONSTANT_TRUE = 0x11,
  CONSTANT_INTEGER = 3,
  CONSTANT_FLOAT = 0x13,
  CONSTANT_SHORT = 4,
  CONSTANT_LONG = 0x14,
  DEBUG_LISTS = 4,
  DEEPEST = 250,  // more than the parser nests
};

/// A walk through a dump, which makes it shorter as it goes.
typedef struct dump_walk {
  uint8_t *bytes;
  size_t size, in, out;
  // Where string constants are collected; NULL to collect none.
  lua_State *L;
  int list;  // the stack index of a list
} dump_walk;

/// Keeps so many bytes.
static bool keep(dump_walk *w, size_t count) {
  if (count > w->size - w->in) return false;
  if (w->in != w->out) memmove(w->bytes + w->out, w->bytes + w->in, count);
  w->in += count;
  w->out += count;
  return true;
}

static bool keep_array(dump_walk *w, size_t count, size_t size) {
  return count <= w->size / size && keep(w, count * size);
}

/// Reads a number: 7 bits a byte, the highest first, the last byte with its top bit set.
static bool read_number(dump_walk *w, size_t *number) {
  *number = 0;
  while (w->in < w->size && *number <= SIZE_MAX >> 7) {
    uint8_t byte = w->bytes[w->in++];
    *number = *number << 7 | (byte & 0x7F);
    if (byte & 0x80) return true;
  }
  return false;
}

static bool keep_number(dump_walk *w, size_t *number) {
  size_t start = w->in;
  if (!read_number(w, number)) return false;
  size_t count = w->in - start;
  w->in = start;
  return keep(w, count);
}

/// Replaces a number by zero, which takes one byte.
static bool clear_number(dump_walk *w) {
  size_t number;
  if (!read_number(w, &number)) return false;
  w->bytes[w->out++] = 0x80;
  return true;
}

/// [-0, +0, m]
static bool keep_string(dump_walk *w) {
  size_t count;
  if (!keep_number(w, &count)) return false;
  if (count == 0) return true;
  const char *bytes = (const char *)w->bytes + w->out;
  if (!keep(w, count - 1)) return false;
  if (w->L != NULL) {
    lua_pushlstring(w->L, bytes, count - 1);
    lua_rawseti(w->L, w->list, (lua_Integer)lua_rawlen(w->L, w->list) + 1);
  }
  return true;
}

/// [-0, +0, m]
static bool keep_constants(dump_walk *w) {
  size_t count;
  if (!keep_number(w, &count)) return false;
  for (; count > 0; count--) {
    if (w->in == w->size) return false;
    uint8_t type = w->bytes[w->in];
    if (!keep(w, 1)) return false;
    switch (type) {
    case CONSTANT_NIL:
    case CONSTANT_FALSE:
    case CONSTANT_TRUE: break;
    case CONSTANT_INTEGER:
    case CONSTANT_FLOAT:
      if (!keep(w, 8)) return false;
      break;
    case CONSTANT_SHORT:
    case CONSTANT_LONG:
      if (!keep_string(w)) return false;
      break;
    default: return false;
    }
  }
  return true;
}

/// A function and those in it. [-0, +0, m]
static bool walk_function(dump_walk *w, int depth) {
  size_t count;
  // The source isn't in a stripped dump.
  if (depth > DEEPEST || !keep_number(w, &count) || count != 0) return false;
  if (!clear_number(w) || !clear_number(w)) return false;
  // The number of parameters, whether there are more, and the size of the stack.
  if (!keep(w, 3)) return false;
  if (!keep_number(w, &count) || !keep_array(w, count, INSTRUCTION_SIZE)) return false;
  if (!keep_constants(w)) return false;
  if (!keep_number(w, &count) || !keep_array(w, count, UPVALUE_SIZE)) return false;
  if (!keep_number(w, &count)) return false;
  for (; count > 0; count--) {
    if (!walk_function(w, depth + 1)) return false;
  }
  for (int i = 0; i < DEBUG_LISTS; i++) {
    if (!keep_number(w, &count) || count != 0) return false;
  }
  return true;
}

/// Whether all of it was understood. [-0, +0, m]
static bool walk(dump_walk *w) {
  if (w->size < sizeof dump_header || memcmp(w->bytes, dump_header, sizeof dump_header) != 0)
    return false;
  // The last byte is the number of upvalues.
  return keep(w, sizeof dump_header + HEADER_NUMBERS + 1) && walk_function(w, 0)
      && w->in == w->size;
}

int flowlua_write_code(lua_State *L, const void *bytes, size_t count, void *buffer) {
  (void)L;
  return flowlua_buffer_append(buffer, bytes, count) ? 0 : 1;
}

/// Appends the code of the function on top, without lines if they are understood. [-0, +0, m]
static bool put_without_lines(lua_State *L, flowlua_buffer *out) {
  size_t start = out->count;
  if (lua_dump(L, flowlua_write_code, out, 1) != 0) flowlua_raise_memory(L);
  dump_walk w = {.bytes = out->bytes + start, .size = out->count - start};
  if (!walk(&w)) return false;
  out->count = start + w.out;
  return true;
}

/// Appends the form of what a text returns. false when the dump isn't understood. [-0, +0, m]
static bool put_sample(lua_State *L, flowlua_buffer *out, const char *text, size_t *count) {
  size_t start = out->count;
  int top = lua_gettop(L);
  if (luaL_loadbufferx(L, text, strlen(text), "=?", "t") != LUA_OK) lua_error(L);
  bool is_understood = put_without_lines(L, out);
  lua_settop(L, top);
  *count = out->count - start;
  return is_understood;
}

/// Whether the names of the string constants of a sample are found. [-0, +0, m]
static bool finds_constants(lua_State *L, uint8_t *bytes, size_t count) {
  lua_createtable(L, 2, 0);
  dump_walk w = {.bytes = bytes, .size = count, .L = L, .list = lua_gettop(L)};
  bool is_found = walk(&w) && lua_rawlen(L, w.list) == 2;
  for (int i = 1; is_found && i <= 2; i++) {
    lua_rawgeti(L, w.list, i);
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, NULL) : "";
    is_found = strcmp(name, i == 1 ? "outside" : "inside") == 0;
    lua_settop(L, w.list);
  }
  lua_settop(L, w.list - 1);
  return is_found;
}

/// Whether dumps look as expected: other lines and other names of locals change nothing, another constant
/// does. The appended bytes stay for the caller to remove. [-0, +0, m]
static bool are_dumps_as_expected(lua_State *L, flowlua_buffer *out) {
  static const char *const samples[] = {
      "local a, b = ...\nreturn outside, function(c) return a + c, b.inside, 7, 1.5e300, true end",
      "\n\n-- Moved.\nlocal d, e = ...\n\nreturn outside,\nfunction(f)\nreturn d + f, e.inside, "
      "7,\n"
      "1.5e300, true end",
      "local a, b = ...\nreturn outside, function(c) return a + c, b.inside, 8, 1.5e300, true end",
  };
  size_t starts[3], counts[3];
  for (int i = 0; i < 3; i++) {
    starts[i] = out->count;
    if (!put_sample(L, out, samples[i], &counts[i])) return false;
  }
  const uint8_t *first = out->bytes + starts[0];
  bool moved_is_same =
      counts[0] == counts[1] && memcmp(first, out->bytes + starts[1], counts[0]) == 0;
  bool other_is_same =
      counts[0] == counts[2] && memcmp(first, out->bytes + starts[2], counts[0]) == 0;
  return moved_is_same && !other_is_same && finds_constants(L, out->bytes + starts[0], counts[0]);
}

bool flowlua_knows_dumps(encoder *e, lua_State *L) {
  flowlua_state *state = e->state;
  if (state->dumps == LAYOUT_UNKNOWN) {
    size_t start = e->out->count;
    bool is_known = (state->withheld & FLOWLUA_DUMP_LAYOUT) == 0 && lua_version(L) == 504
        && are_dumps_as_expected(L, e->out);
    e->out->count = start;
    state->dumps = is_known ? LAYOUT_EXPECTED : LAYOUT_OTHER;
  }
  return state->dumps == LAYOUT_EXPECTED;
}

void flowlua_put_code_form(encoder *e, lua_State *L) {
  size_t start = e->out->count;
  // A dump may still be one that isn't understood, such as bytecode that a script has loaded.
  if (flowlua_knows_dumps(e, L) && put_without_lines(L, e->out)) return;
  e->out->count = start;
  if (lua_dump(L, flowlua_write_code, e->out, 1) != 0) flowlua_raise_memory(L);
}

bool flowlua_push_constants(encoder *e, lua_State *L, size_t offset, size_t size) {
  lua_createtable(L, 0, 0);
  dump_walk w = {.bytes = e->out->bytes + offset, .size = size, .L = L, .list = lua_gettop(L)};
  if (flowlua_knows_dumps(e, L)) {
    // The check may have moved the bytes.
    w.bytes = e->out->bytes + offset;
    if (walk(&w)) return true;
  }
  lua_settop(L, -2);
  return false;
}
