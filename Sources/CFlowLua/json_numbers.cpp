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

/// Powers of ten that a float holds exactly.
constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                             1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};

/// Writes so many digits of a number, with zeros before it.
void write_digits(char *at, uint64_t number, int count) {
  for (; count >= 2; count -= 2, number /= 100) {
    auto pair = (unsigned)(number % 100);
    at[count - 1] = (char)('0' + pair % 10);
    at[count - 2] = (char)('0' + pair / 10);
  }
  if (count == 1) *at = (char)('0' + number % 10);
}

/// Writes a number with a fraction, from 1e-4 to 1e16, if it has no more than 14 digits, as most have that
/// were rounded: std::to_chars, which finds the shortest text of any, takes four times as long. 0 for others.
///
/// Of all texts with up to 15 digits one at most reads back as a given float: it is the shortest.
size_t write_short(char *at, double number) {
  double size = std::fabs(number);
  uint64_t bits;
  std::memcpy(&bits, &size, sizeof bits);
  // It is below 2 to this power; the logarithm of 2 is 1233 / 4096.
  int power = (int)(bits >> 52) - 1022;
  int places = 15 - ((power * 1233 + 4095) >> 12);
  if (places < 1) return 0;
  // Reading the text divides such numbers as well, which gives the float that is nearest.
  auto whole = (uint64_t)(size * powers[places] + 0.5);
  if ((double)whole / powers[places] != size) return 0;
  if (whole % 100000000 == 0) whole /= 100000000, places -= 8;
  if (whole % 10000 == 0) whole /= 10000, places -= 4;
  if (whole % 100 == 0) whole /= 100, places -= 2;
  if (whole % 10 == 0) whole /= 10, places -= 1;
  char *start = at;
  if (number < 0) *at++ = '-';
  auto scale = (uint64_t)powers[places];
  at = std::to_chars(at, at + FLOWLUA_NUMBER_TEXT, whole / scale).ptr;
  *at++ = '.';
  write_digits(at, whole % scale, places);
  return (size_t)(at + places - start);
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
  if ((double)whole != number) {
    if (size_t written = write_short(at, number); written > 0) return written;
    return (size_t)(std::to_chars(at, end, number, std::chars_format::fixed).ptr - at);
  }
  if (std::signbit(number) && whole == 0) *at++ = '-';
  char *last = std::to_chars(at, end, whole).ptr;
  std::memcpy(last, ".0", 2);
  return (size_t)(last + 2 - start);
}

size_t flowlua_write_integer(char *at, int64_t number) {
  return (size_t)(std::to_chars(at, at + FLOWLUA_NUMBER_TEXT, number).ptr - at);
}
