// From Lua values to the bytes of JSON, without recursion and without running metamethods.
//
// Nearly all values are written from where Lua keeps them (json_direct.c), in half the time. Values that aren't
// known there, and all that are refused, come here, where everything goes by the API.
#include "json_writer.h"

#include "codec.h"
#include "layout.h"

enum {
  /// The room that a writer needs on the stack at each level.
  LEVEL_ROOM = 12,
};

static bool refuse_text(json_writer *w) {
  return flowlua_json_refuse(
      w, "a string that isn't UTF-8", "invalid = \"replace\" replaces such bytes");
}

static bool write_number_at(json_writer *w, int index) {
  lua_State *L = w->L;
  if (lua_isinteger(L, index)) return json_put_integer(&w->out, lua_tointegerx(L, index, NULL));
  lua_Number number = lua_tonumberx(L, index, NULL);
  if (number != number) return flowlua_json_refuse(w, "NaN", NULL);
  if (number - number != 0) return flowlua_json_refuse(w, "an infinity", NULL);
  return json_put_float(&w->out, number);
}

/// Writes the value at an index if it is a scalar; false for anything else, and after a failure.
/// [-0, +0, m]
static bool write_scalar(json_writer *w, int index) {
  lua_State *L = w->L;
  switch (lua_type(L, index)) {
  case LUA_TSTRING: {
    size_t count;
    const char *bytes = lua_tolstring(L, index, &count);
    return json_put_string(&w->out, bytes, count) || refuse_text(w);
  }
  case LUA_TNUMBER: return write_number_at(w, index);
  case LUA_TBOOLEAN:
    return lua_toboolean(L, index) ? json_put(&w->out, "true", 4) : json_put(&w->out, "false", 5);
  case LUA_TLIGHTUSERDATA: return lua_touserdata(L, index) == NULL && json_put(&w->out, "null", 4);
  default: return false;
  }
}

// MARK: - Tables

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

/// Refuses a table that one of those that contain it is, by its distance from it: by the shortest way.
static bool refuse_cycle(json_writer *w, const void *identity, int32_t distance) {
  int32_t first = 0;
  while (first + distance < w->depth
         && w->tables[first].identity != w->tables[first + distance].identity)
    first += 1;
  return flowlua_json_refuse_table(w, "a table that contains itself", first + distance);
}

/// Refuses a table that contains itself, or is too deep. One comparison for each table finds each cycle
/// (Brent's algorithm): tables are visited in the same order again and again. [-0, +0, -]
static bool check_depth(json_writer *w, const void *identity) {
  if (w->depth == 0) return true;
  int32_t open = (1 << (31 - __builtin_clz((unsigned)w->depth))) - 1;
  if (w->tables[open].identity == identity) return refuse_cycle(w, identity, w->depth - open);
  if (w->depth < w->options->max_depth) return true;
  for (open = w->depth - 1; open >= 0; open--)
    if (w->tables[open].identity == identity) return refuse_cycle(w, identity, w->depth - open);
  return flowlua_json_refuse(w, "more levels than max_depth allows", NULL);
}

/// Room on Lua's stack for one level more. [-0, +0, m]
static bool require_level(json_writer *w) {
  int32_t room = flowlua_make_room(w->state, w->L, LEVEL_ROOM);
  if (room == FLOWLUA_NO_MEMORY) flowlua_raise_memory(w->L);
  return room == LUA_OK
      || flowlua_json_refuse(w, "more levels than Lua's stack has room for", NULL);
}

/// Notes the table on top as the innermost one. [-0, +0, m]
static written_table *add_table(json_writer *w, const void *identity, bool is_array) {
  if (w->depth == w->capacity) {
    size_t held = sizeof(written_table) * (size_t)w->capacity;
    json_space(w->L, &w->more_tables, 2 * held);
    if (w->tables == w->few) memcpy(w->more_tables.bytes, w->few, held);
    w->tables = (written_table *)w->more_tables.bytes;
    w->capacity *= 2;
  }
  written_table *table = &w->tables[w->depth++];
  *table = (written_table){
      .identity = identity,
      .place = lua_gettop(w->L),
      .is_array = is_array,
  };
  return table;
}

/// Writes the beginning of the table on top, which stays there. [-0, +n, m]
static bool begin_table(json_writer *w) {
  lua_State *L = w->L;
  if (!require_level(w)) return false;
  int place = lua_gettop(L);
  int32_t mark = flowlua_json_mark_of(w->state, L, place);
  if (mark == FLOWLUA_JSON_OTHER && flowlua_push_viewed(L, place)) lua_replace(L, place);
  const void *identity = lua_topointer(L, place);
  if (!check_depth(w, identity)) return false;
  written_table *table = add_table(w, identity, mark == FLOWLUA_JSON_ARRAY);
  lua_pushnil(L);
  if (!lua_next(L, place)) {
    if (mark == FLOWLUA_JSON_UNMARKED || mark == FLOWLUA_JSON_OTHER)
      table->is_array = w->options->empty_is_array;
    return json_put_byte(&w->out, table->is_array ? '[' : '{');
  }
  bool is_object =
      mark == FLOWLUA_JSON_OBJECT || (mark != FLOWLUA_JSON_ARRAY && lua_type(L, -2) == LUA_TSTRING);
  lua_settop(L, place);
  table->is_array = !is_object;
  json_put_byte(&w->out, is_object ? '{' : '[');
  if (!is_object) {
    table->way = WRITE_LIST;
    return is_whole_list(L, place, &table->count) || flowlua_json_refuse_keys(w);
  }
  table->way = w->options->is_unsorted ? WRITE_MEMBERS : WRITE_SORTED;
  if (table->way == WRITE_SORTED) table->count = flowlua_push_sorted_keys(L, place, 0);
  lua_pushnil(L);
  return true;
}

/// Pushes the next key and value of a table, but of a list the value; false after the last one.
/// [-0, +(0|1|2), m]
static bool push_next(lua_State *L, written_table *table) {
  int place = table->place;
  switch (table->way) {
  case WRITE_LIST:
    if (table->next == table->count) return false;
    lua_settop(L, place);
    lua_rawgeti(L, place, table->next + 1);
    break;
  case WRITE_MEMBERS:
    lua_settop(L, place + 1);
    if (!lua_next(L, place)) return false;
    break;
  case WRITE_SORTED:
    if (table->next == table->count) return false;
    lua_settop(L, place + 1);
    lua_rawgeti(L, place + 1, table->next);
    lua_pushvalue(L, -1);
    lua_rawget(L, place);
    break;
  default: return false;
  }
  table->next += 1;
  return true;
}

/// Writes the values of the innermost table from the next one on, up to one that isn't a scalar, which is
/// pushed; `is_over` when there is none. [-0, +n, m]
static bool write_next(json_writer *w, written_table *table, bool *is_over) {
  lua_State *L = w->L;
  while (push_next(L, table)) {
    json_begin_item(&w->out, table->next == 1, w->depth);
    if (table->way != WRITE_LIST) {
      size_t count;
      const char *key = flowlua_bytes(L, -2, &count);
      if (key == NULL) return flowlua_json_refuse_keys(w);
      if (!json_put_key(&w->out, key, count))
        return flowlua_json_refuse_table(w, "a key that isn't UTF-8", w->depth - 1);
    }
    if (!write_scalar(w, -1)) return !w->has_failed;
  }
  *is_over = true;
  return true;
}

// MARK: - Values

/// Writes the secret on top, or puts what it holds in its place. [-0, +0, m]
static bool write_secret(json_writer *w, void *secret, bool *is_written) {
  lua_State *L = w->L;
  flowlua_state *state = w->state;
  if (!w->options->shows_secrets)
    return flowlua_json_refuse(w, "a secret", "secrets = true encodes what it holds");
  w->has_secret = true;
  w->held = (flowlua_value){0};
  if (!state->callbacks.unwrap(state, secret, &w->held)) return flowlua_json_refuse_type(w);
  if (w->held.kind == FLOWLUA_STRING) {
    *is_written = true;
    if (!json_put_string(&w->out, w->held.pointer, (size_t)w->held.integer)) return refuse_text(w);
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
  return lua_type(L, -1) == LUA_TTABLE ? begin_table(w) : flowlua_json_refuse_type(w);
}

static bool write_value(json_writer *w) {
  if (!write_top(w)) return false;
  while (w->depth > 0) {
    written_table *table = &w->tables[w->depth - 1];
    bool is_over = false;
    if (!write_next(w, table, &is_over)) return false;
    if (!is_over) {
      if (!write_top(w)) return false;
      continue;
    }
    w->depth -= 1;
    json_end(&w->out, table->is_array, table->next == 0, w->depth);
    // The table itself, too.
    lua_settop(w->L, table->place - 1);
  }
  return true;
}

/// Argument: the value, the writer. [-2, +1, m]
static int write_json(lua_State *L) {
  json_writer *w = lua_touserdata(L, 2);
  lua_settop(L, 1);
  w->out.text.never_raises = true;
  bool is_written = lua_type(L, 1) == LUA_TTABLE && flowlua_knows_layout(w->state, L)
      && flowlua_json_write_directly(&w->out, w->state, lua_topointer(L, 1));
  w->out.text.never_raises = false;
  if (!is_written) {
    w->out.text.count = 0;
    if (!write_value(w)) return 0;
  }
  lua_pushlstring(L, w->out.text.bytes, w->out.text.count);
  return 1;
}

int32_t flowlua_json_encode(
    flowlua_state *state, lua_State *L, int32_t index, const flowlua_json_writing *options,
    flowlua_json_error *error, bool *has_secret) {
  json_writer w;
  memset(&w, 0, offsetof(json_writer, few));
  w.L = w.out.L = L;
  w.state = state;
  w.options = w.out.options = options;
  w.error = error;
  w.tables = w.few;
  w.capacity = INLINE_WRITES;
  index = lua_absindex(L, index);
  // For the function, too: there it would be an error without a status of its own.
  int32_t room = flowlua_make_room(state, L, 3 * LUA_MINSTACK);
  if (room != LUA_OK) return room;
  lua_pushcfunction(L, write_json);
  lua_pushvalue(L, index);
  lua_pushlightuserdata(L, &w);
  int32_t status = lua_pcall(L, 2, 1, 0);
  flowlua_json_free(L, &w.out.text);
  flowlua_json_free(L, &w.more_tables);
  flowlua_dispose(state, &w.held);
  *has_secret = w.has_secret;
  if (status == LUA_OK && w.has_failed) {
    lua_settop(L, -2);
    return FLOWLUA_NOT_ENCODED;
  }
  return status;
}
