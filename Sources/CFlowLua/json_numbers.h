// Floats as text and back, by the C++ library.
//
// `strtod` and `printf` take up to ten times as long, look at the locale, and the shortest text that
// reads back the same takes up to three attempts with them. libstdc++ is part of every Swift program.
#ifndef CFLOWLUA_JSON_NUMBERS_H
#define CFLOWLUA_JSON_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Room for the text of any number.
#define FLOWLUA_NUMBER_TEXT 40

#ifdef __cplusplus
extern "C" {
#endif

/// Reads a number in the form of JSON, which the caller has checked. A number that is too small for a float is 0.
/// false for one that is too large.
bool flowlua_read_float(const char *_Nonnull text, size_t count, double *_Nonnull number);

/// Writes the shortest text that reads back as the same finite float and can't be read as an integer, as Python
/// writes it: `1.0`, `1e+16`. Returns its length.
size_t flowlua_write_float(char *_Nonnull at, double number);

/// Writes an integer; returns the length.
size_t flowlua_write_integer(char *_Nonnull at, int64_t number);

#ifdef __cplusplus
}
#endif

#endif
