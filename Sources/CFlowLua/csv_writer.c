// From tables to the bytes of CSV.
#include "codec.h"
#include "json_memory.h"
#include "json_numbers.h"

typedef struct csv_writer {
  lua_State *L;
  flowlua_state *state;
  const flowlua_csv_writing *options;
  flowlua_csv_problem *problem;
  json_memory out;
  lua_Integer row;
  int32_t column_count;
  bool has_records;
  bool has_failed;
} csv_writer;

enum { CSV_ROWS = 1, CSV_COLUMNS = 2, CSV_WORK = 3 };

static bool fail(csv_writer *w, const char *problem, int32_t column) {
  w->has_failed = true;
  w->problem->problem = problem;
  w->problem->row = w->row;
  w->problem->column = column;
  return false;
}

static void put(csv_writer *w, const char *bytes, size_t count) {
  memcpy(json_space(w->L, &w->out, count + 1), bytes, count);
  w->out.count += count;
}

static void put_text(csv_writer *w, const char *bytes, size_t count) {
  char separator = (char)w->options->separator;
  bool needs_quotes = count == 0 && w->column_count == 1;
  for (size_t i = 0; i < count && !needs_quotes; i++)
    needs_quotes = bytes[i] == separator || bytes[i] == '"' || bytes[i] == '\n' || bytes[i] == '\r';
  if (!needs_quotes) {
    put(w, bytes, count);
    return;
  }
  put(w, "\"", 1);
  for (const char *end = bytes + count; bytes < end;) {
    const char *quote = memchr(bytes, '"', (size_t)(end - bytes));
    size_t length = (size_t)((quote == NULL ? end : quote + 1) - bytes);
    put(w, bytes, length);
    if (quote != NULL) put(w, "\"", 1);
    bytes += length;
  }
  put(w, "\"", 1);
}

/// Writes the value on top and takes it. [-1, +0, m]
static bool put_field(csv_writer *w, int32_t column) {
  lua_State *L = w->L;
  char separator = (char)w->options->separator;
  if (column > 1) put(w, &separator, 1);
  size_t count = 0;
  switch (lua_type(L, -1)) {
  case LUA_TSTRING: {
    const char *bytes = lua_tolstring(L, -1, &count);
    put_text(w, bytes, count);
    break;
  }
  case LUA_TNUMBER: {
    char text[FLOWLUA_NUMBER_TEXT];
    lua_Number number = lua_tonumberx(L, -1, NULL);
    if (lua_isinteger(L, -1)) count = flowlua_write_integer(text, lua_tointegerx(L, -1, NULL));
    else if (number - number != 0) return fail(w, "a number that isn't finite", column);
    else count = flowlua_write_float(text, number);
    put_text(w, text, count);
    break;
  }
  case LUA_TBOOLEAN:
    if (lua_toboolean(L, -1)) put_text(w, "true", 4);
    else put_text(w, "false", 5);
    break;
  case LUA_TNIL: put_text(w, "", 0); break;
  case LUA_TLIGHTUSERDATA:
    if (lua_touserdata(L, -1) == NULL) {
      put_text(w, "", 0);
      break;
    }
    // fall through
  default: {
    const char *name = flowlua_type_name(w->state, L, -1, &count);
    if (count >= sizeof w->problem->type_name) count = sizeof w->problem->type_name - 1;
    memcpy(w->problem->type_name, name, count);
    return fail(w, NULL, column);
  }
  }
  lua_settop(L, -2);
  return true;
}

static void end_row(csv_writer *w) {
  if (w->options->ends_with_crlf) put(w, "\r\n", 2);
  else put(w, "\n", 1);
}

/// The most columns of rows that are lists.
#define CSV_COLUMN_LIMIT 1000000

/// The largest index of the row on top, a list that may have nils; 0 for one with other keys only, -1 for an
/// empty table, -2 for one with keys of both kinds. The count of table.pack is none. [-0, +0, -]
static lua_Integer last_index(lua_State *L) {
  int row = lua_gettop(L);
  lua_Integer last = -1;
  bool has_others = false;
  lua_pushnil(L);
  while (lua_next(L, row)) {
    lua_settop(L, -2);
    lua_Integer index = lua_isinteger(L, -1) ? lua_tointegerx(L, -1, NULL) : 0;
    if (index <= 0) {
      index = 0;
      if (lua_type(L, -1) != LUA_TSTRING || strcmp(lua_tostring(L, -1), "n") != 0)
        has_others = true;
    }
    if (index > last) last = index;
  }
  return has_others && last > 0 ? -2 : last;
}

/// Finds out what the rows are, and how many columns they have; the table of names is at CSV_COLUMNS, or
/// nil. [-0, +0, m]
static bool find_columns(csv_writer *w) {
  lua_State *L = w->L;
  bool has_names = lua_type(L, CSV_COLUMNS) == LUA_TTABLE;
  uint32_t kinds;
  if (flowlua_list_count(state_of(L), L, CSV_ROWS, &kinds) < 0)
    return fail(w, "rows that aren't a list", 0);
  bool is_known = false;
  lua_createtable(L, 0, 0);
  for (w->row = 1;; w->row++) {
    int type = lua_rawgeti(L, CSV_ROWS, w->row);
    if (type == LUA_TNIL) break;
    if (type != LUA_TTABLE) return fail(w, "a row that isn't a table", 0);
    if (flowlua_push_viewed(L, -1)) lua_replace(L, -2);
    int row = lua_gettop(L);
    lua_Integer length = last_index(L);
    if (length == -2) return fail(w, "a row that is both a list and a record", 0);
    if (length > CSV_COLUMN_LIMIT) return fail(w, "a row with so many values", 0);
    if (length < 0) {
      // An empty table is a list or a record.
      lua_settop(L, CSV_WORK);
      continue;
    }
    if (!is_known) w->has_records = length == 0;
    is_known = true;
    if (w->has_records != (length == 0))
      return fail(w, w->has_records ? "a list after records" : "a record after lists", 0);
    if (!w->has_records && (int32_t)length > w->column_count) w->column_count = (int32_t)length;
    if (w->has_records && !has_names) {
      lua_pushnil(L);
      while (lua_next(L, row)) {
        lua_settop(L, -2);
        if (lua_type(L, -1) != LUA_TSTRING)
          return fail(w, "a record with a key that isn't a string", 0);
        lua_pushvalue(L, -1);
        lua_pushboolean(L, true);
        lua_rawset(L, CSV_WORK);
      }
    }
    lua_settop(L, CSV_WORK);
  }
  lua_settop(L, CSV_WORK);
  if (has_names) {
    size_t count = lua_rawlen(L, CSV_COLUMNS);
    if (!w->has_records && (size_t)w->column_count > count) {
      w->row = 0;
      return fail(w, "rows with more values than columns", 0);
    }
    w->column_count = (int32_t)count;
  } else if (w->has_records) {
    int64_t count = flowlua_push_sorted_keys(L, CSV_WORK, 0);
    if (count > INT32_MAX / 2) return fail(w, "records with so many keys", 0);
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
      lua_rawgeti(L, CSV_WORK + 1, i);
      lua_rawseti(L, -2, i + 1);
    }
    lua_replace(L, CSV_COLUMNS);
    w->column_count = (int32_t)count;
  }
  return true;
}

static bool write_rows(csv_writer *w) {
  lua_State *L = w->L;
  if (!find_columns(w)) return false;
  lua_settop(L, CSV_COLUMNS);
  w->row = 0;
  if (lua_type(L, CSV_COLUMNS) == LUA_TTABLE && w->options->writes_header && w->column_count > 0) {
    for (int32_t column = 1; column <= w->column_count; column++) {
      lua_rawgeti(L, CSV_COLUMNS, column);
      if (!put_field(w, column)) return false;
    }
    end_row(w);
  }
  for (w->row = 1; lua_rawgeti(L, CSV_ROWS, w->row) == LUA_TTABLE; w->row++) {
    if (flowlua_push_viewed(L, -1)) lua_replace(L, -2);
    int row = lua_gettop(L);
    for (int32_t column = 1; column <= w->column_count; column++) {
      if (w->has_records) {
        lua_rawgeti(L, CSV_COLUMNS, column);
        lua_rawget(L, row);
      } else {
        lua_rawgeti(L, row, column);
      }
      if (!put_field(w, column)) return false;
    }
    end_row(w);
    lua_settop(L, CSV_COLUMNS);
  }
  return true;
}

/// Arguments: the rows, the columns or nil, the writer. [-3, +(0|1), m]
static int write_csv(lua_State *L) {
  csv_writer *w = lua_touserdata(L, 3);
  lua_settop(L, CSV_COLUMNS);
  if (!write_rows(w)) return 0;
  lua_pushlstring(L, w->out.count == 0 ? "" : w->out.bytes, w->out.count);
  return 1;
}

int32_t flowlua_csv_encode(
    flowlua_state *state, lua_State *L, int32_t rows, int32_t columns,
    const flowlua_csv_writing *options, flowlua_csv_problem *problem) {
  memset(problem, 0, sizeof *problem);
  csv_writer w = {.L = L, .state = state, .options = options, .problem = problem};
  int32_t room = flowlua_make_room(state, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  rows = lua_absindex(L, rows);
  lua_pushcfunction(L, write_csv);
  lua_pushvalue(L, rows);
  if (columns == 0) lua_pushnil(L);
  else flowlua_push_reference(state, L, columns);
  lua_pushlightuserdata(L, &w);
  int32_t status = lua_pcall(L, 3, 1, 0);
  flowlua_json_free(L, &w.out);
  if (status == LUA_OK && w.has_failed) {
    lua_settop(L, -2);
    return FLOWLUA_NOT_ENCODED;
  }
  return status;
}
