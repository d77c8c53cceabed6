// What is typed, for a library that can't tell pasted text from keys: this reads the terminal for it.
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

/// What a terminal that is asked to puts around pasted text.
static const char paste_begin[] = "\033[200~", paste_end[] = "\033[201~";
enum { MARK_LENGTH = sizeof paste_begin - 1 };

/// How long the rest of such a mark may take, in milliseconds: it comes at once, unlike keys behind ESC.
enum { PATIENCE = 20 };

/// Bytes that were read to find out what they are: keys for the library.
static char held[MARK_LENGTH];
static size_t held_length, held_taken;

static bool is_pasting;
/// Room for one more than the length.
static char *pasted;
static size_t pasted_length, pasted_capacity;

/// Whether a signal came while the rest of a mark was waited for. The library must not wait for more then.
static bool was_interrupted;

static bool has_byte(int milliseconds) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  int count = poll(&input, 1, milliseconds);
  if (count < 0 && errno == EINTR) was_interrupted = true;
  return count > 0;
}

enum { AT_END = -1, INTERRUPTED = -2 };

/// A byte of the terminal's; or one of the above, the second when a signal came first.
static int read_byte(void) {
  unsigned char byte;
  ssize_t count = read(STDIN_FILENO, &byte, 1);
  if (count == 1) return byte;
  return count < 0 && errno == EINTR ? INTERRUPTED : AT_END;
}

static int next_byte(void) {
  if (held_taken < held_length) return (unsigned char)held[held_taken++];
  if (was_interrupted) {
    was_interrupted = false;
    return INTERRUPTED;
  }
  return read_byte();
}

bool flowsystem_holds_keys(void) { return held_taken < held_length; }

int flowsystem_next_character(FILE *stream) {
  (void)stream;
  mbstate_t state = {0};
  bool is_first = true;
  for (;;) {
    int byte = next_byte();
    // What keys have begun ends at a signal, too, as that may be a Ctrl-C.
    if (byte < 0) return -1;
    char unit = (char)byte;
    wchar_t character;
    size_t length = mbrtowc(&character, &unit, 1, &state);
    if (length == (size_t)-2) {
      is_first = false;
    } else if (length == (size_t)-1) {
      // No character: left out. What ended one may begin another.
      memset(&state, 0, sizeof state);
      if (!is_first && held_taken == 0 && held_length < sizeof held) held[held_length++] = unit;
      else if (!is_first && held_taken > 0) held[--held_taken] = unit;
      is_first = true;
    } else {
      return (int)character;
    }
  }
}

/// Adds a byte of pasted text; false without memory.
static bool keep_pasted(char byte) {
  if (pasted_length + 1 >= pasted_capacity) {
    size_t capacity = pasted_capacity == 0 ? 4096 : pasted_capacity * 2;
    char *grown = realloc(pasted, capacity);
    if (grown == NULL) return false;
    pasted = grown;
    pasted_capacity = capacity;
  }
  pasted[pasted_length++] = byte;
  return true;
}

/// Goes on with pasted text as far as it has come; whether that is all.
static bool read_pasted(void) {
  do {
    int byte = read_byte();
    if (byte < 0) return false;
    if (!keep_pasted((char)byte)) pasted_length = 0;
    if (pasted_length >= MARK_LENGTH
        && memcmp(pasted + pasted_length - MARK_LENGTH, paste_end, MARK_LENGTH) == 0) {
      pasted_length -= MARK_LENGTH;
      return true;
    }
  } while (has_byte(0));
  return false;
}

/// Leaves out of pasted text what can't be a part of a line, and ends its lines as Lua does.
static void clean_pasted(void) {
  size_t kept = 0;
  mbstate_t state = {0};
  for (size_t place = 0; place < pasted_length;) {
    size_t length = mbrlen(pasted + place, pasted_length - place, &state);
    if (length == (size_t)-1 || length == (size_t)-2 || length == 0) {
      memset(&state, 0, sizeof state);
      place += 1;
      continue;
    }
    if (pasted[place] == '\r') {
      bool is_pair = place + 1 < pasted_length && pasted[place + 1] == '\n';
      if (!is_pair) pasted[kept++] = '\n';
    } else {
      memmove(pasted + kept, pasted + place, length);
      kept += length;
    }
    place += length;
  }
  pasted[kept] = 0;
}

const char *flowsystem_pasted_text(void) { return pasted; }

flowsystem_input flowsystem_read_input(void) {
  was_interrupted = false;
  if (!is_pasting) {
    held_length = held_taken = 0;
    do {
      int byte = read_byte();
      if (byte < 0 && held_length == 0) return byte == AT_END ? FLOWSYSTEM_END : FLOWSYSTEM_PART;
      if (byte < 0) return FLOWSYSTEM_KEYS;
      held[held_length++] = (char)byte;
      if (held_length == 2 && held[0] == '\033' && (byte == '\r' || byte == '\n')) {
        // Alt-Enter: a line break that doesn't end the line.
        held_length = pasted_length = 0;
        if (!keep_pasted('\n')) return FLOWSYSTEM_PART;
        clean_pasted();
        return FLOWSYSTEM_PASTE;
      }
      if (memcmp(held, paste_begin, held_length) != 0) return FLOWSYSTEM_KEYS;
    } while (held_length < MARK_LENGTH && has_byte(PATIENCE));
    if (held_length < MARK_LENGTH) return FLOWSYSTEM_KEYS;
    held_length = 0;
    is_pasting = true;
    pasted_length = 0;
    if (!has_byte(0)) return FLOWSYSTEM_PART;
  }
  if (!read_pasted()) return FLOWSYSTEM_PART;
  is_pasting = false;
  clean_pasted();
  return FLOWSYSTEM_PASTE;
}
