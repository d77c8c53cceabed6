// Stopping a coroutine that is busy.
//
// A watchdog thread signals the thread that runs Lua; where the system gives no thread, a timer does
// the watchdog's work in the handler of its signal. The handler sets a hook on the coroutine that
// runs (lua_sethook is made for that); the hook yields, which neither pcall nor a message handler
// sees. Where a yield can't be (inside a C function), the hook makes an allocation fail, as no
// message handler is called for LUA_ERRMEM, and stays armed. It costs nothing while nothing is due.
//
// The thread also calls functions at their time: alarms. A signal handler couldn't, so without a thread
// there are none.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

/// A signal that does nothing by default, so that a stray one is harmless.
enum { STOP_SIGNAL = SIGURG };

static const int64_t second = 1000000000;
/// How long until a stop that wasn't acknowledged is asked for again; it doubles each time. (A fixed
/// short interval can keep a deep recursion from ever unwinding.)
static const int64_t first_interval = 5000000;
static const int64_t last_interval = 640000000;

/// A time so many nanoseconds later, or the last one there is.
static int64_t later(int64_t time, int64_t nanoseconds) {
  int64_t sum;
  return __builtin_add_overflow(time, nanoseconds, &sum) ? INT64_MAX : sum;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * second + time.tv_nsec;
}

// MARK: - The watchdog

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool started;
static watch_record *watched;
/// When the watchdog next looks by itself.
static int64_t wakes_at = INT64_MAX;

struct flowlua_alarm {
  int64_t time;
  void (*action)(void *);
  void *context;
  flowlua_alarm *next;
};

/// The alarms whose time hasn't come, and the one whose action runs.
static flowlua_alarm *alarms;
static flowlua_alarm *ringing;
static pthread_cond_t rung = PTHREAD_COND_INITIALIZER;
static pthread_t watchdog;
/// Whether the thread is to end.
static bool pauses;

/// Asks the coroutines whose time is over to stop; returns when the next one's is. The lock is held. A
/// coroutine that isn't executing needs no signal: it checks when it is resumed. One that encloses what
/// executes does.
static int64_t stop_due(int64_t time) {
  int64_t next = INT64_MAX;
  for (watch_record *each = watched; each != NULL; each = each->next) {
    if (each->deadline <= time) {
      flowlua_coroutine *coroutine = each->coroutine;
      atomic_store(&coroutine->stop, 1);
      bool executes = atomic_load(&each->state->activity) == coroutine;
      if (!executes && each->encloses) {
        atomic_fetch_or(&each->state->requests, FLOWLUA_STOP);
        executes = true;
      }
      if (executes) pthread_kill(each->state->owner, STOP_SIGNAL);
      each->deadline = time + each->interval;
      if (executes && each->interval < last_interval) each->interval *= 2;
    }
    if (each->deadline < next) next = each->deadline;
  }
  return next;
}

/// In place of the watchdog's thread, where there is none.
static timer_t timer;
static atomic_bool has_timer;

static void set_timer(int64_t time) {
  struct itimerspec at = {.it_value = {time / second, time % second}};
  timer_settime(timer, TIMER_ABSTIME, &at, NULL);
}

/// Has the watchdog look at `time` at the latest. The lock is held.
static void look_at(int64_t time) {
  if (time >= wakes_at) return;
  wakes_at = time;
  if (atomic_load(&has_timer)) set_timer(time);
  else pthread_cond_signal(&changed);
}

/// The work of the watchdog's thread, in a signal handler.
static void look_by_timer(void) {
  // The code that was interrupted may hold the lock: it continues before the next look.
  if (pthread_mutex_trylock(&lock) != 0) {
    set_timer(now() + 1000000);
    return;
  }
  int64_t time = now();
  if (time >= wakes_at) wakes_at = stop_due(time);
  if (wakes_at != INT64_MAX) set_timer(wakes_at);
  pthread_mutex_unlock(&lock);
}

static void on_signal(int signal) {
  (void)signal;
  int problem = errno;
  if (atomic_load(&has_timer)) look_by_timer();
  errno = problem;
  flowlua_state *state = flowlua_current;
  if (state == NULL) return;
  lua_State *running = state->running;
  if (running != NULL && is_stopping(state)) flowlua_arm_stop(running);
}

/// Removes an alarm from those to come; whether it was one. The lock is held.
static bool unlink_alarm(flowlua_alarm *alarm) {
  flowlua_alarm **link = &alarms;
  while (*link != NULL && *link != alarm) link = &(*link)->next;
  if (*link == NULL) return false;
  *link = alarm->next;
  return true;
}

/// The earliest alarm; NULL without one. The lock is held.
static flowlua_alarm *first_alarm(void) {
  flowlua_alarm *first = alarms;
  for (flowlua_alarm *each = alarms; each != NULL; each = each->next) {
    if (each->time < first->time) first = each;
  }
  return first;
}

/// Calls the action of an alarm, without the lock: it may take any other lock, and set and cancel alarms.
/// It may also free this one. The lock is held.
static void ring(flowlua_alarm *alarm) {
  unlink_alarm(alarm);
  ringing = alarm;
  void (*action)(void *) = alarm->action;
  void *context = alarm->context;
  pthread_mutex_unlock(&lock);
  action(context);
  pthread_mutex_lock(&lock);
  ringing = NULL;
  pthread_cond_broadcast(&rung);
}

static void *watch(void *argument) {
  (void)argument;
  pthread_mutex_lock(&lock);
  while (!pauses) {
    // Woken for an earlier time, it only sleeps on: a deadline that comes and goes over and over needs
    // one signal until it is really due.
    int64_t time = now();
    if (time >= wakes_at) {
      wakes_at = stop_due(time);
      flowlua_alarm *alarm = first_alarm();
      if (alarm != NULL && alarm->time < wakes_at) wakes_at = alarm->time;
      if (alarm != NULL && alarm->time <= time) {
        ring(alarm);
        // The time has passed meanwhile, and others may be due.
        continue;
      }
    }
    if (wakes_at == INT64_MAX) {
      pthread_cond_wait(&changed, &lock);
    } else {
      struct timespec until = {wakes_at / second, wakes_at % second};
      pthread_cond_timedwait(&changed, &lock, &until);
    }
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/// The lock is held.
static bool start_watchdog(void) {
  if (started) return true;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  pthread_condattr_destroy(&attributes);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(STOP_SIGNAL, &action, NULL) != 0) return false;
  // The watchdog itself takes no signals: they are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int error = pthread_create(&watchdog, NULL, watch, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0) {
    // Any thread that runs Lua may get the signal: only those don't block it.
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = STOP_SIGNAL};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return false;
    atomic_store(&has_timer, true);
  }
  started = true;
  return true;
}

void flowlua_pause_watchdog(void) {
  pthread_mutex_lock(&lock);
  bool has_thread = started && !atomic_load(&has_timer);
  if (has_thread) {
    pauses = true;
    pthread_cond_signal(&changed);
  }
  pthread_mutex_unlock(&lock);
  if (has_thread) pthread_join(watchdog, NULL);
}

bool flowlua_continue_watchdog(void) {
  pthread_mutex_lock(&lock);
  bool ok = true;
  if (pauses) {
    pauses = false;
    started = false;
    // It looks at once.
    wakes_at = 0;
    ok = start_watchdog();
    // A timer doesn't ring alarms.
    if (ok && atomic_load(&has_timer)) {
      ok = alarms == NULL;
      set_timer(now());
    }
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

/// Lets the signal reach the owner thread, which this is: threads of Dispatch, among others, begin with
/// all signals blocked.
void flowlua_take_signal(flowlua_state *state) {
  if (state->takes_signal) return;
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, STOP_SIGNAL);
  pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
  state->takes_signal = true;
}

bool flowlua_signal_owner(flowlua_state *state) {
  pthread_mutex_lock(&lock);
  bool ok = start_watchdog();
  pthread_mutex_unlock(&lock);
  return ok && pthread_kill(state->owner, STOP_SIGNAL) == 0;
}

/// The record of a coroutine; NULL without memory. The lock is held.
static watch_record *make_record(flowlua_state *state, flowlua_coroutine *coroutine) {
  watch_record *watch = coroutine->watch;
  if (watch == NULL && (watch = flowlua_zeroed_own(sizeof *watch)) != NULL) {
    watch->coroutine = coroutine;
    watch->state = state;
    coroutine->watch = watch;
  }
  return watch;
}

bool flowlua_watch(
    flowlua_state *state, flowlua_coroutine *coroutine, int64_t deadline, int64_t grace) {
  flowlua_take_signal(state);
  // A negative deadline counts from now.
  if (deadline < 0) deadline = later(now(), deadline == INT64_MIN ? INT64_MAX : -deadline);
  pthread_mutex_lock(&lock);
  watch_record *watch = make_record(state, coroutine);
  bool ok = watch != NULL && start_watchdog();
  bool begins = ok && !watch->watched;
  if (begins) {
    watch->interval = first_interval;
    watch->grace_deadline = 0;
    atomic_store(&coroutine->stop, 0);
    watch->watched = true;
    watch->next = watched;
    watched = watch;
  }
  // Each that watches it relies on its own deadline, so that the earliest counts; after that the grace.
  if (begins || (ok && watch->grace_deadline == 0 && deadline < watch->deadline)) {
    watch->deadline = deadline;
    watch->grace = grace > 0 ? grace : 0;
    look_at(deadline);
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

/// Stops a coroutine that executes and is watched: the watchdog's signal comes later, perhaps within a
/// C function.
static void stop_executing(flowlua_state *state, flowlua_coroutine *coroutine) {
  pthread_mutex_lock(&lock);
  if (coroutine->watch->grace_deadline == 0) {
    atomic_store(&coroutine->stop, 1);
    if (atomic_load(&state->activity) != coroutine && coroutine->watch->encloses)
      atomic_fetch_or(&state->requests, FLOWLUA_STOP);
  }
  pthread_mutex_unlock(&lock);
}

bool flowlua_watch_activity(flowlua_state *state, int64_t deadline, int64_t grace) {
  flowlua_coroutine *activity = scheduled_activity(state);
  if (activity == NULL || !flowlua_watch(state, activity, deadline, grace)) return false;
  if (deadline >= 0 && deadline <= now()) stop_executing(state, activity);
  return true;
}

bool flowlua_stop_calls(flowlua_state *state) {
  flowlua_coroutine *call = atomic_load(&state->activity);
  if (call == NULL || scheduled_activity(state) != NULL) return false;
  while (call->watch->caller != NULL) call = call->watch->caller;
  if (!flowlua_watch(state, call, now(), call->watch->grace)) return false;
  stop_executing(state, call);
  return true;
}

void flowlua_unwatch(flowlua_coroutine *coroutine) {
  watch_record *watch = coroutine->watch;
  if (watch != NULL) watch->is_call = false;
  // Nobody has asked one to stop that was never watched, and only the owner thread, which this is,
  // puts it on the list.
  if (watch == NULL || (!watch->watched && atomic_load(&coroutine->stop) == 0)) return;
  pthread_mutex_lock(&lock);
  if (watch->watched) {
    watch_record **link = &watched;
    while (*link != NULL && *link != watch) link = &(*link)->next;
    if (*link != NULL) *link = watch->next;
    watch->watched = false;
  }
  // The watchdog may have asked when nothing was left to stop.
  atomic_store(&coroutine->stop, 0);
  watch->grace_deadline = 0;
  pthread_mutex_unlock(&lock);
}

/// Cleanups of a coroutine that was stopped: they run until the grace is over, and are stopped like
/// anything else then. All cleanups of an operation share one grace.
void flowlua_begin_grace(flowlua_coroutine *coroutine) {
  pthread_mutex_lock(&lock);
  if (is_watched(coroutine)) {
    int64_t time = now();
    if (coroutine->watch->grace_deadline == 0) {
      coroutine->watch->grace_deadline = later(time, coroutine->watch->grace);
      coroutine->watch->interval = first_interval;
    }
    if (coroutine->watch->grace_deadline > time) {
      atomic_store(&coroutine->stop, 0);
      coroutine->watch->deadline = coroutine->watch->grace_deadline;
      look_at(coroutine->watch->deadline);
    }
  }
  pthread_mutex_unlock(&lock);
}

/// A coroutine that encloses others and has been asked to stop; NULL without one. The lock is held.
static watch_record *asked_enclosure(const flowlua_state *state) {
  watch_record *asked = watched;
  while (
      asked != NULL
      && (asked->state != state || !asked->encloses || atomic_load(&asked->coroutine->stop) == 0))
    asked = asked->next;
  return asked;
}

/// The watchdog asks again in between, so that what comes after the `__close` is stopped.
bool flowlua_spares_close(flowlua_state *state) {
  flowlua_coroutine *activity = atomic_load(&state->activity);
  if (activity == NULL) return false;
  bool spares = false;
  pthread_mutex_lock(&lock);
  watch_record *watch = asked_enclosure(state);
  if (watch == NULL) watch = activity->watch;
  if (watch != NULL && watch->watched) {
    int64_t time = now();
    if (watch->grace_deadline == 0) {
      watch->grace_deadline = later(time, watch->grace);
      watch->interval = first_interval;
      watch->deadline = later(time, watch->interval);
    }
    spares = time < watch->grace_deadline;
    if (spares) {
      atomic_store(&watch->coroutine->stop, 0);
      flowlua_take_request(state, FLOWLUA_STOP);
      look_at(watch->deadline);
    }
  }
  pthread_mutex_unlock(&lock);
  return spares;
}

/// After the cleanups the stop continues.
void flowlua_end_grace(flowlua_coroutine *coroutine) {
  pthread_mutex_lock(&lock);
  if (is_watched(coroutine)) {
    atomic_store(&coroutine->stop, 1);
    coroutine->watch->deadline = now() + first_interval;
    look_at(coroutine->watch->deadline);
  }
  pthread_mutex_unlock(&lock);
}

// MARK: - Alarms

flowlua_alarm *flowlua_set_alarm(int64_t time, void (*action)(void *), void *context) {
  flowlua_alarm *alarm = flowlua_zeroed_own(sizeof *alarm);
  if (alarm == NULL) return NULL;
  alarm->time = time;
  alarm->action = action;
  alarm->context = context;
  pthread_mutex_lock(&lock);
  bool has_thread = start_watchdog() && !atomic_load(&has_timer);
  if (has_thread) {
    alarm->next = alarms;
    alarms = alarm;
    look_at(time);
  }
  pthread_mutex_unlock(&lock);
  if (has_thread) return alarm;
  free(alarm);
  return NULL;
}

void flowlua_cancel_alarm(flowlua_alarm *alarm) {
  pthread_mutex_lock(&lock);
  // The action itself can't wait for its own end.
  if (!unlink_alarm(alarm) && !(ringing == alarm && pthread_equal(pthread_self(), watchdog))) {
    while (ringing == alarm) pthread_cond_wait(&rung, &lock);
  }
  pthread_mutex_unlock(&lock);
}

void flowlua_free_alarm(flowlua_alarm *alarm) {
  flowlua_cancel_alarm(alarm);
  free(alarm);
}

// MARK: - Calls and enclosures of a coroutine

void flowlua_mark_call(flowlua_state *state, flowlua_coroutine *coroutine) {
  coroutine->watch->is_call = true;
  coroutine->watch->caller = atomic_load(&state->activity);
}

flowlua_coroutine *flowlua_begin_enclosure(flowlua_state *state) {
  flowlua_coroutine *activity = atomic_load(&state->activity);
  if (activity == NULL) return NULL;
  pthread_mutex_lock(&lock);
  watch_record *watch = make_record(state, activity);
  // It may enclose already, as the innermost of some.
  bool begins = watch != NULL && !watch->encloses;
  if (begins) watch->encloses = true;
  pthread_mutex_unlock(&lock);
  if (!begins) return NULL;
  state->enclosure_count += 1;
  return activity;
}

void flowlua_end_enclosure(flowlua_state *state, flowlua_coroutine *coroutine) {
  pthread_mutex_lock(&lock);
  coroutine->watch->encloses = false;
  bool is_in_grace = coroutine->watch->grace_deadline != 0;
  pthread_mutex_unlock(&lock);
  state->enclosure_count -= 1;
  flowlua_take_request(state, FLOWLUA_STOP);
  if (state->enclosure_count == 0) {
    state->enclosure_stopped = false;
  } else if (state->enclosure_stopped) {
    // It belongs to another one itself.
    atomic_fetch_or(&state->requests, FLOWLUA_STOP);
    flowlua_arm_stop(state->running);
  }
  if (!is_in_grace) return;
  flowlua_end_grace(coroutine);
  // At its next instruction: a pcall must not notice.
  flowlua_arm_stop(state->running);
}

void flowlua_begin_enclosure_of(flowlua_state *state, flowlua_coroutine *coroutine) {
  pthread_mutex_lock(&lock);
  coroutine->watch->encloses = true;
  pthread_mutex_unlock(&lock);
  state->enclosure_count += 1;
}

void flowlua_end_enclosure_of(flowlua_state *state, flowlua_coroutine *coroutine) {
  pthread_mutex_lock(&lock);
  coroutine->watch->encloses = false;
  bool is_asked = asked_enclosure(state) != NULL;
  pthread_mutex_unlock(&lock);
  state->enclosure_count -= 1;
  // A stop of this one is over; those around it may be stopped, too.
  if (state->enclosure_count == 0 || atomic_load(&coroutine->stop) != 0)
    state->enclosure_stopped = is_asked;
  flowlua_take_request(state, FLOWLUA_STOP);
  if (!state->enclosure_stopped) return;
  atomic_fetch_or(&state->requests, FLOWLUA_STOP);
  flowlua_arm_stop(state->running);
}

bool flowlua_encloses(const flowlua_coroutine *coroutine) {
  return coroutine->watch != NULL && coroutine->watch->encloses;
}

/// Stops the coroutines that a stopped one encloses; the time that they take to end counts into the grace of that
/// one.
void flowlua_stop_enclosed(flowlua_state *state) {
  if (state->enclosure_count == 0) return;
  state->enclosure_stopped = true;
  flowlua_take_request(state, FLOWLUA_STOP);
  pthread_mutex_lock(&lock);
  watch_record *asked = asked_enclosure(state);
  pthread_mutex_unlock(&lock);
  // Only this thread takes one from the list.
  if (asked != NULL) flowlua_begin_grace(asked->coroutine);
}

bool flowlua_is_enclosure_stopped(flowlua_state *state) {
  if (state->enclosure_count > 0 && is_asked_to_stop(state)) flowlua_stop_enclosed(state);
  return state->enclosure_stopped;
}

bool flowlua_is_activity_stopped(const flowlua_state *state) {
  const flowlua_coroutine *activity = atomic_load(&state->activity);
  return activity != NULL && atomic_load(&activity->stop) != 0;
}

const flowlua_coroutine *flowlua_activity(const flowlua_state *state) {
  return atomic_load_explicit(&state->activity, memory_order_relaxed);
}

void flowlua_forget_state(flowlua_state *state) {
  pthread_mutex_lock(&lock);
  watch_record **link = &watched;
  while (*link != NULL) {
    if ((*link)->state == state) {
      (*link)->watched = false;
      atomic_store(&(*link)->coroutine->stop, 0);
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  }
  pthread_mutex_unlock(&lock);
}
