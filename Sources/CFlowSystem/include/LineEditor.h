// Line editing by a library with the interface of GNU readline, looked up at run time: neither its
// licence nor its absence binds this program. One editor for the process, on the main thread.
#ifndef FLOWSYSTEM_LINE_EDITOR_H
#define FLOWSYSTEM_LINE_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

/// How the editor calls back; texts are lent for the time of the call.
typedef struct {
  void *context;
  /// A line is finished, and editing has ended; NULL at the end of the input.
  void (*line)(void *context, const char *line);
  /// Answers at which characters the word begins that is to be completed at `point`.
  const char *(*breaks)(void *context, const char *line, size_t point);
  /// Is to call `flowsystem_editor_add_match` for each word that may replace `line[start..<end]`.
  void (*complete)(void *context, const char *line, size_t start, size_t end);
} flowsystem_editor_callbacks;

/// Opens the library with this file name, or the first one that is found when it is NULL; false
/// without one. Takes the character type of the environment's locale, UTF-8 where that has none, and
/// has the terminal's modes restored whatever ends the process.
bool flowsystem_editor_open(
    const char *library, const flowsystem_editor_callbacks *callbacks);

/// Shows a prompt, at the beginning of a line, and takes over the terminal.
void flowsystem_editor_begin(const char *prompt);

/// Puts text where the cursor is, as if it was typed.
void flowsystem_editor_insert(const char *text);

/// Gives the terminal back without a line; what was typed so far is forgotten, but stays on the screen.
void flowsystem_editor_drop(void);

/// Takes what was typed; only when the input is readable. May call `line`.
void flowsystem_editor_read(void);

/// From now on the line that is edited gives way when something is printed.
void flowsystem_editor_await_output(void);

/// Draws the line anew if something was printed or the window has changed since.
void flowsystem_editor_settle_output(void);

/// Adds a completion; within `complete` only.
void flowsystem_editor_add_match(const char *match);

/// Adds an entry to the history that the editor searches.
void flowsystem_editor_add_history(const char *entry);

/// Writes what brings the cursor to the beginning of a line, if it isn't there.
void flowsystem_editor_begin_line(void);

/// How many columns and rows the terminal has.
void flowsystem_terminal_size(int *columns, int *rows);

/// Whether a line of stdin can be read without waiting.
bool flowsystem_has_input(void);

#endif
