// Descriptors: those that wake a loop, and waiting for them.
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "CFlowSystem.h"
#include "internal.h"

int flowsystem_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int flowsystem_wait_readable_any(int fd, int other, int64_t timeout_ns) {
  struct pollfd entries[] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
  struct timespec timeout = {0};
  if (timeout_ns >= 0) {
    timeout.tv_sec = (time_t)(timeout_ns / 1000000000);
    timeout.tv_nsec = (long)(timeout_ns % 1000000000);
  }
  int count = ppoll(entries, other < 0 ? 1 : 2, timeout_ns >= 0 ? &timeout : NULL, NULL);
  if (count < 0) return errno == EINTR ? 0 : -1;
  return count > 0;
}

int flowsystem_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static uint32_t epoll_interest(bool reading, bool writing) {
  return (reading ? (uint32_t)EPOLLIN : 0) | (writing ? (uint32_t)EPOLLOUT : 0);
}

int flowsystem_epoll_add(int epoll, int fd, bool reading, bool writing, uint64_t tag) {
  struct epoll_event event = {.events = epoll_interest(reading, writing), .data = {.u64 = tag}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

int flowsystem_epoll_change(int epoll, int fd, bool reading, bool writing, uint64_t tag) {
  struct epoll_event event = {.events = epoll_interest(reading, writing), .data = {.u64 = tag}};
  return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0 ? 0 : errno;
}

void flowsystem_epoll_remove(int epoll, int fd) {
  struct epoll_event unused = {0};
  epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &unused);
}

int flowsystem_epoll_take(int epoll, struct flowsystem_ready *ready, int capacity) {
  enum { LIMIT = 64 };
  struct epoll_event events[LIMIT];
  int count = epoll_wait(epoll, events, capacity < LIMIT ? capacity : LIMIT, 0);
  for (int i = 0; i < count; i++) {
    // An error, or the end of the other side, shows in the next call of either kind.
    bool ended = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0;
    ready[i].tag = events[i].data.u64;
    ready[i].reading = ended || (events[i].events & EPOLLIN) != 0;
    ready[i].writing = ended || (events[i].events & EPOLLOUT) != 0;
  }
  return count < 0 ? 0 : count;
}

// The event loop whose code a thread executes.

static _Thread_local void *current_loop;

void *flowsystem_current_loop(void) { return current_loop; }

void flowsystem_set_current_loop(void *loop) { current_loop = loop; }

// The loop that signals wake.

static _Atomic(int) wake_descriptor = -1;

void flowsystem_wake_by_signals(int wake) { atomic_store(&wake_descriptor, wake); }

void flowsystem_wake_loop(void) {
  int descriptor = atomic_load(&wake_descriptor);
  uint64_t one = 1;
  // A failure needs no handling: the loop is awake then.
  if (descriptor >= 0 && write(descriptor, &one, sizeof one) < 0) errno = 0;
}
