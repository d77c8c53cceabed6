// From Lua values to the bytes of JSON, without recursion and without running metamethods.
#include "codec.h"
#include "json_memory.h"
#include "json_numbers.h"
#include "json_text.h"

enum {
  /// The members of a smaller object are sorted on the stack, those of a larger one by a table of its keys.
  STACKED_MEMBERS = 128,
  INLINE_WRITES = 32,
  /// What a writer needs on the stack at each level beside members.
  LEVEL_ROOM = 12,
};

/// How the values of a table are visited.
enum {
  WRITE_NOTHING,       // it is empty
  WRITE_LIST,          // by `lua_next`, which comes to 1, 2, …; its key stands above the table
  WRITE_INDEXED_LIST,  // by index, as that order is another one
  WRITE_MEMBERS,       // by `lua_next`, as above
  WRITE_SORTED,        // keys and values stand above the table, `order` says in which order
  WRITE_SORTED_KEYS,   // a table of the sorted keys stands above the table
};

/// A table that is being written.
typedef struct written_table {
  const void *identity;
  int place;
  uint8_t way;
  bool is_array;
  bool has_value;     // one was written
  uint32_t order;     // where its order begins
  lua_Integer next;   // how many values were begun
  lua_Integer count;  // how many there are, where that is known
} written_table;

/// A member of an object that is sorted: by its first eight bytes, then by all.
typedef struct sorted_member {
  uint64_t prefix;
  const char *key;
  size_t count;
  int32_t place;
} sorted_member;

typedef struct json_writer {
  lua_State *L;
  flowlua_state *state;
  const flowlua_json_writing *options;
  flowlua_json_error *error;
  json_memory out;
  json_memory order;  // sorted_member
  json_memory more_tables;
  written_table *tables;
  int32_t depth, capacity;
  bool has_failed;
  bool has_secret;
  flowlua_value held;  // of a secret, until it is written
  written_table few[INLINE_WRITES];
} json_writer;

// MARK: - Errors

static void append_path(flowlua_json_error *error, const char *text, size_t count) {
  size_t used = strlen(error->path), room = sizeof error->path - 4;
  if (error->is_path_cut) return;
  error->is_path_cut = count > room - used;
  if (error->is_path_cut) memcpy(error->path + used, "...", 3);
  else
    for (size_t i = 0; i < count; i++) error->path[used + i] = text[i] == 0 ? '?' : text[i];
}

static bool is_name(const char *text, size_t count) {
  if (count == 0 || (text[0] >= '0' && text[0] <= '9')) return false;
  for (size_t i = 0; i < count; i++) {
    char c = text[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

/// The way to the value that a table is at. [-0, +0, -]
static void append_step(json_writer *w, const written_table *table) {
  flowlua_json_error *error = w->error;
  const char *key = NULL;
  size_t count = 0;
  char digits[FLOWLUA_NUMBER_TEXT + 2];
  if (table->way == WRITE_SORTED) {
    const sorted_member *member =
        (const sorted_member *)w->order.bytes + table->order + (table->next - 1);
    key = member->key;
    count = member->count;
  } else if (table->way == WRITE_MEMBERS || table->way == WRITE_SORTED_KEYS) {
    int place = table->place + (table->way == WRITE_MEMBERS ? 1 : 2);
    key = flowlua_bytes(w->L, place, &count);
  }
  if (key == NULL) {
    digits[0] = '[';
    size_t written = 1 + flowlua_write_integer(digits + 1, table->next);
    digits[written++] = ']';
    append_path(error, digits, written);
  } else if (is_name(key, count)) {
    if (error->path[0] != 0) append_path(error, ".", 1);
    append_path(error, key, count);
  } else {
    append_path(error, "[\"", 2);
    append_path(error, key, count > 60 ? 60 : count);
    append_path(error, "\"]", 2);
  }
}

/// Notes why a value can't be written, and the way to it: through the tables that are being written, but
/// the last `without`. Returns false. [-0, +0, -]
static bool fail_outside(json_writer *w, const char *problem, int32_t without) {
  w->has_failed = true;
  w->error->problem = problem;
  w->error->hint = NULL;
  w->error->is_path_cut = false;
  memset(w->error->path, 0, sizeof w->error->path);
  for (int32_t i = 0; i < w->depth - without; i++) append_step(w, &w->tables[i]);
  return false;
}

static bool fail(json_writer *w, const char *problem) { return fail_outside(w, problem, 0); }

static bool fail_with_hint(json_writer *w, const char *problem, const char *hint) {
  fail(w, problem);
  w->error->hint = hint;
  return false;
}

static bool fail_text(json_writer *w) {
  return fail_with_hint(
      w, "a string that isn't UTF-8", "invalid = \"replace\" replaces such bytes");
}

/// The same of the table that is being written.
static bool fail_table(json_writer *w, const char *problem) { return fail_outside(w, problem, 1); }

/// The same of the value on top, whose type is the problem.
static bool fail_type(json_writer *w) {
  size_t count = 0;
  const char *name = flowlua_type_name(w->state, w->L, -1, &count);
  if (count >= sizeof w->error->type_name) count = sizeof w->error->type_name - 1;
  memcpy(w->error->type_name, name, count);
  return fail(w, NULL);
}

// MARK: - Scalars

static inline void put(json_writer *w, const char *text, size_t count) {
  memcpy(json_space(w->L, &w->out, count), text, count);
  w->out.count += count;
}

static inline void put_byte_of(json_writer *w, char byte) {
  *json_space(w->L, &w->out, 1) = byte;
  w->out.count += 1;
}

/// Writes a string in quotes. false for bytes that aren't UTF-8. [-0, +0, m]
static bool write_string(json_writer *w, const char *at, size_t count) {
  json_memory *out = &w->out;
  const char *end = at + count;
  char *to = json_space(w->L, out, count + FLOWLUA_ESCAPED + 2);
  *to++ = '"';
  // Most strings are plain.
  size_t plain = (size_t)(json_skip_plain(at, end) - at);
  memcpy(to, at, plain);
  out->count += 1 + plain;
  at += plain;
  while (at < end) {
    json_space(w->L, out, (size_t)(end - at) + FLOWLUA_ESCAPED + 1);
    size_t room = out->capacity - out->count - 1;
    bool is_valid = true;
    out->count += flowlua_json_characters(
        out->bytes + out->count, room, &at, end, w->options->is_ascii, w->options->replaces_invalid,
        &is_valid);
    if (!is_valid) return false;
  }
  put_byte_of(w, '"');
  return true;
}

static inline void put_integer(json_writer *w, lua_Integer number) {
  w->out.count += flowlua_write_integer(json_space(w->L, &w->out, FLOWLUA_NUMBER_TEXT), number);
}

static inline bool put_float(json_writer *w, lua_Number number) {
  if (number != number) return fail(w, "NaN");
  if (number - number != 0) return fail(w, "an infinity");
  w->out.count += flowlua_write_float(json_space(w->L, &w->out, FLOWLUA_NUMBER_TEXT), number);
  return true;
}

static bool put_number(json_writer *w, int index) {
  lua_State *L = w->L;
  if (!lua_isinteger(L, index)) return put_float(w, lua_tonumberx(L, index, NULL));
  put_integer(w, lua_tointegerx(L, index, NULL));
  return true;
}

/// Writes the value at an index if it is a scalar; false for anything else, and after a failure.
/// [-0, +0, m]
static inline bool write_scalar(json_writer *w, int index) {
  lua_State *L = w->L;
  switch (lua_type(L, index)) {
  case LUA_TSTRING: {
    size_t count;
    const char *bytes = lua_tolstring(L, index, &count);
    return write_string(w, bytes, count) || fail_text(w);
  }
  case LUA_TNUMBER: return put_number(w, index);
  case LUA_TBOOLEAN:
    if (lua_toboolean(L, index)) put(w, "true", 4);
    else put(w, "false", 5);
    return true;
  case LUA_TLIGHTUSERDATA:
    if (lua_touserdata(L, index) != NULL) return false;
    put(w, "null", 4);
    return true;
  default: return false;
  }
}

// MARK: - Tables

static void put_line(json_writer *w, int32_t level) {
  size_t count = (size_t)level * (size_t)w->options->indent;
  char *to = json_space(w->L, &w->out, count + 1);
  *to = '\n';
  memset(to + 1, ' ', count);
  w->out.count += count + 1;
}

/// What stands before a value of a table. [-0, +0, m]
static inline void begin_item(json_writer *w, written_table *table) {
  if (table->has_value) put_byte_of(w, ',');
  table->has_value = true;
  if (w->options->indent > 0) put_line(w, w->depth);
}

/// The same with the key of a member. [-0, +0, m]
static bool begin_member(json_writer *w, written_table *table, const char *key, size_t count) {
  begin_item(w, table);
  if (!write_string(w, key, count)) return fail_table(w, "a key that isn't UTF-8");
  put_byte_of(w, ':');
  if (w->options->indent > 0) put_byte_of(w, ' ');
  return true;
}

static void end_table(json_writer *w, written_table *table) {
  if (table->has_value && w->options->indent > 0) put_line(w, w->depth - 1);
  put_byte_of(w, table->is_array ? ']' : '}');
  if (table->way == WRITE_SORTED) w->order.count = table->order * sizeof(sorted_member);
  // The table itself, too.
  lua_settop(w->L, table->place - 1);
  w->depth -= 1;
}

static inline bool comes_before(const sorted_member *a, const sorted_member *b) {
  if (a->prefix != b->prefix) return a->prefix < b->prefix;
  if (a->count <= 8 || b->count <= 8) return a->count < b->count;
  size_t count = a->count < b->count ? a->count : b->count;
  int order = memcmp(a->key + 8, b->key + 8, count - 8);
  return order != 0 ? order < 0 : a->count < b->count;
}

/// The first eight bytes as a number of the same order.
static inline uint64_t prefix_of(const char *key, size_t count) {
  uint64_t word = 0;
  if (count >= 8) memcpy(&word, key, 8);
  else
    for (size_t i = 0; i < count; i++) word |= (uint64_t)(uint8_t)key[i] << (8 * i);
  return __builtin_bswap64(word);
}

/// By inserting, as there are few.
static void sort_members(sorted_member *members, int count) {
  for (int i = 1; i < count; i++) {
    sorted_member member = members[i];
    int at = i;
    for (; at > 0 && comes_before(&member, &members[at - 1]); at--) members[at] = members[at - 1];
    members[at] = member;
  }
}

/// Pushes the keys and values of the object on top, as long as they are few, and sorts them; a table of its
/// sorted keys when they are many. The first key and value were pushed. false for a key that isn't a string.
/// [-0, +n, m]
static bool sort_object(json_writer *w, written_table *table) {
  lua_State *L = w->L;
  int place = table->place;
  flowlua_require_room(L, 2 * STACKED_MEMBERS + LEVEL_ROOM, "JSON is nested too deeply");
  table->order = (uint32_t)(w->order.count / sizeof(sorted_member));
  int count = 0;
  do {
    if (lua_type(L, -2) != LUA_TSTRING) return false;
    if (count == STACKED_MEMBERS) {
      w->order.count = table->order * sizeof(sorted_member);
      lua_settop(L, place);
      table->way = WRITE_SORTED_KEYS;
      table->count = flowlua_push_sorted_keys(L, place, 0);
      return true;
    }
    sorted_member *member = (sorted_member *)json_space(L, &w->order, sizeof(sorted_member));
    w->order.count += sizeof(sorted_member);
    member->key = lua_tolstring(L, -2, &member->count);
    member->prefix = prefix_of(member->key, member->count);
    member->place = place + 2 * ++count;
    lua_pushvalue(L, -2);
  } while (lua_next(L, place));
  sort_members((sorted_member *)w->order.bytes + table->order, count);
  table->way = WRITE_SORTED;
  table->count = count;
  return true;
}

/// Whether the keys of the table on top are 1 to n; `count` is n. [-0, +0, -]
static bool is_whole_list(lua_State *L, int place, lua_Integer *count) {
  lua_Integer length = (lua_Integer)lua_rawlen(L, place), keys = 0;
  lua_pushnil(L);
  while (lua_next(L, place)) {
    lua_settop(L, -2);
    lua_Integer key = lua_isinteger(L, -1) ? lua_tointegerx(L, -1, NULL) : 0;
    if (key < 1 || key > length) {
      lua_settop(L, place);
      return false;
    }
    keys += 1;
  }
  *count = length;
  return keys == length;
}

/// Why a table without a whole list in it, or with a mark that it doesn't match, can't be written.
/// [-0, +0, -]
static bool fail_keys(json_writer *w, int place) {
  lua_State *L = w->L;
  bool has_string = false, has_integer = false, has_other = false;
  lua_settop(L, place);
  lua_pushnil(L);
  while (lua_next(L, place)) {
    lua_settop(L, -2);
    if (lua_type(L, -1) == LUA_TSTRING) has_string = true;
    else if (lua_isinteger(L, -1) && lua_tointegerx(L, -1, NULL) >= 1) has_integer = true;
    else has_other = true;
  }
  int32_t mark = flowlua_json_mark_of(w->state, L, place);
  if (mark == FLOWLUA_JSON_OBJECT && has_integer)
    return fail_table(w, "an object with an index as a key");
  if (mark == FLOWLUA_JSON_ARRAY && has_string)
    return fail_table(w, "an array with a key that isn't an index");
  if (has_other) return fail_table(w, "a table with a key that is neither a string nor an index");
  if (has_string && has_integer) return fail_table(w, "a table with both indices and string keys");
  return fail_table(w, has_string ? "a table that changed meanwhile" : "an array with holes");
}

/// Writes the rest of a table that has nothing but numbers as 1, 2, …. [-0, +0, m]
static bool write_numbers(
    json_writer *w, written_table *table, const list_slot *slots, size_t count) {
  table->is_array = true;
  put_byte_of(w, '[');
  size_t room = FLOWLUA_NUMBER_TEXT + 2 + (size_t)w->depth * (size_t)w->options->indent;
  while ((size_t)table->next < count) {
    lua_Integer integer;
    lua_Number number;
    if (w->out.capacity - w->out.count < room) {
      // Where memory is short this collects, and a finalizer could change the table.
      json_space(w->L, &w->out, room);
      slots = flowlua_list_slots(w->state, w->L, table->place, &count);
      if (slots == NULL) return fail_table(w, "a table that changed meanwhile");
      continue;
    }
    begin_item(w, table);
    if (flowlua_slot_number(slots, (size_t)table->next++, &integer, &number))
      put_integer(w, integer);
    else if (!put_float(w, number)) return false;
  }
  return true;
}

/// Writes the beginning of the table on top, which stays there. [-0, +n, m]
static bool begin_table(json_writer *w) {
  lua_State *L = w->L;
  const flowlua_json_writing *options = w->options;
  if (w->depth == w->capacity) {
    size_t held = sizeof(written_table) * (size_t)w->capacity;
    json_space(L, &w->more_tables, 2 * held);
    if (w->tables == w->few) memcpy(w->more_tables.bytes, w->few, held);
    w->tables = (written_table *)w->more_tables.bytes;
    w->capacity *= 2;
  }
  flowlua_require_room(L, LEVEL_ROOM, "JSON is nested too deeply");
  int place = lua_gettop(L);
  int32_t mark = flowlua_json_mark_of(w->state, L, place);
  if (mark == FLOWLUA_JSON_OTHER && flowlua_push_viewed(L, place)) lua_replace(L, place);
  const void *identity = lua_topointer(L, place);
  for (int32_t i = 0; i < w->depth; i++)
    if (w->tables[i].identity == identity) return fail(w, "a table that contains itself");
  if (w->depth >= options->max_depth) return fail(w, "more levels than max_depth allows");
  written_table *table = &w->tables[w->depth++];
  *table = (written_table){
      .identity = identity,
      .place = place,
      .is_array = mark == FLOWLUA_JSON_ARRAY,
  };
  // Room for the bracket: where memory is short this collects, and a finalizer could change the table.
  json_space(L, &w->out, 1);
  size_t count = 0;
  const list_slot *slots =
      mark == FLOWLUA_JSON_OBJECT ? NULL : flowlua_list_slots(w->state, L, place, &count);
  if (slots != NULL && count > 0) return write_numbers(w, table, slots, count);
  lua_pushnil(L);
  if (!lua_next(L, place)) {
    if (mark != FLOWLUA_JSON_ARRAY && mark != FLOWLUA_JSON_OBJECT)
      table->is_array = options->empty_is_array;
    put_byte_of(w, table->is_array ? '[' : '{');
    return true;
  }
  bool is_object =
      mark == FLOWLUA_JSON_OBJECT || (mark != FLOWLUA_JSON_ARRAY && lua_type(L, -2) == LUA_TSTRING);
  bool begins_list = lua_isinteger(L, -2) && lua_tointegerx(L, -2, NULL) == 1;
  table->is_array = !is_object;
  put_byte_of(w, is_object ? '{' : '[');
  if (is_object && !options->is_unsorted) return sort_object(w, table) || fail_keys(w, place);
  lua_settop(L, place);
  lua_pushnil(L);
  if (is_object) {
    table->way = WRITE_MEMBERS;
    return true;
  }
  table->way = WRITE_LIST;
  if (!begins_list) {
    lua_settop(L, place);
    table->way = WRITE_INDEXED_LIST;
    return is_whole_list(L, place, &table->count) || fail_keys(w, place);
  }
  return true;
}

/// Continues a list by index, as its keys come in another order. [-n, +0, m]
static bool begin_indexed_list(json_writer *w, written_table *table) {
  lua_settop(w->L, table->place);
  if (!is_whole_list(w->L, table->place, &table->count)) return fail_keys(w, table->place);
  table->way = WRITE_INDEXED_LIST;
  // The values before this one are written.
  table->next -= 1;
  return true;
}

/// Writes the values of the innermost table from the next one on, up to one that isn't a scalar, which is
/// pushed; `is_over` when there is none. [-0, +(0|1), m]
static bool write_next(json_writer *w, written_table *table, bool *is_over) {
  lua_State *L = w->L;
  int place = table->place;
  switch (table->way) {
  case WRITE_LIST:
    while (lua_next(L, place)) {
      table->next += 1;
      if (!lua_isinteger(L, -2) || lua_tointegerx(L, -2, NULL) != table->next)
        return begin_indexed_list(w, table) && write_next(w, table, is_over);
      begin_item(w, table);
      if (!write_scalar(w, -1)) return !w->has_failed;
      lua_settop(L, -2);
    }
    break;
  case WRITE_INDEXED_LIST:
    while (table->next < table->count) {
      lua_rawgeti(L, place, ++table->next);
      begin_item(w, table);
      if (!write_scalar(w, -1)) return !w->has_failed;
      lua_settop(L, place);
    }
    break;
  case WRITE_MEMBERS:
    while (lua_next(L, place)) {
      if (lua_type(L, -2) != LUA_TSTRING) return fail_keys(w, place);
      table->next += 1;
      size_t count;
      const char *key = lua_tolstring(L, -2, &count);
      if (!begin_member(w, table, key, count)) return false;
      if (!write_scalar(w, -1)) return !w->has_failed;
      lua_settop(L, -2);
    }
    break;
  case WRITE_SORTED:
    while (table->next < table->count) {
      const sorted_member *member =
          (const sorted_member *)w->order.bytes + table->order + table->next;
      table->next += 1;
      if (!begin_member(w, table, member->key, member->count)) return false;
      if (write_scalar(w, member->place)) continue;
      if (!w->has_failed) lua_pushvalue(L, member->place);
      return !w->has_failed;
    }
    break;
  case WRITE_SORTED_KEYS:
    while (table->next < table->count) {
      lua_settop(L, place + 1);
      lua_rawgeti(L, place + 1, table->next);
      table->next += 1;
      lua_pushvalue(L, -1);
      lua_rawget(L, place);
      size_t count;
      const char *key = flowlua_bytes(L, -2, &count);
      if (key == NULL) return fail_keys(w, place);
      if (!begin_member(w, table, key, count)) return false;
      if (!write_scalar(w, -1)) return !w->has_failed;
    }
    break;
  default: break;
  }
  *is_over = true;
  return true;
}

/// Writes the secret on top, or puts what it holds in its place. [-0, +0, m]
static bool write_secret(json_writer *w, void *secret, bool *is_written) {
  lua_State *L = w->L;
  flowlua_state *state = w->state;
  if (!w->options->shows_secrets)
    return fail_with_hint(w, "a secret", "secrets = true encodes what it holds");
  w->has_secret = true;
  w->held = (flowlua_value){0};
  if (!state->callbacks.unwrap(state, secret, &w->held)) return fail_type(w);
  if (w->held.kind == FLOWLUA_STRING) {
    *is_written = true;
    if (!write_string(w, w->held.pointer, (size_t)w->held.integer)) return fail_text(w);
  } else {
    flowlua_push_plain(L, state, &w->held);
    lua_replace(L, -2);
  }
  flowlua_dispose(state, &w->held);
  w->held = (flowlua_value){0};
  return true;
}

/// Writes the value on top and takes it, or begins with it as a table. [-(0|1), +n, m]
static bool write_top(json_writer *w) {
  lua_State *L = w->L;
  bool is_written = write_scalar(w, -1);
  if (!is_written && !w->has_failed && lua_type(L, -1) == LUA_TUSERDATA
      && w->state->secret_type != 0) {
    void *secret = flowlua_object(w->state, L, -1, w->state->secret_type);
    if (secret != NULL) {
      if (!write_secret(w, secret, &is_written)) return false;
      if (!is_written) is_written = write_scalar(w, -1);
    }
  }
  if (is_written) {
    lua_settop(L, -2);
    return true;
  }
  if (w->has_failed) return false;
  return lua_type(L, -1) == LUA_TTABLE ? begin_table(w) : fail_type(w);
}

static bool write_value(json_writer *w) {
  if (!write_top(w)) return false;
  while (w->depth > 0) {
    written_table *table = &w->tables[w->depth - 1];
    bool is_over = false;
    if (!write_next(w, table, &is_over)) return false;
    if (is_over) end_table(w, table);
    else if (!write_top(w)) return false;
  }
  return true;
}

/// Argument: the value, the writer. [-2, +1, m]
static int write_json(lua_State *L) {
  json_writer *w = lua_touserdata(L, 2);
  flowlua_require_room(L, LUA_MINSTACK, "JSON");
  lua_settop(L, 1);
  if (!write_value(w)) return 0;
  lua_pushlstring(L, w->out.bytes, w->out.count);
  return 1;
}

int32_t flowlua_json_encode(
    flowlua_state *state, lua_State *L, int32_t index, const flowlua_json_writing *options,
    flowlua_json_error *error, bool *has_secret) {
  json_writer w;
  memset(&w, 0, offsetof(json_writer, few));
  w.L = L;
  w.state = state;
  w.options = options;
  w.error = error;
  w.tables = w.few;
  w.capacity = INLINE_WRITES;
  index = lua_absindex(L, index);
  int32_t room = flowlua_make_room(state, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  lua_pushcfunction(L, write_json);
  lua_pushvalue(L, index);
  lua_pushlightuserdata(L, &w);
  int32_t status = lua_pcall(L, 2, 1, 0);
  flowlua_json_free(L, &w.out);
  flowlua_json_free(L, &w.order);
  flowlua_json_free(L, &w.more_tables);
  flowlua_dispose(state, &w.held);
  *has_secret = w.has_secret;
  if (status == LUA_OK && w.has_failed) {
    lua_settop(L, -2);
    return FLOWLUA_NOT_ENCODED;
  }
  return status;
}
