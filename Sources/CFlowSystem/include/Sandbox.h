// Restrictions of this process that the kernel enforces, and the limits of its resources.
#ifndef FLOWSYSTEM_SANDBOX_H
#define FLOWSYSTEM_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: - The sandbox

/// The operations that a grant allows, in bits: for a file, or for a folder with all that is in it.
enum {
  FLOWSYSTEM_GRANT_READ = 1,
  /// To change, make, rename and remove.
  FLOWSYSTEM_GRANT_WRITE = 2,
  /// To start as a program.
  FLOWSYSTEM_GRANT_EXECUTE = 4,
  /// A path that doesn't exist is left out instead of being an error.
  FLOWSYSTEM_GRANT_IF_PRESENT = 8,
};

/// A permission for a path. Links in it are followed when the sandbox is entered.
typedef struct {
  const char *path;
  uint8_t access;
} flowsystem_grant;

/// The rights that a sandbox leaves to the process and its children.
typedef struct {
  const flowsystem_grant *grants;
  size_t grant_count;
  /// Whether sockets of the internet protocols can be made.
  bool allows_network;
  /// Whether programs can be started.
  bool allows_programs;
  /// Whether a kernel that restricts only a part of it by Landlock is an error.
  bool is_strict;
} flowsystem_sandbox;

/// The outcome of entering a sandbox.
typedef enum {
  FLOWSYSTEM_SANDBOX_ENTERED,
  /// The process has more than one thread, and the kernel restricts only the calling one.
  FLOWSYSTEM_SANDBOX_THREADS,
  /// The kernel has no Landlock, or it is disabled.
  FLOWSYSTEM_SANDBOX_NO_LANDLOCK,
  /// The kernel's Landlock has an older interface than the sandbox needs.
  FLOWSYSTEM_SANDBOX_OLD_LANDLOCK,
  /// A path can't be granted.
  FLOWSYSTEM_SANDBOX_NO_GRANT,
  /// Landlock refuses the rules.
  FLOWSYSTEM_SANDBOX_REFUSED,
  /// The kernel has no seccomp filters, or refuses this one.
  FLOWSYSTEM_SANDBOX_NO_SECCOMP,
} flowsystem_sandbox_outcome;

/// Details of an outcome.
typedef struct {
  /// The system's errno, 0 without one.
  int problem;
  /// The index of the grant that failed.
  size_t grant;
  /// The version of Landlock's interface that the kernel has, 0 without one.
  int version;
} flowsystem_sandbox_report;

/// The version of Landlock's interface that a strict sandbox needs: it restricts TCP and signals.
enum { FLOWSYSTEM_STRICT_LANDLOCK = 6, FLOWSYSTEM_LEAST_LANDLOCK = 2 };

/// Whether other threads exist, which the kernel wouldn't restrict.
bool flowsystem_has_threads(void);

/// Enters a sandbox: nothing leaves it again, neither this process nor its children. A process may enter further ones,
/// each of which only restricts more. Called while the process has one thread.
///
/// With any other outcome than FLOWSYSTEM_SANDBOX_ENTERED, NO_SECCOMP and REFUSED the process is as it was.
flowsystem_sandbox_outcome flowsystem_enter_sandbox(
    const flowsystem_sandbox *sandbox, flowsystem_sandbox_report *report);

/// Closes the descriptors that the process has inherited, but those of the standard streams. Returns 0 or an errno.
int flowsystem_close_inherited(void);

/// Removes a variable of the environment, and overwrites its value. While the process has one thread.
void flowsystem_remove_variable(const char *name);

/// Removes the variables of the environment that aren't in the list, and overwrites their values.
void flowsystem_keep_environment(const char *const *names, size_t count);

/// Has a folder removed with all that is in it when this process ends, however it ends: a child process does that, which
/// isn't in the sandbox that this process enters afterwards. Called while the process has one thread. Returns 0
/// or an errno.
int flowsystem_remove_at_end(const char *path);

// MARK: - Limits

/// The most open descriptors that the system allows a process to have.
uint64_t flowsystem_most_files(void);

/// Limits the number of open descriptors of the process and its children. Returns 0 or an errno.
int flowsystem_limit_files(uint64_t count);

/// Limits the processor time of each child of the process, in seconds, and the time of the process itself to
/// `grace` more: the process has to notice by itself that it has used up the seconds. Returns 0 or an errno.
int flowsystem_limit_processor_time(uint64_t seconds, uint64_t grace);

/// The processor time that all threads of the process have used, in nanoseconds.
int64_t flowsystem_processor_time(void);

/// Ends the process with a status and a message on stderr, without cleanups, but with its programs. Any thread.
void flowsystem_end_at_once(int status, const void *message, size_t size) __attribute__((noreturn));

#endif
