// Functions that Swift's Glibc module can't import or call: missing headers, macros and variadic
// functions.
#ifndef FLOWSYSTEM_H
#define FLOWSYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Files.h"
#include "LineEditor.h"
#include "Sandbox.h"

/// Returns the words of the command line, and sets their number. They stay valid.
char *const *flowsystem_arguments(int *count);

/// Returns a close-on-exec, non-blocking eventfd, or -1 with errno set. <sys/eventfd.h> isn't in
/// Glibc's module map.
int flowsystem_eventfd(void);

/// Waits until one of two descriptors is readable, of which `other` may be -1, or `timeout_ns` nanoseconds have passed; a
/// negative timeout is no limit. Returns 1 when readable, 0 when the time is over or a signal arrived, -1 on an error.
int flowsystem_wait_readable_any(int fd, int other, int64_t timeout_ns);

/// The code that a blocked thread keeps from running: none, the code of Swift's cooperative pool, or of the main
/// actor.
typedef enum flowsystem_place {
  FLOWSYSTEM_OWN_THREAD,
  FLOWSYSTEM_POOL_THREAD,
  FLOWSYSTEM_MAIN_ACTOR,
} flowsystem_place;

/// Returns what the calling thread is for, as far as Dispatch knows.
flowsystem_place flowsystem_blocked_place(void);

/// Returns the address of the calling thread's current event loop, or NULL. Swift has no thread-local variables.
void *flowsystem_current_loop(void);

/// Sets that address.
void flowsystem_set_current_loop(void *loop);

/// Names the calling thread for the system, which takes at most 15 bytes.
void flowsystem_name_thread(const char *name);

/// Whether the calling thread is the main thread of the process.
bool flowsystem_is_main_thread(void);

/// Returns the eventfd that becomes readable when Dispatch's main queue, which holds the jobs of
/// the main actor, has something to run; -1 when Dispatch isn't part of the process, or no
/// descriptor is left. Called on the main thread.
int flowsystem_main_queue_descriptor(void);

/// Runs the jobs of the main queue, if its descriptor is readable; returns whether it was. Nested
/// calls do nothing. Called on the main thread.
bool flowsystem_drain_main_queue(int descriptor);
/// Returns a close-on-exec epoll descriptor, or -1 with errno set. <sys/epoll.h> isn't in Glibc's
/// module map.
int flowsystem_epoll_create(void);

/// Watches `fd` for being readable, writable, or both; its events carry `tag`. Returns 0 or an errno.
int flowsystem_epoll_add(int epoll, int fd, bool reading, bool writing, uint64_t tag);

/// Changes what a watched `fd` is watched for. Returns 0 or an errno.
int flowsystem_epoll_change(int epoll, int fd, bool reading, bool writing, uint64_t tag);

/// Ends watching `fd`, which must still be open.
void flowsystem_epoll_remove(int epoll, int fd);

/// A ready descriptor.
typedef struct flowsystem_ready {
  /// The tag with which it was added.
  uint64_t tag;
  /// The operations that it is ready for; an error, or the end of the other side, counts as both.
  bool reading;
  bool writing;
} flowsystem_ready;

/// Stores the ready descriptors, at most `capacity` and at most 64, without waiting. Returns their
/// number.
int flowsystem_epoll_take(int epoll, struct flowsystem_ready *ready, int capacity);

/// The values of a stream of a program other than a descriptor.
enum {
  /// A pipe between this process and the program.
  FLOWSYSTEM_PIPE = -1,
  /// The stream of this process.
  FLOWSYSTEM_INHERIT = -2,
  /// /dev/null.
  FLOWSYSTEM_NOTHING = -3,
};

/// A program to start.
typedef struct {
  /// Ends with NULL; the first word is the program, looked up on the PATH when it has no slash.
  char *const *argv;
  /// Ends with NULL; NULL means this process's own.
  char *const *environment;
  /// NULL means this process's own.
  const char *cwd;
  /// Standard input, output and error: a descriptor above 2, which stays open here, or one of the
  /// values above.
  int streams[3];
  /// Whether to fail with EMFILE when the last descriptors would be used up.
  bool keeps_reserve;
} flowsystem_spawn_request;

/// Opens a file for a stream of a program, close-on-exec and without waiting for the other end of a
/// FIFO. A file to write is made or emptied. Returns -1 with errno set when that fails.
int flowsystem_open_stream(const char *path, bool writing);

/// The process group of a program, kept where the end of this process can find it.
typedef struct flowsystem_group flowsystem_group;

/// A program that was started.
typedef struct {
  int pid;
  /// The argument of kill that reaches it: minus the number of its group, or its own number if it
  /// shares the group and the terminal of this process.
  int target;
  int pidfd;
  flowsystem_group *group;
  /// This process's non-blocking ends of the pipes; -1 for a missing pipe.
  int streams[3];
} flowsystem_spawned;

/// Starts a program with the signal actions that a program expects and no descriptor except the three
/// streams. It has a process group of its own, unless it inherits a terminal as its input: the system
/// stops a program that reads the terminal from another group. Returns 0 or an errno. The `_np` functions and
/// pidfds aren't in Glibc's module map.
int flowsystem_spawn(const flowsystem_spawn_request *request, flowsystem_spawned *spawned);

/// Waits for the end of a program and takes its status: the exit status, or minus the signal.
/// Returns false when other code has taken the status.
bool flowsystem_reap(int pid, flowsystem_group *group, int *status);

/// Releases the room of a group: before the leader is reaped, or of a program that can't be ended.
void flowsystem_release_group(flowsystem_group *group);

/// A program, the processes that it has started, and those that these have started.
typedef struct flowsystem_tree flowsystem_tree;

/// Finds what a program has started. NULL without memory.
flowsystem_tree *flowsystem_find_tree(flowsystem_group *group, int pid, int target);

/// Asks a program to end: SIGTERM to its group, once. Returns the processes that it has started, or NULL without
/// memory.
flowsystem_tree *flowsystem_end_program(flowsystem_group *group, int pid, int target);

/// A descriptor that is readable when a process of the tree has ended, until the next call of flowsystem_tell_tree; -1
/// without a tree, or without a descriptor.
int flowsystem_tree_descriptor(const flowsystem_tree *tree);

/// Sends SIGTERM to those of the tree that haven't got it and whose parent has ended, or to all. Returns how many
/// are running. Safe in a signal handler, with NULL as well.
size_t flowsystem_tell_tree(flowsystem_tree *tree, bool all);

/// Kills those of the tree that are running, and what they have started since. Safe in a signal handler, with NULL as well.
void flowsystem_kill_tree(flowsystem_tree *tree);

/// Forgets all of a tree, which may be NULL. Safe in a signal handler.
void flowsystem_clear_tree(flowsystem_tree *tree);

/// When this process exits, it kills all that it and its code have started, also what has become a daemon. A process that is
/// forked doesn't.
void flowsystem_kill_children_at_exit(void);

/// From now on programs end with this process, when it exits or is ended by SIGHUP, SIGINT,
/// SIGQUIT, SIGPIPE or SIGTERM: they and what they have started get SIGTERM and, after a second at most, SIGKILL.
/// Handlers are installed with the first program, for signals that have the default action at that
/// time.
void flowsystem_end_programs_with_process(void);

/// Handles the signals that end this process by default, if the program has asked for that: from now on, not only from
/// the first program on. Paths that are noted as temporary are removed then, too.
void flowsystem_watch_end(void);

/// From now on programs are killed, with their child processes, also when this process is killed by SIGKILL: a process
/// that it leaves does that. Called once, before the first program and the first thread. Returns 0 or an errno.
int flowsystem_kill_programs_when_killed(void);

/// Forks a process that helps this one, in a process group of its own. In it, returns 0: its standard input ends when this
/// process has ended, and its outputs are a pipe to this process. Here, returns its number, the pipe's end, and the end of
/// its input; -1 with errno set when that fails. Called before the first thread.
int flowsystem_begin_helper(const char *name, int *output, int *lifeline);

/// Ends the input of a helper, and waits until it has ended. It is killed after `patience` milliseconds; false if this
/// process may not do that, and it is still there.
bool flowsystem_end_helper(int helper, int lifeline, int patience);

/// Ends all programs now: SIGTERM and, after a second at most, SIGKILL. Their statuses still have
/// to be taken.
void flowsystem_end_programs(void);

/// Makes a request, in a signal handler.
typedef void (*flowsystem_request)(void *context);

/// Returns an answer, in a signal handler.
typedef bool (*flowsystem_question)(void *context);

/// Makes the first SIGINT call `function`, on the main thread, which is the calling thread; the
/// second one ends the process, and programs with it. A further call makes the next one the first
/// again. With `is_asked`, each SIGINT counts as the first, unless `is_asked` returns that the
/// previous request is still pending.
void flowsystem_catch_interruption(
    flowsystem_request function, void *context, flowsystem_question is_asked);

/// Makes the first SIGTERM and SIGHUP call `function`, if they have their default action; a second
/// SIGHUP does nothing. From now on all kinds also write to the eventfd `wake`. Unless
/// `flowsystem_begin_termination` is called in time, the process ends nevertheless: it may be in a
/// C function that takes long. With `repeatedly`, a further SIGTERM calls `function` again once that has been called.
void flowsystem_catch_termination(
    flowsystem_request function, void *context, bool repeatedly, int wake);

/// Makes the first of these signals a wish from now on: it only wakes the loop. The next one counts as the first.
void flowsystem_stop_by_script(void);

/// Returns the signal that was such a wish; 0 before it.
int flowsystem_stop_signal(void);

/// Whether there is such a signal that hasn't been taken.
bool flowsystem_has_stop(void);

/// Takes the signal: returns it once, and 0 otherwise.
int flowsystem_take_stop(void);

/// Sends the signal again, which now counts as the first, unless that was done. Any thread.
void flowsystem_end_stop(void);

/// Returns whether Ctrl-C has requested the end of the script.
bool flowsystem_was_interrupted(void);

/// Makes both kinds write to another eventfd from now on.
void flowsystem_wake_by_signals(int wake);

/// Returns whether one of the signals has requested the end of the script; SIGINT within a session doesn't.
bool flowsystem_was_asked_to_end(void);

/// Returns the signal that has requested the end of the process.
int flowsystem_termination_signal(void);

/// Sets whether cleanups are running because of a signal: a second signal then prints that it cuts
/// them off.
void flowsystem_note_cleanups(bool are_running);

/// Whether they are running. Any thread.
bool flowsystem_runs_cleanups(void);

/// Records that the end that a signal has requested has begun.
void flowsystem_begin_termination(void);

/// Makes both signals end the process from now on, because nothing is left to handle their
/// requests.
void flowsystem_end_requests(void);

/// Ends the programs, then this process as the signal's default action does.
void flowsystem_end_by_signal(int number) __attribute__((noreturn));

/// Has the system keep the statuses of ended programs, also if the process was started by one that ignores SIGCHLD.
void flowsystem_keep_statuses(void);

/// Makes sure that descriptors 0, 1 and 2 are in use, so that no file that is opened gets the
/// number of a closed stream.
void flowsystem_hold_streams(void);

/// Makes malloc keep freed memory, for a process whose threads pass values to each other. Otherwise
/// the system would take back the memory that one thread frees at once and return it a page at a
/// time, which interrupts every thread.
void flowsystem_keep_freed_memory(void);

/// Prepares the process for a lack of memory. When Lua finds none, that is an error of the script; when Swift finds
/// none, a linker option (see Package.swift) makes the process end with a sentence and status 1, instead of by a
/// signal. To be called when the process starts, on its main thread.
void flowsystem_end_without_memory(void);

/// Makes the n-th request for memory fail that this target makes for itself on this thread; 0 ends
/// that. Returns how many requests were left before the one that fails, which is counted; 0 when it
/// has failed. For tests.
uint64_t flowsystem_fail_allocation(uint64_t n) __attribute__((swift_attr("@discardableResult")));

/// Does what has to be done last, when all other work at the exit is done. Returns the status of the process.
typedef int (*flowsystem_last_work)(int status);

/// When the process exits with status 0 but its output to stdout couldn't be written, it prints
/// that and the status is 1. Then it calls `work` and ends: what was registered for the exit before this call, and the
/// destructors of libraries, aren't called, as other threads may still use these. `program` must stay valid; if it is
/// NULL, the name is flowlua.
void flowsystem_end_at_exit(const char *program, flowsystem_last_work work);

/// Reads a line of stdin with its newline, allocated with malloc; NULL at the end. Without memory
/// for it the process ends with a sentence. stdin is a macro for a global variable.
char *flowsystem_read_line(size_t *count);

/// Whether a line of stdin can be read without waiting.
bool flowsystem_has_input(void);

/// The result of `flowsystem_fill_input`, if it isn't an errno.
enum {
  /// There are bytes.
  FLOWSYSTEM_INPUT_READY = 0,
  /// There are none yet.
  FLOWSYSTEM_INPUT_LATER = -1,
  /// There are none, and this is the end.
  FLOWSYSTEM_INPUT_END = -2,
};

/// Locks the C stream stdin, which io.read uses too, for the functions below; returns false while
/// another thread reads it.
bool flowsystem_lock_input(void);
void flowsystem_unlock_input(void);

/// Lends the bytes of stdin that are in its buffer, and sets their number.
const void *flowsystem_input_bytes(size_t *count);

/// Removes the first bytes of the buffer.
void flowsystem_take_input(size_t count);

/// Reads stdin once if its buffer is empty and that doesn't wait.
int flowsystem_fill_input(void);

/// Writes a file; returns false with errno set when that fails.
bool flowsystem_write_file(const char *path, const void *bytes, size_t count);

/// write(2) without a SIGPIPE when the reader is gone, whatever the program's action for that
/// signal.
ptrdiff_t flowsystem_write_quietly(int fd, const void *bytes, size_t count);

/// Writes `number` as printf's "%.<precision>g" does; returns the length, less than `size`.
/// printf is variadic, which Swift doesn't import.
size_t flowsystem_format_g(char *buffer, size_t size, int precision, double number);

/// Writes to the C stream stdout or stderr, after its buffered output, and flushes it. Both are
/// macros for global variables, which Swift's concurrency checks refuse.
void flowsystem_write(const void *bytes, size_t count, bool to_error);

// MARK: - Files of lines

/// A file, or stdout, to which whole lines are appended on a thread of its own.
typedef struct flowsystem_line_file flowsystem_line_file;

/// Opens a file, which is made if it doesn't exist; `path` is NULL for stdout. A pipe with a name may
/// still have no reader. Returns NULL with errno set.
flowsystem_line_file *flowsystem_line_file_open(const char *path);

/// Appends a line, which ends with '\n'; it is written within a tenth of a second, unless the disk or the
/// reader of a pipe is slower. Never waits for it. Returns 0, or the errno with which the line, and
/// all that follow, are dropped: ENOBUFS when too much waits to be written.
int flowsystem_line_file_append(flowsystem_line_file *file, const char *line, size_t count);

/// Writes what still waits, for at most this time, and closes the file, which must not be used any
/// more. Returns how many lines haven't been written, and the errno of the reason, which is 0 when
/// only the time was too short.
uint64_t flowsystem_line_file_close(flowsystem_line_file *file, int64_t timeout_ns, int *problem);

/// Makes the C stream stdout write each line at once, and as one.
void flowsystem_write_whole_lines(void);

// MARK: - The status

/// Shows lines at the bottom of the terminal of stderr, instead of the previous ones. In `text`, '\n'
/// separates the lines, of which each must be shorter than the terminal is wide; they must not be
/// more than the terminal has. Returns false, without showing them, while other output is in the
/// last line or another program has the terminal.
bool flowsystem_show_status(const char *text, size_t count);

/// Moves the cursor back to where it is while the lines are shown: a key may have moved it.
void flowsystem_place_cursor(void);

/// Removes the lines, before other output; may be called on any thread.
void flowsystem_hide_status(void);

/// Whether the lines are shown.
bool flowsystem_is_status_shown(void);

/// Whether another program reads stdout: it is a pipe or a socket.
bool flowsystem_is_stdout_piped(void);

/// Records whether what was written to stdout or stderr ends with a complete line. Output to a
/// file doesn't count.
void flowsystem_note_output(bool to_error, bool ends_line);

/// Whether the terminal takes output now. After Ctrl-S it doesn't, and a write would wait for Ctrl-Q.
bool flowsystem_takes_output(void);

/// Moves the cursor to the start of a line if another program may have left it within one.
void flowsystem_begin_line(void);

/// Whether the terminal is free for a line of its own: no output ends within a line, and no other program
/// uses it. The line editor takes lines in.
bool flowsystem_takes_lines(void);

/// Records that a program which writes to this terminal starts or has ended.
void flowsystem_lend_terminal(bool begins);

/// Records that this process begins to wait for keys of the terminal, or has ended that.
void flowsystem_read_terminal(bool begins);

/// Returns the signal that has stopped a program since the last call, or 0.
int flowsystem_stopped_by(int pid);

/// How this process stands to the terminal that controls it.
typedef enum {
  FLOWSYSTEM_NO_TERMINAL,
  /// Another process group is in the foreground.
  FLOWSYSTEM_IN_BACKGROUND,
  /// It waits for keys itself.
  FLOWSYSTEM_READS_TERMINAL,
  FLOWSYSTEM_HAS_TERMINAL,
} flowsystem_terminal;

flowsystem_terminal flowsystem_seek_terminal(void);

/// Gives the terminal to a program's group, and continues that. The process must have the terminal.
bool flowsystem_give_terminal(int group);

/// Takes the terminal back, with the modes that it had. Safe in a signal handler.
void flowsystem_take_terminal_back(void);

/// Hides the lines, in a signal handler that ends or pauses the process.
void flowsystem_abandon_status(void);

/// Makes signals that pause the process, such as Ctrl-Z's, restore the terminal and hide the
/// status first, unless other code handles them.
void flowsystem_catch_pauses(void);

/// Makes the signal of Ctrl-\ do the same before it ends the process.
void flowsystem_catch_quit(void);

/// Gets the number of columns and rows of the terminal of stdout.
void flowsystem_terminal_size(int *columns, int *rows);

/// Gets the number of columns and rows of the terminal of stderr; returns false when that isn't
/// known.
bool flowsystem_status_size(int *columns, int *rows);

#endif
