// What Swift's Glibc module can't import or call: missing headers, macros and variadic functions.
#ifndef FLOWSYSTEM_H
#define FLOWSYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "LineEditor.h"

/// The words that the process was started with, and how many they are. They stay.
char *const *flowsystem_arguments(int *count);

/// A close-on-exec, non-blocking eventfd, or -1 with errno set. <sys/eventfd.h> isn't in Glibc's
/// module map.
int flowsystem_eventfd(void);

/// Waits until `fd` is readable or `timeout_ns` nanoseconds have passed; a negative timeout waits
/// without end. Returns 1 when readable, 0 when time is up or a signal arrived, -1 on an error.
int flowsystem_wait_readable(int fd, int64_t timeout_ns);

/// The same for two descriptors, of which `other` may be -1.
int flowsystem_wait_readable_any(int fd, int other, int64_t timeout_ns);

/// Whether the calling thread is the one that the process began with.
bool flowsystem_is_main_thread(void);

/// The eventfd that becomes readable when Dispatch's main queue, which is where jobs of the main actor
/// go, has something to do; -1 when Dispatch isn't part of the process, or no descriptor is left. On the
/// main thread.
int flowsystem_main_queue_descriptor(void);

/// Does what the main queue has to do, if its descriptor is readable; returns whether it was. Calls
/// from within do nothing. On the main thread.
bool flowsystem_drain_main_queue(int descriptor);
/// A close-on-exec epoll descriptor, or -1 with errno set. <sys/epoll.h> isn't in Glibc's module map.
int flowsystem_epoll_create(void);

/// Watches `fd`, for as long as it can be read from (or written to); its events carry `tag`. Returns
/// 0 or an errno.
int flowsystem_epoll_add(int epoll, int fd, bool writing, uint64_t tag);

/// Ends watching `fd`, which must still be open.
void flowsystem_epoll_remove(int epoll, int fd);

/// Takes the tags of at most `capacity`, and at most 64, descriptors that are ready, without waiting.
/// Returns how many there are.
int flowsystem_epoll_take(int epoll, uint64_t *tags, int capacity);

/// A program to start.
typedef struct {
  /// Ends with NULL; the first is the program, looked up on the PATH when it has no slash.
  char *const *argv;
  /// Ends with NULL; NULL: this process's own.
  char *const *environment;
  /// NULL: this process's own.
  const char *cwd;
  /// Whether its standard input is a pipe from this process, instead of /dev/null.
  bool stdin_is_piped;
  /// Whether its outputs are pipes to this process, instead of this process's own.
  bool outputs_are_piped;
  /// Whether to fail with EMFILE when the last descriptors would be used up.
  bool keeps_reserve;
} flowsystem_spawn_request;

/// The process group of a program, where the end of this process finds it.
typedef struct flowsystem_group flowsystem_group;

/// A program that was started.
typedef struct {
  int pid;
  int pidfd;
  flowsystem_group *group;
  /// This process's non-blocking ends of the pipes, -1 where there is none.
  int streams[3];
} flowsystem_spawned;

/// Starts a program in a process group of its own, with all signals as a program expects them and no
/// descriptor but the three streams. Returns 0 or an errno. The `_np` functions and pidfds aren't in
/// Glibc's module map.
int flowsystem_spawn(const flowsystem_spawn_request *request, flowsystem_spawned *spawned);

/// Waits for the end of a program and takes its status: what it exited with, or minus the signal.
/// Returns whether there was one; without, somebody else has taken it.
bool flowsystem_reap(int pid, flowsystem_group *group, int *status);

/// From now on programs end with this process, when it exits or is ended by SIGHUP, SIGINT, SIGQUIT,
/// SIGPIPE or SIGTERM: their groups get SIGTERM and, after a second at most, SIGKILL. Handlers are
/// installed with the first program, for signals whose action is the default one then.
void flowsystem_end_programs_with_process(void);

/// Ends all programs now: SIGTERM and, after a second at most, SIGKILL. Their statuses are still to be
/// taken.
void flowsystem_end_programs(void);

/// Asks for something, in a signal handler.
typedef void (*flowsystem_request)(void *context);

/// Answers something, in a signal handler.
typedef bool (*flowsystem_question)(void *context);

/// Has the first SIGINT call `function`, on the main thread, which this is; the second ends the process,
/// and programs with it. To be called again for the next "first" one. With `is_asked` each one is a
/// first one, unless that says that what the one before asked for is still to come.
void flowsystem_catch_interruption(
    flowsystem_request function, void *context, flowsystem_question is_asked);

/// The same for SIGTERM and SIGHUP, where they do what they do by default; a second SIGHUP does nothing.
/// From now on all kinds also write to the eventfd `wake`. Unless `flowsystem_begin_termination` is
/// called in time, the process ends all the same: it may be in a C function that takes long.
void flowsystem_catch_termination(
    flowsystem_request function, void *context, int wake);

/// Has both kinds write to another eventfd from now on.
void flowsystem_wake_by_signals(int wake);

/// The signal that has asked for the end of the process.
int flowsystem_termination_signal(void);

/// Says whether cleanups run because a signal has asked for something: a second signal then says that
/// it cuts them.
void flowsystem_note_cleanups(bool are_running);

/// Says that the end that a signal has asked for has begun.
void flowsystem_begin_termination(void);

/// Has both signals end the process from now on: nobody is there any more to be asked.
void flowsystem_end_requests(void);

/// Ends the programs, then this process as the default action of a signal does.
void flowsystem_end_by_signal(int number) __attribute__((noreturn));

/// Sees to it that descriptors 0, 1 and 2 are taken, so that no file that is opened gets the place of a
/// closed stream.
void flowsystem_hold_streams(void);

/// Has malloc keep what is freed, for a process whose threads hand each other values: what one of them
/// frees the system would else take back at once and give again a page at a time, and each thread
/// would have to take note.
void flowsystem_keep_freed_memory(void);

/// Has the process end with a sentence and status 1 when Swift finds no memory, instead of by a signal;
/// what Lua finds none for is an error of the script. To be called when the process begins, on its main
/// thread. What Swift's own allocations do depends on a linker option; see Package.swift.
void flowsystem_end_without_memory(void);

/// When the process exits with status 0 and what it wrote to stdout couldn't be written, it says so and
/// the status is 1. `program` must stay; without it the name is flowlua.
void flowsystem_check_output_at_exit(const char *program);

/// A line of stdin with its newline, malloc's; NULL at the end. stdin is a macro for a global variable.
char *flowsystem_read_line(size_t *count);

/// Writes a file; false with errno set when that fails.
bool flowsystem_write_file(
    const char *path, const void *bytes, size_t count);

/// write(2) without a SIGPIPE when nobody reads any more, whatever the program makes of that signal.
ptrdiff_t flowsystem_write_quietly(int fd, const void *bytes, size_t count);

/// Writes `number` as printf's "%.<precision>g" does; returns the length, less than `size`.
/// printf is variadic, which Swift doesn't import.
size_t flowsystem_format_g(char *buffer, size_t size, int precision, double number);

/// Writes to the C stream stdout or stderr, behind what stands in its buffer, and flushes it. Both
/// are macros for global variables, which Swift's concurrency checks refuse.
void flowsystem_write(const void *bytes, size_t count, bool to_error);

// MARK: - The status line

/// Shows a line of status at the bottom of the terminal that stderr is, in place of the one before;
/// `text` is one line of at most 1,000 bytes that fits. Answers false, without showing it, while other
/// output stands in that line or another program has the terminal.
bool flowsystem_show_status(const char *text, size_t count);

/// Takes the line away, before other output; may be called on any thread.
void flowsystem_hide_status(void);

/// Notes whether the output to the terminal ends with a whole line by now.
void flowsystem_note_output(bool ends_line);

/// Notes that a program which writes to this terminal begins or has ended.
void flowsystem_lend_terminal(bool begins);

/// The same as hiding, for a signal handler that ends the process.
void flowsystem_abandon_status(void);

/// The width of the terminal that stderr is; 0 when that isn't known.
int flowsystem_terminal_columns(void);

#endif
