// Declarations that the files of this module share.
#ifndef FLOWSYSTEM_INTERNAL_H
#define FLOWSYSTEM_INTERNAL_H

#include "CFlowSystem.h"

#include <signal.h>
#include <stdio.h>

// MARK: - Memory

/// The functions of the C library, which return NULL without memory; see limits.c.
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);

/// As realloc, calloc and strndup; all can be made to fail. The memory is freed by free.
void *flowsystem_resize(void *block, size_t size);
void *flowsystem_zeroed(size_t size);
char *flowsystem_copy_text(const char *text, size_t length);

/// Ends the programs and the process with a sentence and status 1.
void flowsystem_exit_without_memory(void) __attribute__((noreturn));

// MARK: - Programs and signals

/// Blocks the signals that end this process, so that none arrives between the start of a program
/// and its entry in the groups. `before` gets the mask to restore.
void flowsystem_hold_ending_signals(sigset_t *before);

/// Returns room for the group of a program, or NULL when there is no memory.
flowsystem_group *flowsystem_prepare_group(void);

/// Stores the argument of kill for a program: minus the number of its group, which is its leader's, or
/// the number of a program without a group of its own.
void flowsystem_enter_group(flowsystem_group *group, int target);

enum { FLOWSYSTEM_MOST_MEMBERS = 512 };

/// The room for a tree that a signal handler uses. Used by one thread at a time.
flowsystem_tree *flowsystem_tree_in_handler(void);

flowsystem_tree *flowsystem_make_tree(void);

/// Opens the descriptor of a tree; see flowsystem_tree_descriptor.
void flowsystem_watch_tree(flowsystem_tree *tree);

/// Adds a program and the processes that it has started to a tree. Safe in a signal handler.
void flowsystem_plant_tree(flowsystem_tree *tree, int root, int target);

/// For a handler that meets a tree in use: how many of it are running, and SIGKILL for these. Nothing is changed.
size_t flowsystem_count_tree(const flowsystem_tree *tree);
void flowsystem_kill_members(const flowsystem_tree *tree);

/// Adds what is running of another tree, which may be NULL. Safe in a signal handler.
void flowsystem_copy_tree(flowsystem_tree *tree, const flowsystem_tree *from);

/// Pauses all running programs, or continues them. Safe in a signal handler.
void flowsystem_pause_programs(bool pauses);

/// Puts later groups into memory that a forked process shares. Returns 0 or an errno.
int flowsystem_share_groups(void);

/// Kills all programs that run, also those whose parent isn't this process.
void flowsystem_kill_groups(void);

/// Leaves a child process that calls `then` once this one has ended, or has written a byte to `*lifeline`, and ends with it. It
/// keeps no descriptor but `kept`, if that isn't negative, as its descriptor 1. `ps` shows its name. Returns its
/// number, or -1 with `errno` set.
pid_t flowsystem_leave_process(
    const char *name, int kept, void (*then)(const void *), const void *argument, int *lifeline);

/// Ends the programs and removes the temporary files and folders, before the process ends without its exit handlers.
/// Safe in a signal handler.
void flowsystem_leave(void);

/// Removes a folder, of which this is a descriptor, with all that is in it. Safe in a signal handler.
void flowsystem_remove_folder(int folder, const char *path);

/// Removes the temporary files and folders of this process. Safe in a signal handler.
void flowsystem_remove_temporaries(void);

/// Handles a signal whose handler has been removed: ends the programs, then this process by the
/// same signal.
void flowsystem_on_ending_signal(int number);

/// Installs a handler unless other code handles the signal, or it is ignored.
void flowsystem_catch_unless_taken(int number, void (*handler)(int));

/// From now on what can't be written to stdout or stderr for a second is dropped, so that the process can end. Called on the
/// main thread. Safe in a signal handler.
void flowsystem_release_stuck_streams(void);

/// Wakes the loop that signals wake, if there is one. Safe in a signal handler.
void flowsystem_wake_loop(void);

/// Returns the name at the start of messages.
const char *flowsystem_program(void);

/// Closes all descriptors from this one on. Returns 0 or an errno.
int flowsystem_close_from(int first);

// MARK: - The terminal

// All but the first are safe in a signal handler.

/// Sets whether the editor needs marks around pasted text; at first it doesn't.
void flowsystem_use_paste_marks(bool uses);

/// Requests the marks from the terminal, or ends that, if the editor needs them.
void flowsystem_request_paste_marks(bool requests);

/// Records that the line editor has the terminal, and the modes that it had before.
void flowsystem_take_terminal(void);

/// Keeps the modes that the editor has set, for after a pause of the process.
void flowsystem_adopt_modes(void);

/// Whether the line editor has the terminal.
bool flowsystem_has_terminal(void);

/// Restores the modes that the terminal had before the line editor took it.
void flowsystem_restore_terminal(void);

/// Sets the modes of the editor again, after a pause of the process; returns false when the editor
/// doesn't have the terminal.
bool flowsystem_retake_terminal(void);

/// Records that the line editor no longer has the terminal.
void flowsystem_return_terminal(void);

/// Writes to the terminal, bypassing the stream stdout; a failure is ignored.
void flowsystem_write_plainly(const char *bytes, size_t count);

// MARK: - The editor's input

/// The kind of input from a terminal that distinguishes pasted text from keys.
typedef enum {
  /// Keys, which `flowsystem_next_character` returns.
  FLOWSYSTEM_KEYS,
  /// Text that was pasted.
  FLOWSYSTEM_PASTE,
  /// A part of a pasted text.
  FLOWSYSTEM_PART,
  /// A pasted text for which there was no memory.
  FLOWSYSTEM_LOST,
  /// The end of the input.
  FLOWSYSTEM_END,
} flowsystem_input;

/// Reads the available input; only when there is some.
flowsystem_input flowsystem_read_input(void);

/// Whether there are keys that haven't been read yet.
bool flowsystem_holds_keys(void);

/// Returns the next key as a character, for which it waits; -1 at the end of the input, and when a
/// signal arrives.
int flowsystem_next_character(FILE *stream);

/// Returns the text that was pasted last, with Lua's line ends; valid until the next read.
const char *flowsystem_pasted_text(void);

// MARK: - Digests and ciphers

/// Finds a function of OpenSSL's libcrypto, which flowsystem_load_crypto has loaded, and stores it at `place`. Returns
/// whether there is one.
bool flowsystem_find_crypto(const char *name, void *place);

#endif
