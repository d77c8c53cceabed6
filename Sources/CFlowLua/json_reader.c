// From the bytes of JSON to Lua values, without recursion.
//
// The project has its own because Debian 12 has no library that fits: yyjson is absent, simdjson is a
// shared C++ library without a writer, lua-cjson makes floats of integers, accepts invalid text and
// writes an empty list as an object. Most of the time goes into Lua's tables, so going straight from
// bytes to Lua values, without a document in between, is also the fastest way.
//
// The values of a small array or object wait on Lua's stack until it ends, so that its table is made in
// the right size; those of a larger one go into the table as they come.
#include "json_memory.h"
#include "json_numbers.h"
#include "json_text.h"

enum {
  /// How many values of an array, or members of an object, wait on the stack.
  PENDING_ITEMS = 128,
  PENDING_MEMBERS = 64,
  INLINE_LEVELS = 32,
  /// Members with the same keys come again and again: so many keys are looked up without making a string.
  KNOWN_KEY_BITS = 7,
  KNOWN_KEYS = 1 << KNOWN_KEY_BITS,
  /// From texts of this length on.
  KEYS_KNOWN_FROM = 1024,
  /// Longer keys aren't strings that Lua has once.
  KNOWN_KEY_LENGTH = SHORT_STRING,
};

/// An array or object that has begun. Its place on the stack is nil until it has a table; the values or
/// members that wait stand above it.
typedef struct json_level {
  int place;
  int waiting;  // values, or members
  bool is_array;
  bool has_table;
  lua_Integer count;  // of an array's values in the table
} json_level;

/// A key of the text: its first and its last eight bytes, or as many as it has, say all of it
/// when it has no more than 16.
typedef struct known_key {
  uint64_t first, last;
  const char *bytes;
  size_t count;
} known_key;

typedef struct json_reader {
  lua_State *L;
  flowlua_state *state;
  const flowlua_json_reading *options;
  flowlua_json_error *error;
  const char *start, *end;
  const char *at;
  json_memory text;  // of strings with escapes
  json_memory more_levels;
  json_level *levels;
  int32_t depth;
  int32_t level_capacity;
  int mark;  // the place of the arrays' metatable
  int keys;  // the place of the first known key; 0 without
  bool has_failed;
  json_level few[INLINE_LEVELS];
  known_key known[KNOWN_KEYS];
} json_reader;

/// Notes what is wrong, and where. Returns false.
static bool fail(json_reader *r, const char *at, const char *problem) {
  r->has_failed = true;
  r->error->problem = problem;
  r->error->offset = (size_t)(at - r->start) + 1;
  r->error->line = 1;
  const char *line = r->start;
  for (const char *each = r->start; each < at; each++) {
    if (*each != '\n') continue;
    r->error->line += 1;
    line = each + 1;
  }
  r->error->column = 1;
  for (const char *each = line; each < at; each++)
    if (((uint8_t)*each & 0xC0) != 0x80) r->error->column += 1;
  r->error->is_at_end = at == r->end;
  return false;
}

// MARK: - Strings

/// The value of four hexadecimal digits; -1 when they aren't. The byte that ends the text is no digit.
static int32_t hex_digits(const char *at) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    char digit = at[i];
    int32_t number = digit >= '0' && digit <= '9' ? digit - '0'
        : digit >= 'a' && digit <= 'f'            ? digit - 'a' + 10
        : digit >= 'A' && digit <= 'F'            ? digit - 'A' + 10
                                                  : -1;
    if (number < 0) return -1;
    value = value << 4 | number;
  }
  return value;
}

/// Reads what follows a backslash and writes what it means. [-0, +0, m]
static bool read_escape(json_reader *r, const char **at) {
  const char *here = *at;
  char plain;
  switch (here[1]) {
  case '"':
  case '\\':
  case '/': plain = here[1]; break;
  case 'b': plain = '\b'; break;
  case 'f': plain = '\f'; break;
  case 'n': plain = '\n'; break;
  case 'r': plain = '\r'; break;
  case 't': plain = '\t'; break;
  case 'u': {
    int32_t point = hex_digits(here + 2);
    if (point < 0) return fail(r, here, "expected four hexadecimal digits after '\\u'");
    *at = here + 6;
    if (point >= 0xD800 && point <= 0xDFFF) {
      int32_t low = here[6] == '\\' && here[7] == 'u' ? hex_digits(here + 8) : -1;
      if (point > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return fail(r, here, "expected a pair of surrogates, got half of one");
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      *at = here + 12;
    }
    char *to = json_space(r->L, &r->text, 4);
    r->text.count += flowlua_utf8_encode(to, (uint32_t)point);
    return true;
  }
  default: return fail(r, here, "expected an escape that JSON knows");
  }
  *json_space(r->L, &r->text, 1) = plain;
  r->text.count += 1;
  *at = here + 2;
  return true;
}

/// Looks at a string up to its closing quote, which is left. Its bytes are in the text, or, when it has
/// escapes, in the reader's memory. [-0, +0, m]
static bool scan_string(json_reader *r, const char **bytes, size_t *count) {
  const char *at = r->at;
  const char *run = at;  // what hasn't been copied
  bool is_copied = false;
  for (;;) {
    at = json_skip_plain(at, r->end);
    char special = *at;
    if (special == '"') break;
    if (special == '\\') {
      if (!is_copied) r->text.count = 0;
      is_copied = true;
      size_t length = (size_t)(at - run);
      memcpy(json_space(r->L, &r->text, length + 1), run, length);
      r->text.count += length;
      if (!read_escape(r, &at)) return false;
      run = at;
    } else if ((uint8_t)special >= 0x80) {
      // Characters of one script stand together.
      do {
        size_t length = utf8_length(at, r->end);
        if (length == 0) return fail(r, at, "expected UTF-8, got other bytes in a string");
        at += length;
      } while ((uint8_t)*at >= 0x80);
    } else {
      if (at == r->end) return fail(r, at, "expected '\"' at the end of a string");
      return fail(r, at, "expected an escape for a control character in a string");
    }
  }
  r->at = at;
  if (!is_copied) {
    *bytes = run;
    *count = (size_t)(at - run);
    return true;
  }
  size_t length = (size_t)(at - run);
  memcpy(json_space(r->L, &r->text, length + 1), run, length);
  r->text.count += length;
  *bytes = r->text.bytes;
  *count = r->text.count;
  return true;
}

/// Pushes a string whose opening quote was read. [-0, +1, m]
static bool read_string(json_reader *r) {
  const char *bytes;
  size_t count;
  if (!scan_string(r, &bytes, &count)) return false;
  r->at += 1;
  lua_pushlstring(r->L, bytes, count);
  return true;
}

/// Pushes a key whose opening quote was read. [-0, +1, m]
static bool read_key(json_reader *r) {
  const char *bytes;
  size_t count;
  if (!scan_string(r, &bytes, &count)) return false;
  const char *quote = r->at;
  r->at += 1;
  // A key with escapes stands elsewhere.
  bool is_knowable =
      r->keys != 0 && count - 1 < KNOWN_KEY_LENGTH && bytes + count == quote && r->end - bytes >= 8;
  if (!is_knowable) {
    lua_pushlstring(r->L, bytes, count);
    return true;
  }
  known_key key = {0, 0, bytes, count};
  memcpy(&key.first, bytes, 8);
  if (count < 8) key.first &= ((uint64_t)1 << (8 * count)) - 1;
  else memcpy(&key.last, bytes + count - 8, 8);
  uint64_t hash = (key.first ^ (key.last << 5 | key.last >> 59) ^ count) * 0x9E3779B97F4A7C15u;
  int slot = (int)(hash >> (64 - KNOWN_KEY_BITS));
  known_key *known = &r->known[slot];
  if (known->first == key.first && known->last == key.last && known->count == count
      && (count <= 16 || memcmp(known->bytes, bytes, count) == 0)) {
    lua_pushvalue(r->L, r->keys + slot);
    return true;
  }
  lua_pushlstring(r->L, bytes, count);
  lua_copy(r->L, -1, r->keys + slot);
  *known = key;
  return true;
}

// MARK: - Numbers

static inline bool is_digit(char byte) { return (uint8_t)(byte - '0') <= 9; }

/// Powers of ten that a float holds exactly.
static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// Pushes a number. [-0, +1, m]
static bool read_number(json_reader *r) {
  const char *start = r->at, *at = start;
  bool is_negative = *at == '-';
  if (is_negative) at += 1;
  if (!is_digit(*at)) return fail(r, at, "expected a digit");
  const char *digits = at;
  uint64_t value = 0;
  if (*at == '0') {
    at += 1;
    if (is_digit(*at)) return fail(r, at, "expected no digit after a leading zero");
  } else {
    while (is_digit(*at)) value = value * 10 + (uint64_t)(*at++ - '0');
  }
  ptrdiff_t count = at - digits;
  bool is_integer = true;
  int32_t exponent = 0;
  if (*at == '.') {
    const char *fraction = ++at;
    while (is_digit(*at)) value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == fraction) return fail(r, at, "expected a digit after the point");
    exponent = at - fraction > 1000 ? -1000 : -(int32_t)(at - fraction);
    count += at - fraction;
    is_integer = false;
  }
  if (*at == 'e' || *at == 'E') {
    at += 1;
    bool is_small = *at == '-';
    if (*at == '-' || *at == '+') at += 1;
    if (!is_digit(*at)) return fail(r, at, "expected a digit of the exponent");
    int32_t written = 0;
    for (; is_digit(*at); at++)
      if (written < 10000) written = written * 10 + (*at - '0');
    exponent += is_small ? -written : written;
    is_integer = false;
  }
  r->at = at;
  size_t length = (size_t)(at - start);
  if (is_integer && !(is_negative && *digits == '0')) {
    // 19 digits fit into 64 bits.
    if (count <= 18 || (count == 19 && value <= (uint64_t)INT64_MAX + is_negative)) {
      lua_pushinteger(r->L, (lua_Integer)(is_negative ? 0 - value : value));
      return true;
    }
    if (r->options->keeps_big) {
      lua_pushlstring(r->L, start, length);
      return true;
    }
  }
  double number;
  // Both are floats without loss, so that the result is the nearest one.
  if (count <= 19 && value <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
    number = (double)value;
    if (exponent < 0) number /= exact_powers[-exponent];
    else number *= exact_powers[exponent];
    if (is_negative) number = -number;
  } else if (!flowlua_read_float(start, length, &number)) {
    return fail(r, start, "expected a number that a float can hold");
  }
  lua_pushnumber(r->L, number);
  return true;
}

// MARK: - Arrays and objects

static inline void skip_space(json_reader *r) {
  while (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t') r->at += 1;
}

static bool begin_level(json_reader *r, bool is_array) {
  lua_State *L = r->L;
  if (r->depth >= r->options->max_depth)
    return fail(r, r->at, "nested deeper than max_depth allows");
  if (r->depth == r->level_capacity) {
    size_t held = sizeof(json_level) * (size_t)r->level_capacity;
    json_space(L, &r->more_levels, 2 * held);
    if (r->levels == r->few) memcpy(r->more_levels.bytes, r->few, held);
    r->levels = (json_level *)r->more_levels.bytes;
    r->level_capacity *= 2;
  }
  int32_t room = flowlua_make_room(r->state, L, PENDING_ITEMS + LUA_MINSTACK);
  if (room == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  if (room != LUA_OK) return fail(r, r->at, "nested deeper than Lua's stack has room for");
  lua_pushnil(L);
  r->levels[r->depth++] = (json_level){.place = lua_gettop(L), .is_array = is_array};
  r->at += 1;
  return true;
}

/// Gives the level that ends, or has too many values waiting, its table, and puts them into it.
/// [-waiting, +0, m]
static void settle(json_reader *r, json_level *level, int items, int members) {
  lua_State *L = r->L;
  lua_createtable(L, items, members);
  lua_copy(L, -1, level->place);
  lua_settop(L, -2);
  level->has_table = true;
  if (level->is_array) {
    lua_pushvalue(L, r->mark);
    lua_setmetatable(L, level->place);
    for (int i = level->waiting; i > 0; i--) lua_rawseti(L, level->place, i);
    level->count = level->waiting;
  } else {
    // In their order, as the last one of those with one key counts.
    int last = level->place + 2 * level->waiting;
    for (int key = level->place + 1; key < last; key += 2) {
      lua_pushvalue(L, key);
      lua_pushvalue(L, key + 1);
      lua_rawset(L, level->place);
    }
    lua_settop(L, level->place);
  }
  level->waiting = 0;
}

/// Takes the value on top into its array or object. [-1, +0, m]
static void take_value(json_reader *r, json_level *level) {
  lua_State *L = r->L;
  if (level->is_array) {
    if (level->has_table) {
      lua_rawseti(L, level->place, ++level->count);
    } else if (++level->waiting == PENDING_ITEMS) {
      settle(r, level, 2 * PENDING_ITEMS, 0);
    }
  } else if (level->has_table) {
    lua_rawset(L, level->place);
  } else if (++level->waiting == PENDING_MEMBERS) {
    settle(r, level, 0, 2 * PENDING_MEMBERS);
  }
}

/// Ends the innermost level: its table is on top. [-waiting, +0, m]
static void end_level(json_reader *r, json_level *level) {
  if (!level->has_table)
    settle(r, level, level->is_array ? level->waiting : 0, level->is_array ? 0 : level->waiting);
  r->depth -= 1;
  r->at += 1;
}

/// Pushes a member's key and skips the colon. [-0, +1, m]
static bool begin_member(json_reader *r, json_level *level) {
  lua_State *L = r->L;
  skip_space(r);
  const char *key = r->at;
  if (*key != '"') return fail(r, key, "expected a key in double quotes");
  r->at += 1;
  if (!read_key(r)) return false;
  if (r->options->is_strict) {
    // Here each member goes into the table at once: a null as itself, taken out at the end.
    if (!level->has_table) {
      lua_createtable(L, 0, 4);
      lua_replace(L, level->place);
      level->has_table = true;
    }
    lua_pushvalue(L, -1);
    if (lua_rawget(L, level->place) != LUA_TNIL)
      return fail(r, key, "expected a key that the object doesn't have yet");
    lua_settop(L, -2);
  }
  skip_space(r);
  if (*r->at != ':') return fail(r, r->at, "expected ':'");
  r->at += 1;
  return true;
}

/// Takes nulls out of an object at a place. [-0, +0, -]
static void drop_nulls(lua_State *L, int place) {
  lua_pushnil(L);
  while (lua_next(L, place)) {
    bool is_null = lua_type(L, -1) == LUA_TLIGHTUSERDATA && lua_touserdata(L, -1) == NULL;
    lua_settop(L, -2);
    if (is_null) {
      lua_pushvalue(L, -1);
      lua_pushnil(L);
      lua_rawset(L, place);
    }
  }
}

static bool read_word(json_reader *r, const char *word, size_t count, const char *problem) {
  if ((size_t)(r->end - r->at) < count || memcmp(r->at, word, count) != 0)
    return fail(r, r->at, problem);
  r->at += count;
  return true;
}

/// Pushes what `null` is where it stands: nil leaves a member out. [-0, +1, -]
static void push_null(json_reader *r) {
  bool is_member = r->depth > 0 && !r->levels[r->depth - 1].is_array;
  if (is_member && !r->options->keeps_null && !r->options->is_strict) lua_pushnil(r->L);
  else lua_pushlightuserdata(r->L, NULL);
}

/// Pushes a value that is neither an array nor an object. [-0, +1, m]
static bool read_scalar(json_reader *r) {
  switch (*r->at) {
  case '"': r->at += 1; return read_string(r);
  case '-':
  case '0' ... '9': return read_number(r);
  case 't':
    if (!read_word(r, "true", 4, "expected 'true'")) return false;
    lua_pushboolean(r->L, true);
    return true;
  case 'f':
    if (!read_word(r, "false", 5, "expected 'false'")) return false;
    lua_pushboolean(r->L, false);
    return true;
  case 'n':
    if (!read_word(r, "null", 4, "expected 'null'")) return false;
    push_null(r);
    return true;
  case '/': return fail(r, r->at, "expected a value; JSON has no comments");
  case '\'': return fail(r, r->at, "expected a value; strings are written in double quotes");
  default: return fail(r, r->at, "expected a value");
  }
}

/// Reads one value. [-0, +1, m]
static bool read_value(json_reader *r) {
  for (;;) {
    skip_space(r);
    char first = *r->at;
    if (first == '[' || first == '{') {
      if (!begin_level(r, first == '[')) return false;
      json_level *level = &r->levels[r->depth - 1];
      skip_space(r);
      if (*r->at != (level->is_array ? ']' : '}')) {
        if (!level->is_array && !begin_member(r, level)) return false;
        continue;
      }
      end_level(r, level);
    } else if (!read_scalar(r)) {
      return false;
    }
    // A value is complete: what follows it?
    for (;;) {
      if (r->depth == 0) return true;
      json_level *level = &r->levels[r->depth - 1];
      take_value(r, level);
      skip_space(r);
      char next = *r->at;
      if (next == ',') {
        r->at += 1;
        if (!level->is_array && !begin_member(r, level)) return false;
        break;
      }
      if (next != (level->is_array ? ']' : '}'))
        return fail(r, r->at, level->is_array ? "expected ',' or ']'" : "expected ',' or '}'");
      if (r->options->is_strict && !level->is_array && !r->options->keeps_null)
        drop_nulls(r->L, level->place);
      end_level(r, level);
    }
  }
}

static bool read_text(json_reader *r) {
  const char *start = r->start;
  if (r->end - start >= 3 && memcmp(start, "\xEF\xBB\xBF", 3) == 0)
    return fail(r, start, "expected JSON without a byte-order mark");
  if (r->end - start >= 2
      && (memcmp(start, "\xFE\xFF", 2) == 0 || memcmp(start, "\xFF\xFE", 2) == 0))
    return fail(r, start, "expected UTF-8, got the byte-order mark of UTF-16");
  if (!read_value(r)) return false;
  skip_space(r);
  return r->at == r->end || fail(r, r->at, "expected the end of the text");
}

static int read_json(lua_State *L) {
  json_reader *r = lua_touserdata(L, 1);
  flowlua_require_room(L, KNOWN_KEYS + LUA_MINSTACK, "JSON");
  lua_settop(L, 0);
  flowlua_push_json_mark(L, r->state, true);
  r->mark = 1;
  if (r->end - r->start >= KEYS_KNOWN_FROM) {
    r->keys = 2;
    memset(r->known, 0, sizeof r->known);
    lua_settop(L, 1 + KNOWN_KEYS);
  }
  return read_text(r) ? 1 : 0;
}

int32_t flowlua_json_decode(
    flowlua_state *state, const char *bytes, size_t count, const flowlua_json_reading *options,
    flowlua_json_error *error) {
  lua_State *L = state->running;
  json_reader r;
  r.L = L;
  r.state = state;
  r.options = options;
  r.error = error;
  r.start = r.at = bytes;
  r.end = bytes + count;
  r.text = r.more_levels = (json_memory){0};
  r.levels = r.few;
  r.level_capacity = INLINE_LEVELS;
  r.depth = 0;
  r.keys = 0;
  r.has_failed = false;
  // For the function, too: there it would be an error without a status of its own.
  int32_t room = flowlua_make_room(state, L, KNOWN_KEYS + 3 * LUA_MINSTACK);
  if (room != LUA_OK) return room;
  lua_pushcfunction(L, read_json);
  lua_pushlightuserdata(L, &r);
  int32_t status = lua_pcall(L, 1, 1, 0);
  flowlua_json_free(L, &r.text);
  flowlua_json_free(L, &r.more_levels);
  if (status == LUA_OK && r.has_failed) {
    lua_settop(L, -2);
    return FLOWLUA_MALFORMED;
  }
  return status;
}
