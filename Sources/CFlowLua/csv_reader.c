// From the bytes of CSV (RFC 4180) to tables, a row at a time.
//
// The project has its own because Debian 12 has no library for it that makes Lua tables, and a splitter in
// Lua takes ten times as long.
#include "json_memory.h"
#include "json_numbers.h"

typedef struct csv_reader {
  lua_State *L;
  flowlua_state *state;
  const flowlua_csv_reading *options;
  flowlua_csv_row *row;
  const char *start, *at, *end;
  json_memory text;  // of a field with quotes in it
  bool has_quotes;   // the row, so that it may have line ends within
  int32_t outcome;
  int names;
  int table;
} csv_reader;

/// How many bytes the end of a line takes at a place: 0 where there is none, -1 where it isn't known yet. A line ends with a
/// line feed, a carriage return, or both.
static int line_end(const csv_reader *r, const char *at) {
  if (at == r->end) return 0;
  if (*at != '\r') return *at == '\n';
  if (at + 1 == r->end) return r->options->is_last ? 1 : -1;
  return at[1] == '\n' ? 2 : 1;
}

/// How many lines end before a place. Stores where the last one begins.
static size_t count_lines(const csv_reader *r, const char *end, const char **line) {
  size_t count = 0;
  *line = r->start;
  for (const char *at = r->start; at < end; at++) {
    if (*at != '\n' && *at != '\r') continue;
    if (line_end(r, at) == 2) at += 1;
    if (at >= end) break;
    count += 1;
    *line = at + 1;
  }
  return count;
}

/// Notes what is wrong, and where. Returns false.
static bool fail(csv_reader *r, const char *at, const char *problem) {
  flowlua_csv_row *row = r->row;
  row->problem = problem;
  row->is_at_end = at == r->end;
  const char *line;
  row->problem_lines = count_lines(r, at, &line);
  row->problem_column = 1;
  for (const char *each = line; each < at; each++)
    if (((uint8_t)*each & 0xC0) != 0x80) row->problem_column += 1;
  r->outcome = FLOWLUA_CSV_PROBLEM;
  return false;
}

/// Notes that the next bytes aren't there yet, or never come. Returns false.
static bool run_out(csv_reader *r, const char *at, const char *problem) {
  if (r->options->is_last) return fail(r, at, problem);
  r->outcome = FLOWLUA_CSV_INCOMPLETE;
  return false;
}

/// The bytes of a field in quotes, whose first one was read; afterwards `at` is after the last one.
static bool read_quoted(csv_reader *r, const char **bytes, size_t *count) {
  const char *run = r->at;
  bool is_copied = false;
  for (;;) {
    const char *quote = memchr(r->at, '"', (size_t)(r->end - r->at));
    if (quote == NULL) {
      // All that follows is in the field.
      r->at = r->end;
      return run_out(r, r->end, "expected '\"' at the end of a field");
    }
    // Whether another quote follows, which would make one of the two.
    if (quote + 1 == r->end && !r->options->is_last) return run_out(r, quote, NULL);
    bool is_end = quote + 1 == r->end || quote[1] != '"';
    if (is_end && !is_copied) {
      *bytes = run;
      *count = (size_t)(quote - run);
      r->at = quote + 1;
      return true;
    }
    size_t length = (size_t)(quote - run) + (is_end ? 0 : 1);
    if (!is_copied) r->text.count = 0;
    is_copied = true;
    memcpy(json_space(r->L, &r->text, length + 1), run, length);
    r->text.count += length;
    run = r->at = quote + (is_end ? 1 : 2);
    if (!is_end) continue;
    *bytes = r->text.bytes;
    *count = r->text.count;
    return true;
  }
}

/// The bytes of a field without quotes.
static bool read_plain(csv_reader *r, const char **bytes, size_t *count) {
  const char *at = r->at, separator = (char)r->options->separator;
  *bytes = at;
  while (at < r->end && *at != separator && *at != '\n' && *at != '\r') {
    if (*at == '"') return fail(r, at, "expected no quote in a field without quotes");
    at += 1;
  }
  if (at == r->end && !r->options->is_last) return run_out(r, at, NULL);
  r->at = at;
  *count = (size_t)(at - *bytes);
  return true;
}

/// Notes a field that isn't of its column's type. Returns false.
static bool fail_field(csv_reader *r, const char *field, const char *problem) {
  fail(r, field, problem);
  r->row->is_at_end = false;
  return false;
}

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

/// Pushes the number that bytes say in decimal notation; false when they don't. [-0, +(0|1), -]
static bool push_number(lua_State *L, const char *at, size_t count, bool is_float_allowed) {
  const char *end = at + count;
  bool is_positive = at < end && *at == '+';
  if (is_positive) at += 1;
  const char *start = at;
  bool is_negative = !is_positive && at < end && *at == '-';
  if (is_negative) at += 1;
  const char *digits = at;
  uint64_t value = 0;
  bool fits = true;
  for (; at < end && is_digit(*at); at++) {
    fits = fits && value <= (UINT64_MAX - 9) / 10;
    value = value * 10 + (uint64_t)(*at - '0');
  }
  if (at == digits) return false;
  if (at == end) {
    if (fits && value <= (uint64_t)INT64_MAX + is_negative) {
      lua_pushinteger(L, (lua_Integer)(is_negative ? 0 - value : value));
      return true;
    }
    if (!is_float_allowed) return false;
  }
  if (!is_float_allowed) return false;
  if (at < end && *at == '.') {
    const char *fraction = ++at;
    while (at < end && is_digit(*at)) at += 1;
    if (at == fraction) return false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at += 1;
    if (at < end && (*at == '-' || *at == '+')) at += 1;
    const char *exponent = at;
    while (at < end && is_digit(*at)) at += 1;
    if (at == exponent) return false;
  }
  double number;
  if (at != end || !flowlua_read_float(start, (size_t)(end - start), &number)) return false;
  lua_pushnumber(L, number);
  return true;
}

static bool is_word(const char *at, size_t count, const char *word) {
  if (count != strlen(word)) return false;
  for (size_t i = 0; i < count; i++)
    if ((at[i] | 0x20) != word[i]) return false;
  return true;
}

/// Pushes a field in the type of its column. [-0, +1, m]
static bool push_field(
    csv_reader *r, int32_t column, const char *field, const char *bytes, size_t count) {
  lua_State *L = r->L;
  uint8_t type = column <= r->options->type_count && r->options->types != NULL
      ? r->options->types[column - 1]
      : FLOWLUA_CSV_STRING;
  if (count == 0 && (type & FLOWLUA_CSV_OPTIONAL) != 0) {
    lua_pushnil(L);
    return true;
  }
  switch (type & ~FLOWLUA_CSV_OPTIONAL) {
  case FLOWLUA_CSV_INTEGER:
    return push_number(L, bytes, count, false) || fail_field(r, field, "expected an integer");
  case FLOWLUA_CSV_NUMBER:
    return push_number(L, bytes, count, true) || fail_field(r, field, "expected a number");
  case FLOWLUA_CSV_BOOLEAN: {
    bool is_true = is_word(bytes, count, "true");
    if (!is_true && !is_word(bytes, count, "false"))
      return fail_field(r, field, "expected true or false");
    lua_pushboolean(L, is_true);
    return true;
  }
  default: lua_pushlstring(L, bytes, count); return true;
  }
}

/// Reads a row into the table. [-0, +0, m]
static bool read_row(csv_reader *r) {
  lua_State *L = r->L;
  char separator = (char)r->options->separator;
  int32_t wanted = r->options->column_count;
  for (int32_t column = 1;; column++) {
    if (column == INT32_MAX) flowlua_raise_memory(L);
    const char *field = r->at, *bytes;
    size_t count;
    bool is_quoted = r->at < r->end && *r->at == '"';
    if (is_quoted) r->at += 1;
    r->has_quotes = r->has_quotes || is_quoted;
    if (!(is_quoted ? read_quoted(r, &bytes, &count) : read_plain(r, &bytes, &count))) return false;
    if (wanted != 0 && column > wanted) {
      r->row->fields = column;
      return fail(r, field, "fields");
    }
    if (r->names != 0) lua_rawgeti(L, r->names, column);
    if (!push_field(r, column, field, bytes, count)) return false;
    if (r->names != 0) lua_rawset(L, r->table);
    else lua_rawseti(L, r->table, column);
    if (r->at < r->end && *r->at == separator) {
      r->at += 1;
      continue;
    }
    int end = line_end(r, r->at);
    if (end < 0 || (r->at == r->end && !r->options->is_last)) return run_out(r, r->at, NULL);
    if (end == 0 && r->at < r->end)
      return fail(r, r->at, "expected a separator or the end of the line after a field in quotes");
    r->row->fields = column;
    if (wanted != 0 && column < wanted) return fail(r, r->at, "fields");
    r->at += end;
    r->row->lines = end > 0;
    return true;
  }
}

/// Goes to the end of a row that has a problem: what follows it are rows again.
static void skip_rest(csv_reader *r) {
  flowlua_csv_row noted = *r->row;
  // The fields after one that only has another type, or is one too many, may have line ends in quotes.
  while (r->at < r->end && *r->at == (char)r->options->separator) {
    const char *bytes;
    size_t count;
    r->at += 1;
    bool is_quoted = r->at < r->end && *r->at == '"';
    if (is_quoted) r->at += 1;
    if (is_quoted ? read_quoted(r, &bytes, &count) : read_plain(r, &bytes, &count)) continue;
    if (r->outcome == FLOWLUA_CSV_INCOMPLETE) return;
    break;
  }
  *r->row = noted;
  while (r->at < r->end && line_end(r, r->at) == 0) r->at += 1;
  int end = line_end(r, r->at);
  if (end < 0 || (r->at == r->end && !r->options->is_last)) r->outcome = FLOWLUA_CSV_INCOMPLETE;
  else r->at += end;
}

/// Skips lines without anything in them. false at the end.
static bool skip_empty(csv_reader *r) {
  int end;
  while ((end = line_end(r, r->at)) > 0) {
    r->at += end;
    r->row->skipped_lines += 1;
    r->start = r->at;
  }
  if (end == 0 && r->at < r->end) return true;
  r->outcome = r->options->is_last ? FLOWLUA_CSV_END : FLOWLUA_CSV_INCOMPLETE;
  return false;
}

/// Argument: the reader. [-1, +(0|1), m]
static int read_csv(lua_State *L) {
  csv_reader *r = lua_touserdata(L, 1);
  lua_settop(L, 0);
  if (!skip_empty(r)) return 0;
  int32_t columns = r->options->column_count;
  if (r->options->names != 0) {
    flowlua_push_reference(r->state, L, r->options->names);
    r->names = 1;
    lua_createtable(L, 0, columns);
  } else {
    lua_createtable(L, columns == 0 ? 8 : columns, 0);
  }
  r->table = lua_gettop(L);
  bool is_row = read_row(r);
  if (!is_row && r->outcome == FLOWLUA_CSV_PROBLEM) skip_rest(r);
  if (!is_row && r->outcome != FLOWLUA_CSV_PROBLEM) return 0;
  const char *line;
  if (!is_row || r->has_quotes) r->row->lines = count_lines(r, r->at, &line);
  if (!is_row) return 0;
  r->outcome = FLOWLUA_CSV_ROW;
  return 1;
}

int32_t flowlua_csv_decode(
    flowlua_state *state, const char *bytes, size_t count, const flowlua_csv_reading *options,
    flowlua_csv_row *row) {
  lua_State *L = state->running;
  memset(row, 0, sizeof *row);
  csv_reader r = {
      .L = L,
      .state = state,
      .options = options,
      .row = row,
      .start = bytes,
      .at = bytes,
      .end = bytes + count,
  };
  int32_t room = flowlua_make_room(state, L, LUA_MINSTACK);
  if (room != LUA_OK) return room;
  lua_pushcfunction(L, read_csv);
  lua_pushlightuserdata(L, &r);
  int32_t status = lua_pcall(L, 1, 1, 0);
  flowlua_json_free(L, &r.text);
  bool is_whole = r.outcome == FLOWLUA_CSV_ROW || r.outcome == FLOWLUA_CSV_PROBLEM;
  row->used = (size_t)((is_whole ? r.at : r.start) - bytes);
  row->outcome = r.outcome;
  if (status == LUA_OK && r.outcome != FLOWLUA_CSV_ROW) lua_settop(L, -2);
  return status;
}
