// The sandbox of a process: Landlock's rules for files, the network and signals, capabilities, and the filter of
// system calls.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"
#include "sandbox_filter.h"

// MARK: - Landlock's interface, of which the headers of Debian 12 know only the beginning

#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

/// Accesses to files, in bits; in parentheses the version of the interface that has brought it.
enum {
  FS_EXECUTE = 1 << 0,
  FS_WRITE_FILE = 1 << 1,
  FS_READ_FILE = 1 << 2,
  FS_READ_DIR = 1 << 3,
  FS_REMOVE_DIR = 1 << 4,
  FS_REMOVE_FILE = 1 << 5,
  FS_MAKE_DIR = 1 << 7,
  FS_MAKE_REG = 1 << 8,
  FS_MAKE_FIFO = 1 << 10,
  FS_MAKE_SYM = 1 << 12,
  /// All of version 1.
  FS_FIRST = (1 << 13) - 1,
  /// To rename or link into another folder (2).
  FS_REFER = 1 << 13,
  /// (3)
  FS_TRUNCATE = 1 << 14,
  /// Commands to a device that the process has opened (5).
  FS_IOCTL_DEV = 1 << 15,
};

/// To bind and to connect TCP sockets (4).
enum { NET_TCP = 3 };
/// Abstract UNIX sockets and signals outside of the sandbox (6).
enum { SCOPE_ALL = 3 };

typedef struct {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
} ruleset_attributes;

typedef struct {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed)) path_attributes;

enum { RULE_PATH_BENEATH = 1, RULESET_VERSION = 1 };

static int create_ruleset(int version, bool allows_network) {
  ruleset_attributes attributes = {.files = FS_FIRST | FS_REFER};
  size_t size = sizeof attributes.files;
  if (version >= 3) attributes.files |= FS_TRUNCATE;
  if (version >= 4) {
    size += sizeof attributes.network;
    if (!allows_network) attributes.network = NET_TCP;
  }
  if (version >= 5) attributes.files |= FS_IOCTL_DEV;
  if (version >= 6) {
    size += sizeof attributes.scoped;
    attributes.scoped = SCOPE_ALL;
  }
  return (int)syscall(__NR_landlock_create_ruleset, &attributes, size, 0);
}

/// The accesses of a grant, as far as the kernel knows them.
static uint64_t accesses(uint8_t grant, int version, bool is_folder) {
  uint64_t allowed = 0;
  if (grant & FLOWSYSTEM_GRANT_READ) allowed |= FS_READ_FILE | FS_READ_DIR;
  if (grant & FLOWSYSTEM_GRANT_EXECUTE) allowed |= FS_EXECUTE;
  if (grant & FLOWSYSTEM_GRANT_WRITE) {
    // No devices, and no sockets between processes.
    allowed |= FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG
        | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER;
    if (version >= 3) allowed |= FS_TRUNCATE;
  }
  const uint64_t of_files = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE;
  return is_folder ? allowed : allowed & of_files;
}

/// Adds the rule of a grant. Returns 0 or an errno.
static int add_rule(int rules, const flowsystem_grant *grant, int version) {
  int fd = open(grant->path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT && grant->access & FLOWSYSTEM_GRANT_IF_PRESENT ? 0 : errno;
  struct stat status;
  int problem = fstat(fd, &status) == 0 ? 0 : errno;
  if (problem == 0) {
    path_attributes rule = {
        .allowed = accesses(grant->access, version, S_ISDIR(status.st_mode)), .parent = fd};
    if (syscall(__NR_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) != 0) problem = errno;
  }
  close(fd);
  return problem;
}

// MARK: - Capabilities

/// Drops the capabilities of the superuser, but those with which it opens the files of others: Landlock restricts these.
static int drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  memset(data, 0, sizeof data);
  if (syscall(__NR_capget, &header, data) != 0) return errno;
  const uint32_t kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
    data[i].effective &= i == 0 ? kept : 0;
    data[i].permitted &= i == 0 ? kept : 0;
    data[i].inheritable = 0;
  }
  return syscall(__NR_capset, &header, data) == 0 ? 0 : errno;
}

// MARK: - Entering

// A sanitizer's runtime reads /proc/self/maps before the sandbox is closed, and the thread sanitizer's has a thread
// of its own, which stays outside.
#if __has_feature(thread_sanitizer)
enum { RUNTIME_THREADS = 1 };
#else
enum { RUNTIME_THREADS = 0 };
#endif
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
void __sanitizer_sandbox_on_notify(void *arguments);
static void tell_sanitizer(void) { __sanitizer_sandbox_on_notify(NULL); }
#else
static void tell_sanitizer(void) {}
#endif

// /proc, which would list them, may be out of reach, and a container may refuse unshare.
bool flowsystem_has_threads(void) {
  if (unshare(CLONE_THREAD) == 0) return false;
  const int problem = errno;
  struct stat threads;
  // One link for each thread, besides those of any folder.
  if (stat("/proc/self/task", &threads) != 0) return true;
  return threads.st_nlink > 3 + RUNTIME_THREADS || (problem == EINVAL && RUNTIME_THREADS == 0);
}

/// Restricts this thread by the rules and the filter. Returns an outcome, and sets the errno of a report.
static flowsystem_sandbox_outcome restrict_self(
    int rules, const flowsystem_sandbox *sandbox, flowsystem_sandbox_report *report) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    report->problem = errno;
    return FLOWSYSTEM_SANDBOX_REFUSED;
  }
  if ((report->problem = drop_capabilities()) != 0) return FLOWSYSTEM_SANDBOX_REFUSED;
  if (syscall(__NR_landlock_restrict_self, rules, 0) != 0) {
    report->problem = errno;
    return FLOWSYSTEM_SANDBOX_REFUSED;
  }
  report->problem =
      flowsystem_filter_calls(sandbox->allows_network, sandbox->allows_programs, report->version);
  return report->problem == 0 ? FLOWSYSTEM_SANDBOX_ENTERED : FLOWSYSTEM_SANDBOX_NO_SECCOMP;
}

flowsystem_sandbox_outcome flowsystem_enter_sandbox(
    const flowsystem_sandbox *sandbox, flowsystem_sandbox_report *report) {
  *report = (flowsystem_sandbox_report){0};
  if (flowsystem_has_threads()) return FLOWSYSTEM_SANDBOX_THREADS;
  tell_sanitizer();
  long version = syscall(__NR_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
  if (version < 0) {
    report->problem = errno;
    return FLOWSYSTEM_SANDBOX_NO_LANDLOCK;
  }
  report->version = (int)version;
  int least = sandbox->is_strict ? FLOWSYSTEM_STRICT_LANDLOCK : FLOWSYSTEM_LEAST_LANDLOCK;
  if (version < least) return FLOWSYSTEM_SANDBOX_OLD_LANDLOCK;
  int rules = create_ruleset((int)version, sandbox->allows_network);
  if (rules < 0) {
    report->problem = errno;
    return FLOWSYSTEM_SANDBOX_NO_LANDLOCK;
  }
  for (size_t i = 0; i < sandbox->grant_count; i++) {
    report->problem = add_rule(rules, &sandbox->grants[i], (int)version);
    if (report->problem == 0) continue;
    report->grant = i;
    close(rules);
    return FLOWSYSTEM_SANDBOX_NO_GRANT;
  }
  flowsystem_sandbox_outcome outcome = restrict_self(rules, sandbox, report);
  close(rules);
  return outcome;
}

// MARK: - Descriptors and environment that the process was given

int flowsystem_close_inherited(void) { return flowsystem_close_from(3); }

static bool is_kept(const char *variable, const char *const *names, size_t count) {
  const char *sign = strchr(variable, '=');
  if (sign == NULL) return false;
  size_t length = (size_t)(sign - variable);
  for (size_t i = 0; i < count; i++)
    if (strlen(names[i]) == length && memcmp(names[i], variable, length) == 0) return true;
  return false;
}

void flowsystem_remove_variable(const char *name) {
  char *value = getenv(name);
  if (value == NULL) return;
  // The system shows the bytes of the start to all processes of the user.
  explicit_bzero(value, strlen(value));
  unsetenv(name);
}

void flowsystem_keep_environment(const char *const *names, size_t count) {
  if (environ == NULL) return;
  char **kept = environ;
  for (char **each = environ; *each != NULL; each++) {
    if (is_kept(*each, names, count)) *kept++ = *each;
    // The system has put it where the process can write.
    else explicit_bzero(*each, strlen(*each));
  }
  *kept = NULL;
}
