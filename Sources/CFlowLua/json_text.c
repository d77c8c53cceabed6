// The bytes of strings: which need a look, and characters of UTF-8.
#include "json_text.h"

const uint8_t flowlua_json_special[256] = {
    [0 ... 0x1F] = JSON_SPECIAL,
    ['"'] = JSON_SPECIAL,
    ['\\'] = JSON_SPECIAL,
    [0x80 ... 0xFF] = JSON_SPECIAL,
};

uint32_t flowlua_utf8_decode(const char *at, size_t length) {
  static const uint8_t masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t point = (uint8_t)at[0] & masks[length];
  for (size_t i = 1; i < length; i++) point = point << 6 | ((uint8_t)at[i] & 0x3F);
  return point;
}

size_t flowlua_utf8_encode(char *at, uint32_t point) {
  if (point < 0x80) {
    at[0] = (char)point;
    return 1;
  }
  size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, point >>= 6) at[i] = (char)(0x80 | (point & 0x3F));
  static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
  at[0] = (char)(leads[length] | point);
  return length;
}

static size_t write_escape(char *at, uint32_t unit) {
  static const char digits[] = "0123456789abcdef";
  at[0] = '\\';
  at[1] = 'u';
  for (int i = 0; i < 4; i++) at[2 + i] = digits[unit >> (12 - 4 * i) & 15];
  return 6;
}

/// Writes an escape for an ASCII character.
static size_t write_ascii_escape(char *at, char byte) {
  static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (const char *each = shorts; *each != 0; each += 2) {
    if (*each != byte) continue;
    at[0] = '\\';
    at[1] = each[1];
    return 2;
  }
  return write_escape(at, (uint8_t)byte);
}

/// Writes the escape of a character, or the one that replaces what isn't UTF-8, whose length is 0.
static size_t write_character(char *to, const char *at, size_t length, bool is_ascii) {
  uint32_t point = length == 0 ? 0xFFFD : flowlua_utf8_decode(at, length);
  if (!is_ascii) return flowlua_utf8_encode(to, point);
  if (point < 0x10000) return write_escape(to, point);
  point -= 0x10000;
  write_escape(to, 0xD800 | point >> 10);
  return write_escape(to + 6, 0xDC00 | (point & 0x3FF)) + 6;
}

/// Copies characters of two and three bytes, which stand together in most scripts, up to another one, or
/// to where less than a word is left.
static void copy_characters(char **to, const char *limit, const char **from, const char *end) {
  const char *at = *from;
  char *out = *to;
  while (end - at >= 4 && limit - out >= 4) {
    uint32_t word;
    memcpy(&word, at, 4);
    memcpy(out, &word, 4);
    if ((word & 0xC0C0F0) == 0x8080E0) {
      // Neither longer than needed nor half of a surrogate pair.
      uint32_t mark = word & 0x200F;
      if (mark == 0 || mark == 0x200D) break;
      at += 3;
      out += 3;
    } else if ((word & 0xC0E0) == 0x80C0 && (word & 0x1E) != 0) {
      at += 2;
      out += 2;
    } else {
      break;
    }
  }
  *from = at;
  *to = out;
}

size_t flowlua_json_characters(
    char *to, size_t room, const char **from, const char *end, bool is_ascii, bool replaces_invalid,
    bool *is_valid) {
  const char *at = *from;
  char *start = to, *limit = to + room;
  while (limit - to >= FLOWLUA_ESCAPED) {
    while (end - at >= 8 && limit - to >= 8) {
      uint64_t word;
      memcpy(&word, at, 8);
      memcpy(to, &word, 8);
      uint64_t mask = json_special_mask(word);
      if (mask != 0) {
        size_t plain = (size_t)__builtin_ctzll(mask) >> 3;
        at += plain;
        to += plain;
        break;
      }
      at += 8;
      to += 8;
    }
    while (at < end && to < limit && !flowlua_json_special[(uint8_t)*at]) *to++ = *at++;
    if (at == end) break;
    if (limit - to < FLOWLUA_ESCAPED) break;
    if ((uint8_t)*at < 0x80) {
      to += write_ascii_escape(to, *at++);
      continue;
    }
    if (!is_ascii) {
      const char *first = at;
      copy_characters(&to, limit, &at, end);
      if (at != first) continue;
    }
    size_t length = utf8_length(at, end);
    if (length == 0 && !replaces_invalid) {
      *is_valid = false;
      break;
    }
    to += write_character(to, at, length, is_ascii);
    at += length == 0 ? 1 : length;
  }
  *from = at;
  return (size_t)(to - start);
}
