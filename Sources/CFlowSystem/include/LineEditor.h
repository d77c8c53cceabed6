// Line editing with a library that has the interface of GNU readline, looked up at run time:
// neither its licence nor its absence restricts this program. One editor for the process, on the
// main thread.
#ifndef FLOWSYSTEM_LINE_EDITOR_H
#define FLOWSYSTEM_LINE_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

/// The callbacks of the editor; texts are lent for the duration of the call.
typedef struct {
  void *context;
  /// A line is complete, and editing has ended; NULL at the end of the input.
  void (*line)(void *context, const char *line);
  /// Returns the characters that delimit the word to be completed at `point`.
  const char *(*breaks)(void *context, const char *line, size_t point);
  /// Must call `flowsystem_editor_add_match` for each word that may replace `line[start..<end]`.
  void (*complete)(void *context, const char *line, size_t start, size_t end);
} flowsystem_editor_callbacks;

/// Opens the library with this file name, or the first one found when it is NULL; returns false
/// without a library. Uses the character encoding of the environment's locale, or UTF-8 if it has
/// none, and restores the terminal's modes however the process ends.
bool flowsystem_editor_open(const char *library, const flowsystem_editor_callbacks *callbacks);

/// Shows a prompt, at the start of a line, and takes over the terminal.
void flowsystem_editor_begin(const char *prompt);

/// Inserts text at the cursor, as if it was typed.
void flowsystem_editor_insert(const char *text);

/// Returns the terminal without a line; the typed text is forgotten, but stays on the screen.
void flowsystem_editor_drop(void);

/// Reads typed keys; only when the input is readable. May call `line`.
void flowsystem_editor_read(void);

/// From now on the edited line makes way for output.
void flowsystem_editor_await_output(void);

/// Draws the line again if there was output or the window has changed.
void flowsystem_editor_settle_output(void);

/// Adds a completion; may only be called within `complete`.
void flowsystem_editor_add_match(const char *match);

/// Adds an entry to the history that the editor searches.
void flowsystem_editor_add_history(const char *entry);

/// Writes the output that moves the cursor to the start of a line, if it isn't there.
void flowsystem_editor_begin_line(void);

#endif
