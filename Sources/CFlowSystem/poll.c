#include "CFlowSystem.h"

#include <errno.h>
#include <sys/epoll.h>

int flowsystem_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int flowsystem_epoll_add(int epoll, int fd, bool writing, uint64_t tag) {
  struct epoll_event event = {.events = writing ? EPOLLOUT : EPOLLIN, .data = {.u64 = tag}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void flowsystem_epoll_remove(int epoll, int fd) {
  struct epoll_event unused = {0};
  epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &unused);
}

int flowsystem_epoll_take(int epoll, uint64_t *tags, int capacity) {
  enum { LIMIT = 64 };
  struct epoll_event events[LIMIT];
  int count = epoll_wait(epoll, events, capacity < LIMIT ? capacity : LIMIT, 0);
  for (int i = 0; i < count; i++) tags[i] = events[i].data.u64;
  return count < 0 ? 0 : count;
}
