// The signals of a program that runs scripts: Ctrl-C, SIGTERM and SIGHUP make a request the first
// time, and end the process the second time. (Terminals and shells send SIGHUP twice: a second one
// counts as the first.)
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct request {
  flowsystem_request function;
  void *context;
  /// Whether the previous request is still pending; NULL: only the first signal makes a request.
  flowsystem_question is_asked;
} request;

static request interruption, termination;
static pthread_t asked_thread;

/// The first signal while the script stops by itself; 0 before it. Whether there is such a script, whether the signal has
/// been taken, and whether its time is over.
static _Atomic(int) stop_signal;
static _Atomic(bool) stops_itself, is_stop_taken, is_stop_over;

/// The signal that has requested the end of the process; 0 before it.
static _Atomic(int) termination_signal;
/// Whether the request hasn't been handled yet.
static _Atomic(bool) is_termination_pending;
/// Whether a further signal is a request of its own once the previous one has been handled.
static bool repeats_termination;
/// Whether Ctrl-C has requested the end of the script, so that any further signal is the second one.
static _Atomic(bool) was_interrupted;
/// Whether one of the signals has requested the end of the script.
static _Atomic(bool) was_asked_to_end;
/// Whether everything is being cancelled, so that a second signal may cut off cleanups.
static _Atomic(bool) is_cleaning_up;

/// How long an unhandled termination may take, because code of a C library is running.
enum { PATIENCE = 3 };

static void set_handler(int number, void (*handler)(int), int flags) {
  // Without SA_RESTART, like the stand-alone interpreter: a read in which a script waits then
  // ends.
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

/// Removes the status and writes a message, unless stderr is full and nobody reads it within a second: the process ends
/// also then. Safe in a signal handler.
static void say(const char *text) {
  flowsystem_abandon_status();
  struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
  if (poll(&output, 1, 1000) == 0) return;
  const char *parts[] = {flowsystem_program(), ": ", text, "\n"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0) return;
}

/// Handles the second signal.
static void on_ending(int number) {
  bool is_interrupted = number == SIGINT;
  if (atomic_load(&is_cleaning_up))
    say(is_interrupted ? "interrupted again: cleanups were cut"
                       : "terminated again: cleanups were cut");
  flowsystem_on_ending_signal(number);
}

static void end_next_time(int number) { set_handler(number, on_ending, SA_RESETHAND | SA_NODEFER); }

/// Makes the request if this is the right thread; returns whether it was.
static bool ask(int number, const request *what) {
  // Any thread that doesn't block the signal may receive it.
  if (!flowsystem_is_main_thread()) {
    pthread_kill(asked_thread, number);
    return false;
  }
  int problem = errno;
  if (what == &interruption && (what->is_asked == NULL || what->is_asked(what->context)))
    end_next_time(number);
  // The previous request hasn't been handled.
  if (what->is_asked != NULL && what->is_asked(what->context)) raise(number);
  if (what->is_asked == NULL) {
    atomic_store(&was_asked_to_end, true);
    if (what == &interruption) atomic_store(&was_interrupted, true);
    flowsystem_release_stuck_streams();
  }
  what->function(what->context);
  flowsystem_wake_loop();
  errno = problem;
  return true;
}

/// Whether a signal is only the wish that the script stops by itself.
static bool is_wish(int number) {
  if (!atomic_load(&stops_itself) || atomic_load(&is_stop_over)) return false;
  // Any thread that doesn't block the signal may receive it.
  if (!flowsystem_is_main_thread()) {
    pthread_kill(asked_thread, number);
    return true;
  }
  int none = 0;
  // Shells send SIGHUP twice.
  if (!atomic_compare_exchange_strong(&stop_signal, &none, number))
    return number == SIGHUP && none == SIGHUP;
  int problem = errno;
  flowsystem_wake_loop();
  errno = problem;
  return true;
}

void flowsystem_stop_by_script(void) { atomic_store(&stops_itself, true); }

int flowsystem_stop_signal(void) { return atomic_load(&stop_signal); }

bool flowsystem_has_stop(void) {
  return atomic_load(&stop_signal) != 0 && !atomic_load(&is_stop_taken);
}

int flowsystem_take_stop(void) {
  return flowsystem_has_stop() && !atomic_exchange(&is_stop_taken, true) ? flowsystem_stop_signal()
                                                                         : 0;
}

void flowsystem_end_stop(void) {
  if (atomic_exchange(&is_stop_over, true)) return;
  pthread_kill(asked_thread, flowsystem_stop_signal());
}

static void on_interruption(int number) {
  if (is_wish(number)) return;
  if (flowsystem_is_main_thread() && atomic_load(&termination_signal) != 0) {
    end_next_time(number);
    raise(number);
    return;
  }
  ask(number, &interruption);
}

/// Handles a termination that hasn't been handled in time.
static void on_overdue(int number) {
  (void)number;
  say("terminated within a function of C that doesn't end: cleanups were cut");
  flowsystem_end_by_signal(flowsystem_termination_signal());
}

/// Whether a signal just ends the process.
static bool has_default(const struct sigaction *present) {
  return present->sa_handler == SIG_DFL || present->sa_handler == flowsystem_on_ending_signal;
}

/// The action of SIGALRM before a termination.
static struct sigaction alarm_before;

static void on_termination(int number) {
  if (is_wish(number)) return;
  if (flowsystem_is_main_thread()) {
    int none = 0;
    bool is_second = atomic_load(&was_interrupted);
    if (is_second || !atomic_compare_exchange_strong(&termination_signal, &none, number)) {
      if (number == SIGHUP) return;
      if (is_second || !repeats_termination || atomic_load(&is_termination_pending)) {
        end_next_time(number);
        raise(number);
        return;
      }
    }
  }
  if (!ask(number, &termination)) return;
  atomic_store(&is_termination_pending, true);
  struct sigaction present;
  // A script's own alarm, set through a C module, is left alone.
  if (sigaction(SIGALRM, NULL, &present) != 0 || !has_default(&present)) return;
  alarm_before = present;
  set_handler(SIGALRM, on_overdue, SA_RESETHAND);
  alarm(PATIENCE);
}

void flowsystem_begin_termination(void) {
  atomic_store(&is_termination_pending, false);
  struct sigaction present;
  if (sigaction(SIGALRM, NULL, &present) != 0 || present.sa_handler != on_overdue) return;
  alarm(0);
  sigaction(SIGALRM, &alarm_before, NULL);
}

void flowsystem_catch_interruption(
    flowsystem_request function, void *context, flowsystem_question is_asked) {
  interruption = (request){function, context, is_asked};
  asked_thread = pthread_self();
  // Also if it was ignored, like the stand-alone interpreter.
  set_handler(SIGINT, on_interruption, 0);
}

void flowsystem_catch_termination(
    flowsystem_request function, void *context, bool repeatedly, int wake) {
  termination = (request){function, context, NULL};
  repeats_termination = repeatedly;
  flowsystem_wake_by_signals(wake);
  const int numbers[] = {SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction present;
    // An ignored signal stays ignored, and a script's own handler, set through a C module, stays
    // the script's.
    if (sigaction(numbers[i], NULL, &present) != 0) continue;
    if (has_default(&present)) set_handler(numbers[i], on_termination, 0);
  }
}

bool flowsystem_was_interrupted(void) { return atomic_load(&was_interrupted); }

bool flowsystem_was_asked_to_end(void) { return atomic_load(&was_asked_to_end); }

int flowsystem_termination_signal(void) {
  int number = atomic_load(&termination_signal);
  return number != 0 ? number : SIGTERM;
}

void flowsystem_note_cleanups(bool are_running) { atomic_store(&is_cleaning_up, are_running); }

bool flowsystem_runs_cleanups(void) { return atomic_load(&is_cleaning_up); }

void flowsystem_end_requests(void) {
  struct sigaction present;
  if (sigaction(SIGINT, NULL, &present) == 0 && present.sa_handler == on_interruption)
    end_next_time(SIGINT);
  if (sigaction(SIGTERM, NULL, &present) == 0 && present.sa_handler == on_termination)
    end_next_time(SIGTERM);
  if (sigaction(SIGHUP, NULL, &present) == 0 && present.sa_handler == on_termination)
    end_next_time(SIGHUP);
  flowsystem_wake_by_signals(-1);
}

void flowsystem_end_by_signal(int number) {
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  flowsystem_leave();
  set_handler(number, SIG_DFL, 0);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  raise(number);
  // The first process of a container survives the signal.
  _exit(128 + number);
}

/// Handles Ctrl-Z and all other signals that pause the process.
static void on_pause(int number) {
  int problem = errno;
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  struct sigaction standard = {.sa_handler = SIG_DFL}, own;
  sigemptyset(&standard.sa_mask);
  sigaction(number, &standard, &own);
  // They have groups of their own, which the terminal's Ctrl-Z doesn't reach.
  flowsystem_pause_programs(true);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  // The process continues here.
  flowsystem_pause_programs(false);
  sigaction(number, &own, NULL);
  errno = problem;
}

void flowsystem_catch_unless_taken(int number, void (*handler)(int)) {
  struct sigaction present;
  if (sigaction(number, NULL, &present) != 0 || present.sa_handler != SIG_DFL) return;
  set_handler(number, handler, SA_RESTART);
}

void flowsystem_catch_pauses(void) { flowsystem_catch_unless_taken(SIGTSTP, on_pause); }

void flowsystem_catch_quit(void) {
  flowsystem_catch_unless_taken(SIGQUIT, flowsystem_end_by_signal);
}
