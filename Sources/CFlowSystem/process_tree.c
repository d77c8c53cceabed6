// The processes that a program has started, wherever they are: a process group is left by shells with job control, by
// `timeout`, `setsid` and whatever becomes a daemon.
//
// They are found in /proc when the program is to end. Without /proc, or with a kernel that doesn't list children there,
// a program has only its group. All but what takes and returns memory is safe in a signal handler.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// MARK: - Reading /proc

/// Writes the decimal digits of a number; returns their end.
static char *put_number(char *at, unsigned number) {
  char digits[10];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0) *at++ = digits[--count];
  return at;
}

/// Opens /proc/PID/REST, or /proc/PID/task/THREAD/REST if there is a thread.
static int open_of(pid_t pid, pid_t thread, const char *rest, int flags) {
  char path[64] = "/proc/";
  char *end = put_number(path + 6, (unsigned)pid);
  if (thread != 0) end = put_number(stpcpy(end, "/task/"), (unsigned)thread);
  *end++ = '/';
  strcpy(end, rest);
  return open(path, flags | O_CLOEXEC);
}

/// The parent of a process; 0 if it can't be read.
static pid_t parent_of(pid_t pid) {
  char text[512];
  int file = open_of(pid, 0, "stat", O_RDONLY);
  if (file < 0) return 0;
  ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  if (count <= 0) return 0;
  text[count] = 0;
  // The name in parentheses may have any characters; the state and the parent follow.
  const char *at = strrchr(text, ')');
  if (at == NULL || strlen(at) < 4) return 0;
  pid_t parent = 0;
  for (at += 4; *at >= '0' && *at <= '9'; at++) parent = parent * 10 + (*at - '0');
  return parent;
}

typedef void each_number(pid_t number, void *context);

/// Calls a function for each number of a text that arrives in parts.
typedef struct number_reader {
  each_number *function;
  void *context;
  pid_t number;
} number_reader;

static void take_text(number_reader *reader, const char *text, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (text[i] >= '0' && text[i] <= '9') reader->number = reader->number * 10 + (text[i] - '0');
    else if (reader->number != 0) {
      reader->function(reader->number, reader->context);
      reader->number = 0;
    }
  }
}

typedef struct entry {
  ino64_t inode;
  off64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
} entry;

/// Calls a function for each thread of a process.
static void for_each_thread(pid_t pid, each_number *function, void *context) {
  int folder = open_of(pid, 0, "task", O_RDONLY | O_DIRECTORY);
  if (folder < 0) return;
  _Alignas(entry) char entries[2048];
  number_reader reader = {function, context, 0};
  long count;
  while ((count = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
    for (long at = 0; at < count;) {
      const entry *each = (const entry *)(entries + at);
      take_text(&reader, each->name, strlen(each->name) + 1);
      at += each->length;
    }
  close(folder);
}

// MARK: - Members

typedef struct member {
  pid_t pid, parent;
  /// Of the process; -1 once it has ended.
  int descriptor;
  /// Whether it has got SIGTERM.
  bool is_told;
} member;

struct flowsystem_tree {
  /// The program, and its group if it has one: they have got SIGTERM, or are about to.
  pid_t root, group;
  /// Readable when a member has ended; -1 for none: a signal handler looks at them again and again.
  int wakeups;
  size_t count;
  member members[FLOWSYSTEM_MOST_MEMBERS];
};

static bool is_running(const member *each) {
  struct pollfd end = {.fd = each->descriptor, .events = POLLIN};
  // A signal may interrupt even this.
  return each->descriptor >= 0 && poll(&end, 1, 0) <= 0;
}

static void forget(member *each) {
  int descriptor = each->descriptor;
  each->descriptor = -1;
  if (descriptor >= 0) close(descriptor);
}

static int signal_member(const member *each, int number) {
  return (int)syscall(SYS_pidfd_send_signal, each->descriptor, number, NULL, 0);
}

typedef struct search {
  flowsystem_tree *tree;
  pid_t parent;
  /// Whether the group is signalled after the search: what is found in it later may not have been there.
  bool is_before_signal;
} search;

static bool has_room(const flowsystem_tree *tree, pid_t pid) {
  for (size_t i = 0; i < tree->count; i++)
    if (tree->members[i].pid == pid && tree->members[i].descriptor >= 0) return false;
  return tree->count < FLOWSYSTEM_MOST_MEMBERS;
}

static void add_member(pid_t pid, void *context) {
  const search *found = context;
  flowsystem_tree *tree = found->tree;
  if (!has_room(tree, pid)) return;
  int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
  if (descriptor < 0) return;
  // The number may have got to another process meanwhile.
  if (parent_of(pid) != found->parent) {
    close(descriptor);
    return;
  }
  if (tree->wakeups >= 0) {
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(tree->wakeups, EPOLL_CTL_ADD, descriptor, &event);
  }
  tree->members[tree->count++] = (member){
      .pid = pid,
      .parent = found->parent,
      .descriptor = descriptor,
      .is_told = pid == tree->root
          || (found->is_before_signal && tree->group != 0 && getpgid(pid) == tree->group)};
}

static void add_children_of_thread(pid_t thread, void *context) {
  const search *found = context;
  int file = open_of(found->parent, thread, "children", O_RDONLY);
  if (file < 0) return;
  char text[1024];
  number_reader reader = {add_member, context, 0};
  ssize_t count;
  while ((count = read(file, text, sizeof text)) > 0) take_text(&reader, text, (size_t)count);
  take_text(&reader, " ", 1);
  close(file);
}

static void add_children(flowsystem_tree *tree, pid_t parent, bool is_before_signal) {
  search found = {tree, parent, is_before_signal};
  for_each_thread(parent, add_children_of_thread, &found);
}

/// Adds what has been started since.
static void search_again(flowsystem_tree *tree, bool is_before_signal) {
  // The list grows meanwhile.
  for (size_t i = 0; i < tree->count; i++)
    if (is_running(&tree->members[i])) add_children(tree, tree->members[i].pid, is_before_signal);
}

void flowsystem_plant_tree(flowsystem_tree *tree, int root, int target) {
  tree->root = root;
  tree->group = target < 0 ? -target : 0;
  search found = {tree, getpid(), true};
  add_member(root, &found);
  search_again(tree, true);
}

void flowsystem_copy_tree(flowsystem_tree *tree, const flowsystem_tree *from) {
  for (size_t i = 0; from != NULL && i < from->count; i++) {
    member each = from->members[i];
    if (!is_running(&each) || !has_room(tree, each.pid)) continue;
    each.descriptor = fcntl(each.descriptor, F_DUPFD_CLOEXEC, 0);
    if (each.descriptor >= 0) tree->members[tree->count++] = each;
  }
}

size_t flowsystem_tell_tree(flowsystem_tree *tree, bool all) {
  if (tree == NULL) return 0;
  // A program may start others when it is asked to end, and end before them.
  search_again(tree, false);
  size_t running = 0;
  for (size_t i = 0; i < tree->count; i++) {
    member *each = &tree->members[i];
    if (each->descriptor < 0) continue;
    if (!is_running(each)) {
      forget(each);
      continue;
    }
    running++;
    // A parent that still runs tells it itself: a second SIGTERM may cut what the first one has begun.
    if (each->is_told || (!all && parent_of(each->pid) == each->parent)) continue;
    each->is_told = true;
    signal_member(each, SIGTERM);
    signal_member(each, SIGCONT);
  }
  return running;
}

size_t flowsystem_count_tree(const flowsystem_tree *tree) {
  size_t running = 0;
  for (size_t i = 0; i < tree->count; i++) running += is_running(&tree->members[i]);
  return running;
}

void flowsystem_kill_members(const flowsystem_tree *tree) {
  for (size_t i = 0; i < tree->count; i++)
    if (is_running(&tree->members[i])) signal_member(&tree->members[i], SIGKILL);
}

void flowsystem_kill_tree(flowsystem_tree *tree) {
  if (tree == NULL) return;
  search_again(tree, false);
  flowsystem_kill_members(tree);
}

void flowsystem_clear_tree(flowsystem_tree *tree) {
  if (tree == NULL) return;
  for (size_t i = 0; i < tree->count; i++) forget(&tree->members[i]);
  tree->count = 0;
  if (tree->wakeups >= 0) close(tree->wakeups);
  tree->wakeups = -1;
}

// MARK: - All children

static pid_t owner_of_all;

static void kill_child(pid_t pid, void *context) {
  kill(pid, SIGKILL);
  ++*(size_t *)context;
}

static void kill_children_of_thread(pid_t thread, void *context) {
  int file = open_of(getpid(), thread, "children", O_RDONLY);
  if (file < 0) return;
  char text[1024];
  number_reader reader = {kill_child, context, 0};
  ssize_t count;
  while ((count = read(file, text, sizeof text)) > 0) take_text(&reader, text, (size_t)count);
  take_text(&reader, " ", 1);
  close(file);
}

static void kill_all_children(void) {
  // Not in a process that a test has forked.
  if (getpid() != owner_of_all) return;
  // Those of a killed one become children of this process. One that can't be killed keeps nobody for longer than a second.
  const struct timespec pause = {.tv_nsec = 1000000};
  for (int left = 1000; left > 0; left--) {
    size_t killed = 0;
    for_each_thread(owner_of_all, kill_children_of_thread, &killed);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    if (killed == 0) return;
    nanosleep(&pause, NULL);
  }
}

void flowsystem_kill_children_at_exit(void) {
  owner_of_all = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  atexit(kill_all_children);
}

// MARK: - Memory

flowsystem_tree *flowsystem_tree_in_handler(void) {
  static struct flowsystem_tree left = {.wakeups = -1};
  return &left;
}

flowsystem_tree *flowsystem_make_tree(void) {
  flowsystem_tree *tree = flowsystem_zeroed(sizeof *tree);
  if (tree != NULL) tree->wakeups = -1;
  return tree;
}

void flowsystem_watch_tree(flowsystem_tree *tree) { tree->wakeups = epoll_create1(EPOLL_CLOEXEC); }

int flowsystem_tree_descriptor(const flowsystem_tree *tree) {
  return tree == NULL ? -1 : tree->wakeups;
}
