// The signals of a program that runs scripts: Ctrl-C and SIGTERM ask for something the first time, and
// end the process the second time.
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct request {
  flowsystem_request function;
  void *context;
  /// Whether what was asked for before is still to come; NULL: only the first time asks.
  flowsystem_question is_asked;
} request;

static request interruption, termination;
static pthread_t asked_thread;
static _Atomic(int) wake_descriptor = -1;

/// How long a termination that nobody takes note of may take, because code of a C library runs.
enum { PATIENCE = 3 };

static void set_handler(int number, void (*handler)(int), int flags) {
  // Without SA_RESTART, as in the stand-alone interpreter: a read that a script waits in ends.
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

static void end_next_time(int number) {
  set_handler(number, flowsystem_on_ending_signal, SA_RESETHAND | SA_NODEFER);
}

void flowsystem_wake_loop(void) {
  int descriptor = atomic_load(&wake_descriptor);
  uint64_t one = 1;
  // Nothing to be done if it fails: the loop is then awake.
  if (descriptor >= 0 && write(descriptor, &one, sizeof one) < 0) errno = 0;
}

/// Asks, on the thread that is asked; whether it was that one.
static bool ask(int number, const request *what) {
  // Any thread that doesn't block the signal may get it.
  if (!flowsystem_is_main_thread()) {
    pthread_kill(asked_thread, number);
    return false;
  }
  int problem = errno;
  if (what->is_asked == NULL || what->is_asked(what->context)) end_next_time(number);
  // Nobody has taken note of the one before.
  if (what->is_asked != NULL && what->is_asked(what->context)) raise(number);
  what->function(what->context);
  flowsystem_wake_loop();
  errno = problem;
  return true;
}

static void on_interruption(int number) { ask(number, &interruption); }

/// A termination that nobody has taken note of.
static void on_overdue(int number) {
  (void)number;
  flowsystem_end_by_signal(SIGTERM);
}

static void on_termination(int number) {
  if (!ask(number, &termination)) return;
  struct sigaction present;
  // A script's own alarm, through a C module, is left alone.
  if (sigaction(SIGALRM, NULL, &present) != 0 || present.sa_handler != SIG_DFL) return;
  set_handler(SIGALRM, on_overdue, SA_RESETHAND);
  alarm(PATIENCE);
}

void flowsystem_begin_termination(void) {
  struct sigaction present;
  if (sigaction(SIGALRM, NULL, &present) != 0 || present.sa_handler != on_overdue) return;
  alarm(0);
  set_handler(SIGALRM, SIG_DFL, 0);
}

void flowsystem_catch_interruption(
    flowsystem_request function, void *context, flowsystem_question is_asked) {
  interruption = (request){function, context, is_asked};
  asked_thread = pthread_self();
  // Also where it was ignored, as the stand-alone interpreter does it.
  set_handler(SIGINT, on_interruption, 0);
}

void flowsystem_catch_termination(flowsystem_request function, void *context, int wake) {
  termination = (request){function, context, NULL};
  atomic_store(&wake_descriptor, wake);
  struct sigaction present;
  if (sigaction(SIGTERM, NULL, &present) != 0 || present.sa_handler == SIG_IGN) return;
  set_handler(SIGTERM, on_termination, 0);
}

void flowsystem_wake_by_signals(int wake) { atomic_store(&wake_descriptor, wake); }

void flowsystem_end_requests(void) {
  struct sigaction present;
  if (sigaction(SIGINT, NULL, &present) == 0 && present.sa_handler == on_interruption)
    end_next_time(SIGINT);
  if (sigaction(SIGTERM, NULL, &present) == 0 && present.sa_handler == on_termination)
    end_next_time(SIGTERM);
  atomic_store(&wake_descriptor, -1);
}

void flowsystem_end_by_signal(int number) {
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  flowsystem_end_programs();
  set_handler(number, SIG_DFL, 0);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  raise(number);
  // The first process of a container outlives it.
  _exit(128 + number);
}
