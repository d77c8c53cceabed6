// The text of JSON that is being written.
#include "json_output.h"

bool flowlua_json_put_string(json_output *out, const char *at, size_t count) {
  json_memory *text = &out->text;
  const char *end = at + count;
  char *to = json_room(out, count + FLOWLUA_ESCAPED + 2);
  if (to == NULL) return false;
  *to = '"';
  text->count += 1;
  while (at < end) {
    // Where there are many escapes the room is used up before the string is.
    if (json_room(out, (size_t)(end - at) + FLOWLUA_ESCAPED + 1) == NULL) return false;
    size_t room = text->capacity - text->count - 1;
    bool is_valid = true;
    text->count += flowlua_json_characters(
        text->bytes + text->count, room, &at, end, out->options->is_ascii,
        out->options->replaces_invalid, &is_valid);
    if (!is_valid) return false;
  }
  return json_put_byte(out, '"');
}

bool flowlua_json_put_line(json_output *out, int32_t level) {
  size_t count = (size_t)level * (size_t)out->options->indent;
  char *to = json_room(out, count + 1);
  if (to == NULL) return false;
  *to = '\n';
  memset(to + 1, ' ', count);
  out->text.count += count + 1;
  return true;
}
