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
