// Runs a command on a kernel that looks older, by a filter of system calls: without Landlock or seccomp, whose calls
// fail with an error, or with an older version of Landlock.
//
//   old_kernel landlock:ENOSYS|landlock:EOPNOTSUPP|seccomp:ENOSYS|seccomp:EINVAL|version:N COMMAND...
//
// The kernel does all that a newer Landlock can, but the command asks for its version and gets it from another process
// here. So it restricts itself as it would on the older one.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANDLOCK_CREATE_RULESET = 444, VERSION_QUERY = 1 };

static void need(int done, const char *what) {
  if (done) return;
  perror(what);
  exit(99);
}

// Installs a filter: the call has this result, if its third argument is this one or `any`.
static int install(int call, int any, unsigned argument, unsigned result, unsigned flags) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 2 * 8),
      any ? (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result)
          : (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, result),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  // Only the superuser may do without.
  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  need(fd >= 0, "seccomp");
  return fd;
}

static void send_descriptor(int to, int fd) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  need(sendmsg(to, &message, 0) == 1, "sendmsg");
}

static int receive_descriptor(int from) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  need(recvmsg(from, &message, 0) == 1, "recvmsg");
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

// Gives the version until no process has the filter.
static void supervise(int from, int version) {
  int fd = receive_descriptor(from);
  for (int i = 0; i < 3; i++) close(i);
  close(from);
  for (;;) {
    struct seccomp_notif request;
    memset(&request, 0, sizeof request);
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
      if (errno == EINTR) continue;
      exit(0);
    }
    struct seccomp_notif_resp response = {.id = request.id, .val = version};
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
  }
}

static void give_version(int version) {
  int ends[2];
  need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  // A grandchild: the command waits for its own children only.
  pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    if (fork() != 0) _exit(0);
    close(ends[1]);
    supervise(ends[0], version);
  }
  waitpid(child, NULL, 0);
  close(ends[0]);
  int fd = install(
      LANDLOCK_CREATE_RULESET, 0, VERSION_QUERY, SECCOMP_RET_USER_NOTIF,
      SECCOMP_FILTER_FLAG_NEW_LISTENER);
  send_descriptor(ends[1], fd);
  close(fd);
}

int main(int count, char **words) {
  if (count < 3) return 99;
  const char *what = words[1], *error = strchr(what, ':');
  if (error == NULL) return 99;
  error += 1;
  int number = strcmp(error, "ENOSYS") == 0 ? ENOSYS
      : strcmp(error, "EINVAL") == 0        ? EINVAL
                                            : EOPNOTSUPP;
  if (strncmp(what, "version:", 8) == 0) give_version(atoi(error));
  else if (strncmp(what, "landlock:", 9) == 0)
    install(LANDLOCK_CREATE_RULESET, 1, 0, SECCOMP_RET_ERRNO | (unsigned)number, 0);
  else install(SYS_seccomp, 1, 0, SECCOMP_RET_ERRNO | (unsigned)number, 0);
  execvp(words[2], words + 2);
  perror(words[2]);
  return 99;
}
