// Programs that ask on the terminal, as ssh, sudo and gpg do.
//
// Each program has a process group of its own, so that the system stops it as soon as it reads the terminal or changes
// its modes. It gets the terminal then, until it ends, as a shell gives it to a job.
#include "internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/// The terminal that controls this process; -1 until it is needed.
static int terminal = -1;
/// The group of the program that has it; 0 for none.
static _Atomic(pid_t) guest;
static struct termios modes;
/// How many parts of this process wait for keys.
static atomic_int readers;

void flowsystem_read_terminal(bool begins) { atomic_fetch_add(&readers, begins ? 1 : -1); }

int flowsystem_stopped_by(int pid) {
  siginfo_t information = {0};
  if (waitid(P_PID, (id_t)pid, &information, WSTOPPED | WNOHANG) != 0) return 0;
  return information.si_pid == 0 ? 0 : information.si_status;
}

/// Makes a group the foreground one. The caller may be in the background, where that would stop it.
static bool give(pid_t group) {
  sigset_t stop, before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &stop, &before);
  bool is_given = tcsetpgrp(terminal, group) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_given;
}

flowsystem_terminal flowsystem_seek_terminal(void) {
  if (terminal < 0) terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return FLOWSYSTEM_NO_TERMINAL;
  if (tcgetpgrp(terminal) != getpgrp()) return FLOWSYSTEM_IN_BACKGROUND;
  return flowsystem_has_terminal() || atomic_load(&readers) > 0 ? FLOWSYSTEM_READS_TERMINAL
                                                                : FLOWSYSTEM_HAS_TERMINAL;
}

bool flowsystem_give_terminal(int group) {
  tcgetattr(terminal, &modes);
  flowsystem_lend_terminal(true);
  atomic_store(&guest, group);
  if (!give(group)) {
    atomic_store(&guest, 0);
    flowsystem_lend_terminal(false);
    return false;
  }
  kill(-group, SIGCONT);
  return true;
}

void flowsystem_take_terminal_back(void) {
  pid_t group = atomic_exchange(&guest, 0);
  if (group == 0) return;
  // A shell may have given it to somebody else.
  if (tcgetpgrp(terminal) == group && give(getpgrp())) tcsetattr(terminal, TCSADRAIN, &modes);
  flowsystem_lend_terminal(false);
}
