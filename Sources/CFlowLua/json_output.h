// The text of JSON that is being written: strings, numbers, and what stands between values.
//
// Everything returns false where a text has no room and its memory never raises.
#ifndef CFLOWLUA_JSON_OUTPUT_H
#define CFLOWLUA_JSON_OUTPUT_H

#include "json_memory.h"
#include "json_numbers.h"
#include "json_text.h"

typedef struct json_output {
  lua_State *L;
  const flowlua_json_writing *options;
  json_memory text;
} json_output;

// json_output.c
/// Writes a string of any length in quotes; false for bytes that aren't UTF-8, too. [-0, +0, m]
bool flowlua_json_put_string(json_output *out, const char *at, size_t count);
/// Begins a line at a level. [-0, +0, m]
bool flowlua_json_put_line(json_output *out, int32_t level);

static inline char *json_room(json_output *out, size_t count) {
  return json_space(out->L, &out->text, count);
}

/// [-0, +0, m]
static inline bool json_put(json_output *out, const char *text, size_t count) {
  char *to = json_room(out, count);
  if (to == NULL) return false;
  memcpy(to, text, count);
  out->text.count += count;
  return true;
}

/// [-0, +0, m]
static inline bool json_put_byte(json_output *out, char byte) {
  char *to = json_room(out, 1);
  if (to == NULL) return false;
  *to = byte;
  out->text.count += 1;
  return true;
}

/// Writes a string in quotes; false for bytes that aren't UTF-8, too. [-0, +0, m]
static inline bool json_put_string(json_output *out, const char *at, size_t count) {
  // Most strings are short and plain.
  if (count <= 64) {
    char *to = json_room(out, count + 2 + 8);
    if (to == NULL) return false;
    *to = '"';
    if (json_copy_plain(to + 1, at, count)) {
      to[count + 1] = '"';
      out->text.count += count + 2;
      return true;
    }
  }
  return flowlua_json_put_string(out, at, count);
}

/// [-0, +0, m]
static inline bool json_put_integer(json_output *out, lua_Integer number) {
  char *to = json_room(out, FLOWLUA_NUMBER_TEXT);
  if (to == NULL) return false;
  out->text.count += flowlua_write_integer(to, number);
  return true;
}

/// Writes a finite float. [-0, +0, m]
static inline bool json_put_float(json_output *out, lua_Number number) {
  char *to = json_room(out, FLOWLUA_NUMBER_TEXT);
  if (to == NULL) return false;
  out->text.count += flowlua_write_float(to, number);
  return true;
}

/// Writes the separators before a value of an array or object at a level. [-0, +0, m]
static inline bool json_begin_item(json_output *out, bool is_first, int32_t level) {
  if (!is_first && !json_put_byte(out, ',')) return false;
  return out->options->indent == 0 || flowlua_json_put_line(out, level);
}

/// The key of a member, and what follows it; false for bytes that aren't UTF-8, too. [-0, +0, m]
static inline bool json_put_key(json_output *out, const char *key, size_t count) {
  return json_put_string(out, key, count) && json_put(out, ": ", out->options->indent == 0 ? 1 : 2);
}

/// The bracket with which an array or object at a level ends. [-0, +0, m]
static inline bool json_end(json_output *out, bool is_array, bool is_empty, int32_t level) {
  if (!is_empty && out->options->indent > 0 && !flowlua_json_put_line(out, level)) return false;
  return json_put_byte(out, is_array ? ']' : '}');
}

#endif
