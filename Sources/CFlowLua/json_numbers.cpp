// Floats as text and back, by the C++ library. Nothing here throws, allocates or has a destructor, as a
// Lua error may pass through the callers.
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

#include "json_numbers.h"

namespace {

/// Whether a number that no float can hold is a large one: by where its first digit that isn't 0 stands.
bool is_large(const char *text, size_t count) {
  const char *end = text + count;
  if (*text == '-') text += 1;
  long magnitude = 0;
  bool has_digit = false, has_point = false;
  for (; text < end && *text != 'e' && *text != 'E'; text += 1) {
    if (*text == '.') {
      has_point = true;
    } else {
      if (*text != '0') has_digit = true;
      if (has_digit && !has_point) magnitude += 1;
      if (!has_digit && has_point) magnitude -= 1;
    }
  }
  if (!has_digit || text == end) return has_digit && magnitude > 0;
  text += 1;
  bool is_negative = *text == '-';
  if (*text == '-' || *text == '+') text += 1;
  long exponent = 0;
  // More digits of an exponent than a text of that length can make up for.
  constexpr long limit = 1L << 60;
  for (; text < end; text += 1)
    if (exponent < limit / 10) exponent = exponent * 10 + (*text - '0');
  return magnitude + (is_negative ? -exponent : exponent) > 0;
}

}  // namespace

bool flowlua_read_float(const char *text, size_t count, double *number) {
  std::from_chars_result result = std::from_chars(text, text + count, *number);
  if (result.ec == std::errc::result_out_of_range) {
    if (is_large(text, count)) return false;
    *number = *text == '-' ? -0.0 : 0.0;
    return true;
  }
  return result.ec == std::errc() && std::isfinite(*number);
}

size_t flowlua_write_float(char *at, double number) {
  double size = std::fabs(number);
  char *start = at, *end = at + FLOWLUA_NUMBER_TEXT;
  if (size != 0 && (size < 1e-4 || size >= 1e16))
    return (size_t)(std::to_chars(at, end, number, std::chars_format::scientific).ptr - at);
  int64_t whole = (int64_t)number;
  if ((double)whole != number)
    return (size_t)(std::to_chars(at, end, number, std::chars_format::fixed).ptr - at);
  if (std::signbit(number) && whole == 0) *at++ = '-';
  char *last = std::to_chars(at, end, whole).ptr;
  std::memcpy(last, ".0", 2);
  return (size_t)(last + 2 - start);
}

size_t flowlua_write_integer(char *at, int64_t number) {
  return (size_t)(std::to_chars(at, at + FLOWLUA_NUMBER_TEXT, number).ptr - at);
}
