// Why a value can't be written as JSON, and the way to it.
#include "json_writer.h"

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

/// The way from a table to the value of it that was begun. [-0, +0, -]
static void append_step(json_writer *w, const written_table *table) {
  flowlua_json_error *error = w->error;
  const char *key = NULL;
  size_t count = 0;
  char digits[FLOWLUA_NUMBER_TEXT + 2];
  if (table->way == WRITE_MEMBERS) key = flowlua_bytes(w->L, table->place + 1, &count);
  if (table->way == WRITE_SORTED) key = flowlua_bytes(w->L, table->place + 2, &count);
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

bool flowlua_json_refuse_table(json_writer *w, const char *problem, int32_t depth) {
  w->has_failed = true;
  w->error->problem = problem;
  w->error->hint = NULL;
  w->error->is_path_cut = false;
  memset(w->error->path, 0, sizeof w->error->path);
  for (int32_t i = 0; i < depth && !w->error->is_path_cut; i++) append_step(w, &w->tables[i]);
  return false;
}

bool flowlua_json_refuse(json_writer *w, const char *problem, const char *hint) {
  flowlua_json_refuse_table(w, problem, w->depth);
  w->error->hint = hint;
  return false;
}

bool flowlua_json_refuse_type(json_writer *w) {
  size_t count = 0;
  const char *name = flowlua_type_name(w->state, w->L, -1, &count);
  if (count >= sizeof w->error->type_name) count = sizeof w->error->type_name - 1;
  memcpy(w->error->type_name, name, count);
  return flowlua_json_refuse(w, NULL, NULL);
}

/// The problem of the keys of the table at a place, which is on top. [-0, +0, -]
static const char *problem_of_keys(json_writer *w, int place) {
  lua_State *L = w->L;
  bool has_string = false, has_integer = false, has_other = false;
  lua_pushnil(L);
  while (lua_next(L, place)) {
    lua_settop(L, -2);
    if (lua_type(L, -1) == LUA_TSTRING) has_string = true;
    else if (lua_isinteger(L, -1) && lua_tointegerx(L, -1, NULL) >= 1) has_integer = true;
    else has_other = true;
  }
  int32_t mark = flowlua_json_mark_of(w->state, L, place);
  if (mark == FLOWLUA_JSON_OBJECT && has_integer) return "an object with an index as a key";
  if (mark == FLOWLUA_JSON_ARRAY && has_string) return "an array with a key that isn't an index";
  if (has_other) return "a table with a key that is neither a string nor an index";
  if (has_string && has_integer) return "a table with both indices and string keys";
  return has_string ? "a table that changed meanwhile" : "an array with holes";
}

bool flowlua_json_refuse_keys(json_writer *w) {
  int place = w->tables[w->depth - 1].place;
  lua_settop(w->L, place);
  return flowlua_json_refuse_table(w, problem_of_keys(w, place), w->depth - 1);
}
