// What the files of this module share.
#ifndef FLOWSYSTEM_INTERNAL_H
#define FLOWSYSTEM_INTERNAL_H

#include "CFlowSystem.h"

#include <signal.h>
#include <stdio.h>

/// Blocks the signals that end this process, so that none comes between the start of a program and
/// its entry among the groups. `before` gets the mask to go back to.
void flowsystem_hold_ending_signals(sigset_t *before);

/// Room for the group of a program, or NULL when there is no memory.
flowsystem_group *flowsystem_prepare_group(void);

/// Notes the leader of a group, which is the number of the group too.
void flowsystem_enter_group(flowsystem_group *group, int leader);

/// Handles a signal, once its handler is gone: ends the programs, then this process by the same signal.
void flowsystem_on_ending_signal(int number);

/// Wakes the loop that signals wake, if there is one. Safe in a signal handler.
void flowsystem_wake_loop(void);

/// The name that messages begin with.
const char *flowsystem_program(void);

/// Gives the terminal the modes that it had before the line editor took it. Safe in a signal handler.
void flowsystem_restore_terminal(void);

/// What has come from a terminal that tells pasted text from keys.
typedef enum {
  /// Keys, for `flowsystem_next_character` to take.
  FLOWSYSTEM_KEYS,
  /// Text that was pasted.
  FLOWSYSTEM_PASTE,
  /// A part of such a text.
  FLOWSYSTEM_PART,
  /// The end of the input.
  FLOWSYSTEM_END,
} flowsystem_input;

/// Reads what has come; only when there is something.
flowsystem_input flowsystem_read_input(void);

/// Whether keys that have come aren't taken yet.
bool flowsystem_holds_keys(void);

/// The next key as a character, for which it waits; -1 at the end of the input, and when a signal comes.
int flowsystem_next_character(FILE *stream);

/// What was pasted last, with Lua's line ends; valid until something is read.
const char *flowsystem_pasted_text(void);

/// Gives the room back, before the leader is reaped.
void flowsystem_release_group(flowsystem_group *group);

#endif
