// The process groups of the running programs, kept where a signal handler can find them.
//
// Each program has a group of its own, so that it can be stopped with its child processes. A
// terminal's Ctrl-C therefore doesn't reach it, and nothing notifies it of the end of this process. Only
// a program that reads the terminal shares the group of this process.
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct flowsystem_group {
  /// The argument of kill: minus the leader, or a program without a group of its own; 0 for none.
  /// The process isn't reaped while this is set.
  _Atomic(pid_t) target;
  /// Whether it has got SIGTERM, which may cut what a first one has begun.
  _Atomic(bool) is_told;
  /// The processes that it has started, if it was ever asked to end. Later programs of this place use it again, and
  /// it is never freed, so that a handler can read it at any time.
  _Atomic(flowsystem_tree *) tree;
  struct flowsystem_group *next_free;
};

enum { BLOCK_SIZE = 64 };

/// Blocks are only ever added, so that a handler can walk them at any time.
typedef struct block {
  struct flowsystem_group groups[BLOCK_SIZE];
  struct block *next;
} block;

static _Atomic(block *) first_block;
static struct flowsystem_group *first_free;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/// The process whose children they are: a forked process has none of them.
static _Atomic(pid_t) owner;
static _Atomic(bool) is_asked;

/// The signals that end a process by default, except those of a crash and those without a name.
static const int ENDING_SIGNALS[] = {SIGHUP,  SIGINT,  SIGQUIT,   SIGPIPE,  SIGTERM,
                                     SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF,  SIGXCPU,
                                     SIGALRM, SIGPOLL, SIGPWR,    SIGSTKFLT};
enum { ENDING_COUNT = sizeof ENDING_SIGNALS / sizeof *ENDING_SIGNALS };

/// Whether a program is still running; -1 when other code has reaped it, and its number may belong
/// to another process.
static int is_running(pid_t target) {
  siginfo_t information = {0};
  id_t pid = (id_t)(target < 0 ? -target : target);
  if (waitid(P_PID, pid, &information, WEXITED | WNOHANG | WNOWAIT) != 0) return -1;
  return information.si_pid == 0;
}

static void signal_groups(int number) {
  for (block *each = atomic_load(&first_block); each != NULL; each = each->next)
    for (int i = 0; i < BLOCK_SIZE; i++) {
      pid_t target = atomic_load(&each->groups[i].target);
      if (target != 0 && is_running(target) >= 0) kill(target, number);
    }
}

/// Sends SIGTERM to a group that hasn't got it. A stopped process doesn't handle it before it continues.
static void tell(flowsystem_group *group, pid_t target) {
  if (!atomic_exchange(&group->is_told, true)) kill(target, SIGTERM);
  kill(target, SIGCONT);
}

/// Sends SIGTERM to all groups, and notes what their programs have started.
static void tell_all(flowsystem_tree *started) {
  for (block *each = atomic_load(&first_block); each != NULL; each = each->next)
    for (int i = 0; i < BLOCK_SIZE; i++) {
      pid_t target = atomic_load(&each->groups[i].target);
      if (target == 0 || is_running(target) < 0) continue;
      if (started != NULL) {
        // A program that has been asked to end may have lost the parent by which it was found.
        flowsystem_copy_tree(started, atomic_load(&each->groups[i].tree));
        flowsystem_plant_tree(started, target < 0 ? -target : target, target);
      }
      tell(&each->groups[i], target);
    }
}

static bool is_any_running(void) {
  for (block *each = atomic_load(&first_block); each != NULL; each = each->next)
    for (int i = 0; i < BLOCK_SIZE; i++) {
      pid_t target = atomic_load(&each->groups[i].target);
      if (target != 0 && is_running(target) > 0) return true;
    }
  return false;
}

static int64_t monotonic_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

/// Sends SIGTERM to all programs and to what they have started, and kills what hasn't ended after a second. All of it is
/// safe in a signal handler.
void flowsystem_end_programs(void) {
  if (getpid() != atomic_load(&owner)) return;
  // A signal may come to another thread meanwhile, or to this one, whose end must not leave what has been found.
  static _Atomic(bool) is_used;
  bool is_first = !atomic_exchange(&is_used, true);
  flowsystem_tree *started = flowsystem_tree_in_handler();
  tell_all(is_first ? started : NULL);
  // By the clock: a look at many processes takes longer than the pause.
  const int64_t second = 1000000000, begin = monotonic_time();
  for (int64_t passed = 0; passed < second; passed = monotonic_time() - begin) {
    size_t running = is_first ? flowsystem_tell_tree(started, passed >= second / 2)
                              : flowsystem_count_tree(started);
    if (running == 0 && !is_any_running()) break;
    struct timespec millisecond = {.tv_nsec = 1000000};
    nanosleep(&millisecond, NULL);
  }
  if (is_first) flowsystem_kill_tree(started);
  else flowsystem_kill_members(started);
  signal_groups(SIGKILL);
  flowsystem_take_terminal_back();
  if (!is_first) return;
  flowsystem_clear_tree(started);
  atomic_store(&is_used, false);
}

flowsystem_tree *flowsystem_find_tree(flowsystem_group *group, int pid, int target) {
  flowsystem_tree *tree = atomic_load(&group->tree);
  if (tree == NULL) {
    tree = flowsystem_make_tree();
    if (tree == NULL) return NULL;
    atomic_store(&group->tree, tree);
  }
  flowsystem_watch_tree(tree);
  flowsystem_plant_tree(tree, pid, target);
  return tree;
}

flowsystem_tree *flowsystem_end_program(flowsystem_group *group, int pid, int target) {
  // Before the signal: the children of a process that has ended have another parent.
  flowsystem_tree *tree = flowsystem_find_tree(group, pid, target);
  tell(group, target);
  return tree;
}

/// Ends the groups, then this process by the same signal. Its handler has been removed, and the
/// signal isn't blocked, so a second one ends the process at once.
void flowsystem_on_ending_signal(int number) {
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  flowsystem_leave();
  raise(number);
}

void flowsystem_leave(void) {
  flowsystem_end_programs();
  // None of them uses these any more.
  flowsystem_remove_temporaries();
}

static void watch_end(void) {
  static bool is_done;
  if (is_done) return;
  is_done = true;
  atexit(flowsystem_end_programs);
  for (int i = 0; i < ENDING_COUNT; i++) {
    struct sigaction action;
    // An ignored signal stays ignored, and a handler of other code stays installed.
    if (sigaction(ENDING_SIGNALS[i], NULL, &action) != 0) continue;
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action = (struct sigaction){
        .sa_handler = flowsystem_on_ending_signal,
        .sa_flags = SA_RESTART | SA_RESETHAND | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(ENDING_SIGNALS[i], &action, NULL);
  }
}

void flowsystem_pause_programs(bool pauses) { signal_groups(pauses ? SIGTSTP : SIGCONT); }

void flowsystem_watch_end(void) {
  if (!atomic_load(&is_asked)) return;
  pthread_mutex_lock(&mutex);
  watch_end();
  pthread_mutex_unlock(&mutex);
}

void flowsystem_end_programs_with_process(void) { atomic_store(&is_asked, true); }

void flowsystem_hold_ending_signals(sigset_t *before) {
  sigset_t ending;
  sigemptyset(&ending);
  for (int i = 0; i < ENDING_COUNT; i++) sigaddset(&ending, ENDING_SIGNALS[i]);
  pthread_sigmask(SIG_BLOCK, &ending, before);
}

/// Adds a block, with the lock held.
static void add_block(block *made) {
  for (int i = 0; i < BLOCK_SIZE; i++) {
    made->groups[i].next_free = first_free;
    first_free = &made->groups[i];
  }
  made->next = atomic_load(&first_block);
  atomic_store(&first_block, made);
}

flowsystem_group *flowsystem_prepare_group(void) {
  pthread_mutex_lock(&mutex);
  if (first_free == NULL) {
    block *made = flowsystem_zeroed(sizeof *made);
    if (made != NULL) add_block(made);
  }
  flowsystem_group *group = first_free;
  if (group != NULL) {
    first_free = group->next_free;
    atomic_store(&owner, getpid());
    if (atomic_load(&is_asked)) watch_end();
  }
  pthread_mutex_unlock(&mutex);
  return group;
}

void flowsystem_enter_group(flowsystem_group *group, int target) {
  atomic_store(&group->is_told, false);
  atomic_store(&group->target, target);
}

void flowsystem_release_group(flowsystem_group *group) {
  atomic_store(&group->target, 0);
  pthread_mutex_lock(&mutex);
  group->next_free = first_free;
  first_free = group;
  pthread_mutex_unlock(&mutex);
}

int flowsystem_share_groups(void) {
  enum { SHARED_BLOCKS = 64 };
  block *shared = mmap(
      NULL, SHARED_BLOCKS * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
      0);
  if (shared == MAP_FAILED) return errno;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < SHARED_BLOCKS; i++) add_block(&shared[i]);
  pthread_mutex_unlock(&mutex);
  return 0;
}

void flowsystem_kill_groups(void) {
  for (block *each = atomic_load(&first_block); each != NULL; each = each->next)
    for (int i = 0; i < BLOCK_SIZE; i++) {
      pid_t target = atomic_load(&each->groups[i].target);
      if (target != 0) kill(target, SIGKILL);
    }
}
