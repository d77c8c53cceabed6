// Reads the terminal for a library that can't distinguish pasted text from keys.
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

/// The marks that a terminal puts around pasted text, if it is requested.
static const char paste_begin[] = "\033[200~", paste_end[] = "\033[201~";
enum { MARK_LENGTH = sizeof paste_begin - 1 };

/// How long the rest of such a mark may take, in milliseconds: it comes at once, unlike keys after
/// ESC.
enum { PATIENCE = 20 };

/// Bytes that were read to identify them: keys for the library.
static char held[MARK_LENGTH];
static size_t held_length, held_taken;

static bool is_pasting;
/// Room for one byte more than the length.
static char *pasted;
static size_t pasted_length, pasted_capacity;
/// Whether there was no memory for a part of it.
static bool is_lost;
/// How much of the mark at its end has been read.
static size_t end_length;

/// Whether a signal arrived during the wait for the rest of a mark. The library must not wait for
/// more then.
static bool was_interrupted;

static bool has_byte(int milliseconds) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  int count = poll(&input, 1, milliseconds);
  if (count < 0 && errno == EINTR) was_interrupted = true;
  return count > 0;
}

enum { AT_END = -1, INTERRUPTED = -2 };

/// Returns a byte of the terminal, or one of the above: the second when a signal arrived first.
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
    // A signal also ends an incomplete key, because it may be a Ctrl-C.
    if (byte < 0) return -1;
    char unit = (char)byte;
    wchar_t character;
    size_t length = mbrtowc(&character, &unit, 1, &state);
    if (length == (size_t)-2) {
      is_first = false;
    } else if (length == (size_t)-1) {
      // Not a character: omitted. The byte that ended it may start another one.
      memset(&state, 0, sizeof state);
      if (!is_first && held_taken == 0 && held_length < sizeof held) held[held_length++] = unit;
      else if (!is_first && held_taken > 0) held[--held_taken] = unit;
      is_first = true;
    } else {
      return (int)character;
    }
  }
}

/// Adds a byte of pasted text; returns false without memory.
static bool keep_pasted(char byte) {
  if (pasted_length + 1 >= pasted_capacity) {
    size_t capacity = pasted_capacity == 0 ? 256 : pasted_capacity * 2;
    char *grown = flowsystem_resize(pasted, capacity);
    if (grown == NULL) return false;
    pasted = grown;
    pasted_capacity = capacity;
  }
  pasted[pasted_length++] = byte;
  return true;
}

/// Reads the pasted text that has arrived; returns whether it is complete. Without memory the rest
/// of the text is read too, so that it doesn't count as keys.
static bool read_pasted(void) {
  do {
    int byte = read_byte();
    if (byte < 0) return false;
    // The first byte of the mark occurs in it only once.
    if (byte == paste_end[end_length]) end_length += 1;
    else end_length = byte == paste_end[0] ? 1 : 0;
    if (!is_lost && !keep_pasted((char)byte)) is_lost = true;
    if (end_length == MARK_LENGTH) {
      if (!is_lost) pasted_length -= MARK_LENGTH;
      return true;
    }
  } while (has_byte(0));
  return false;
}

/// Removes bytes that can't be in a line from pasted text, and ends its lines as Lua does.
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
        if (!keep_pasted('\n')) return FLOWSYSTEM_LOST;
        clean_pasted();
        return FLOWSYSTEM_PASTE;
      }
      if (memcmp(held, paste_begin, held_length) != 0) return FLOWSYSTEM_KEYS;
    } while (held_length < MARK_LENGTH && has_byte(PATIENCE));
    if (held_length < MARK_LENGTH) return FLOWSYSTEM_KEYS;
    held_length = 0;
    is_pasting = true;
    is_lost = false;
    pasted_length = end_length = 0;
    if (!has_byte(0)) return FLOWSYSTEM_PART;
  }
  if (!read_pasted()) return FLOWSYSTEM_PART;
  is_pasting = false;
  if (is_lost) return FLOWSYSTEM_LOST;
  clean_pasted();
  return FLOWSYSTEM_PASTE;
}
