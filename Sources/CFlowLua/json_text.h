// The bytes of JSON strings: which need a look, and characters of UTF-8.
#ifndef CFLOWLUA_JSON_TEXT_H
#define CFLOWLUA_JSON_TEXT_H

#include <string.h>

#include "CFlowLua.h"

static inline bool continues_character(char byte) { return ((uint8_t)byte & 0xC0) == 0x80; }

/// The length of the character of UTF-8 at a place, which isn't ASCII; 0 when it is none.
static inline size_t utf8_length(const char *at, const char *end) {
  uint8_t lead = (uint8_t)at[0];
  size_t left = (size_t)(end - at);
  if (lead < 0xC2 || lead > 0xF4 || left < 2 || !continues_character(at[1])) return 0;
  if (lead < 0xE0) return 2;
  uint8_t second = (uint8_t)at[1];
  if (left < 3 || !continues_character(at[2])) return 0;
  // Neither longer than needed, nor half of a surrogate pair, nor beyond the last code point.
  if (lead < 0xF0)
    return (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ? 0 : 3;
  if (left < 4 || !continues_character(at[3])) return 0;
  return (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F) ? 0 : 4;
}

// json_text.c
/// The code point of a character that was checked.
uint32_t flowlua_utf8_decode(const char *at, size_t length);
/// Writes a code point; returns the length.
size_t flowlua_utf8_encode(char *at, uint32_t point);

enum {
  /// A byte that needs a look in a string: a control character, a quote, a backslash, or not ASCII.
  JSON_SPECIAL = 1,
};
extern const uint8_t flowlua_json_special[256];

/// Whether one of 8 bytes needs a look.
static inline uint64_t json_special_mask(uint64_t word) {
  const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
  uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
  // Exact for the lowest byte that is marked, which is all that counts.
  return ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & highs;
}

/// The first byte from a place on that needs a look, or the end.
static inline const char *json_skip_plain(const char *at, const char *end) {
  while (end - at >= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    uint64_t mask = json_special_mask(word);
    if (mask != 0) return at + (__builtin_ctzll(mask) >> 3);
    at += 8;
  }
  while (at < end && !flowlua_json_special[(uint8_t)*at]) at += 1;
  return at;
}

/// Fewer than 8 bytes as a word, the first one lowest, and 0 above the last.
static inline uint64_t json_short_word(const char *at, size_t count) {
  if (count >= 4) {
    uint32_t first, last;
    memcpy(&first, at, 4);
    memcpy(&last, at + count - 4, 4);
    return first | (uint64_t)last << (8 * (count - 4));
  }
  if (count == 0) return 0;
  uint64_t first = (uint8_t)at[0], middle = (uint8_t)at[count / 2], last = (uint8_t)at[count - 1];
  return first | middle << (8 * (count / 2)) | last << (8 * (count - 1));
}

/// Whether one of fewer than 8 bytes of a word, which is 0 above them, needs a look.
static inline bool json_is_short_special(uint64_t word, size_t count) {
  const uint64_t spaces = 0x2020202020202020u;
  return json_special_mask(word | spaces << (8 * count)) != 0;
}

/// Copies bytes none of which needs a look; false when one does, after having written some. There is room for
/// 8 at least.
static inline bool json_copy_plain(char *to, const char *at, size_t count) {
  uint64_t word;
  if (count < 8) {
    word = json_short_word(at, count);
    memcpy(to, &word, 8);
    return !json_is_short_special(word, count);
  }
  uint64_t mask = 0;
  for (size_t i = 0; i < count - 8; i += 8) {
    memcpy(&word, at + i, 8);
    memcpy(to + i, &word, 8);
    mask |= json_special_mask(word);
  }
  // The last eight bytes, of which some may have been copied.
  memcpy(&word, at + count - 8, 8);
  memcpy(to + count - 8, &word, 8);
  return (mask | json_special_mask(word)) == 0;
}

#endif
