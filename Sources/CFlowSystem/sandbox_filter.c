// The filter of system calls of a sandbox: what Landlock doesn't restrict.
//
// Landlock restricts which files are opened, made, renamed and removed. The filter refuses the calls that would start
// programs or make sockets, unless they are allowed, those that change files or processes without opening them, and
// those that are ways around any filter, such as io_uring. It is written here instead of with libseccomp: it is one
// list for two architectures, whose installation must neither depend on a library nor take part of a start's time.
#include "sandbox_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCHITECTURE

// Calls that are younger than the headers. Their numbers are the same for all architectures.
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#define __NR_removexattrat 466
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif

// clang-format off

/// Calls that no script and no program of it may make.
static const int REFUSED[] = {
    // Other processes, their memory and descriptors.
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_process_madvise, __NR_kcmp,
    __NR_pidfd_getfd, __NR_migrate_pages, __NR_move_pages,
    // Requests that the kernel carries out without any filter.
    __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
    // Views of the file system other than the one that the rules are about.
    __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_fsopen, __NR_fsconfig, __NR_fsmount,
    __NR_fspick, __NR_move_mount, __NR_open_tree, __NR_open_tree_attr, __NR_mount_setattr, __NR_setns,
    __NR_open_by_handle_at, __NR_name_to_handle_at, __NR_fanotify_init,
  // Attributes of files, which Landlock doesn't restrict to folders.
  #ifdef __NR_chmod
    __NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes, __NR_futimesat,
  #endif
    __NR_fchmod, __NR_fchmodat, __NR_fchmodat2, __NR_fchown, __NR_fchownat, __NR_utimensat, __NR_setxattr,
    __NR_lsetxattr, __NR_fsetxattr, __NR_removexattr, __NR_lremovexattr, __NR_fremovexattr,
    __NR_setxattrat, __NR_removexattrat, __NR_file_setattr,
    // Memory and queues that other processes of the user share.
    __NR_shmget, __NR_shmat, __NR_shmctl, __NR_semget, __NR_semop, __NR_semtimedop, __NR_semctl,
    __NR_msgget, __NR_msgsnd, __NR_msgrcv, __NR_msgctl, __NR_mq_open, __NR_mq_unlink, __NR_add_key,
    __NR_request_key, __NR_keyctl,
    // Parts of the kernel with more errors than a script needs.
    __NR_bpf, __NR_perf_event_open, __NR_userfaultfd,
    // The machine.
    __NR_init_module, __NR_finit_module, __NR_delete_module, __NR_kexec_load, __NR_kexec_file_load,
    __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct, __NR_quotactl, __NR_quotactl_fd, __NR_syslog,
    __NR_sethostname, __NR_setdomainname, __NR_settimeofday, __NR_clock_settime, __NR_clock_adjtime,
    __NR_adjtimex, __NR_vhangup,
  #ifdef __NR_iopl
    __NR_iopl, __NR_ioperm,
  #endif
};

// clang-format on

/// Calls that act on the process whose number is the first argument: 0 is the calling one.
static const int OF_PROCESS[] = {
    __NR_prlimit64,      __NR_sched_setaffinity, __NR_sched_setscheduler,
    __NR_sched_setparam, __NR_sched_setattr,
};

/// Signals to a process whose number is the first argument.
static const int SIGNALS[] = {__NR_kill, __NR_tgkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo};

/// Flags of clone for namespaces of its own, in which a process would have all capabilities.
enum { NAMESPACES = 0x7E020080 };

/// The first argument of ioprio_set for one process.
enum { IOPRIO_OF_PROCESS = 1 };

/// The part of a socket's type that isn't a flag.
enum { SOCKET_TYPE = 0xF };

/// A filter while it is made.
typedef struct filter {
  struct sock_filter code[600];
  unsigned short count;
} filter;

static void add(filter *filter, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false) {
  if (filter->count < sizeof filter->code / sizeof *filter->code)
    filter->code[filter->count] = (struct sock_filter){code, if_true, if_false, value};
  filter->count += 1;
}

static void load(filter *filter, size_t offset) {
  add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void load_number(filter *filter) { load(filter, offsetof(struct seccomp_data, nr)); }

/// Loads the lower half of an argument, which is all of one of type int: both architectures are little-endian.
static void load_argument(filter *filter, int i) {
  load(filter, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)i);
}

/// Skips so many instructions unless the loaded value is this one.
static void skip_unless(filter *filter, uint32_t value, uint8_t skipped) {
  add(filter, BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}

/// Skips so many instructions if the loaded value is this one.
static void skip_if(filter *filter, uint32_t value, uint8_t skipped) {
  add(filter, BPF_JMP | BPF_JEQ | BPF_K, value, skipped, 0);
}

/// Skips so many instructions unless the loaded value has one of these bits.
static void skip_without(filter *filter, uint32_t bits, uint8_t skipped) {
  add(filter, BPF_JMP | BPF_JSET | BPF_K, bits, 0, skipped);
}

static void mask(filter *filter, uint32_t bits) {
  add(filter, BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
}

static void fail(filter *filter, int problem) {
  add(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)problem & SECCOMP_RET_DATA), 0, 0);
}

static void allow(filter *filter) { add(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0); }

// The number of the call is loaded before and after each of the functions below.

static void refuse(filter *filter, int number, int problem) {
  skip_unless(filter, (uint32_t)number, 1);
  fail(filter, problem);
}

/// The comparisons of an argument of a call.
typedef enum comparison { IS, IS_NOT, HAS_ONE_OF } comparison;

/// Refuses a call if an argument is this value, isn't it, or has one of these bits.
static void refuse_if(
    filter *filter, int number, int argument, comparison comparison, uint32_t value, int problem) {
  skip_unless(filter, (uint32_t)number, 4);
  load_argument(filter, argument);
  switch (comparison) {
  case IS: skip_unless(filter, value, 1); break;
  case IS_NOT: skip_if(filter, value, 1); break;
  case HAS_ONE_OF: skip_without(filter, value, 1); break;
  }
  fail(filter, problem);
  load_number(filter);
}

static void check_architecture(filter *filter) {
  load(filter, offsetof(struct seccomp_data, arch));
  skip_if(filter, OWN_ARCHITECTURE, 1);
  fail(filter, ENOSYS);
  load_number(filter);
#ifdef __x86_64__
  // The numbers of another calling convention for the same kernel.
  add(filter, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
  fail(filter, ENOSYS);
#endif
}

/// Sockets of the internet protocols, without raw ones, and of the kernel's tables of addresses, which the C library
/// reads to resolve names. Those between processes of the machine reach services that can do anything for the user.
static void filter_sockets(filter *filter, bool allows_network) {
  // One of a pair that isn't connected for good can send datagrams to any other socket of the machine.
  skip_unless(filter, __NR_socketpair, 8);
  load_argument(filter, 0);
  skip_unless(filter, AF_UNIX, 4);
  load_argument(filter, 1);
  mask(filter, SOCKET_TYPE);
  skip_if(filter, SOCK_STREAM, 2);
  skip_if(filter, SOCK_SEQPACKET, 1);
  fail(filter, EACCES);
  load_number(filter);
  if (!allows_network) {
    refuse(filter, __NR_socket, EACCES);
    // One of a pair could take an abstract name, under which others expect a service. With the network a filter can't
    // tell: it sees no addresses.
    refuse(filter, __NR_bind, EACCES);
    refuse(filter, __NR_connect, EACCES);
    refuse(filter, __NR_listen, EACCES);
    return;
  }
  skip_unless(filter, __NR_socket, 13);
  load_argument(filter, 0);
  skip_if(filter, AF_INET, 5);
  skip_if(filter, AF_INET6, 4);
  skip_unless(filter, AF_NETLINK, 2);
  load_argument(filter, 2);
  skip_if(filter, NETLINK_ROUTE, 6);
  fail(filter, EACCES);
  load_argument(filter, 1);
  mask(filter, SOCKET_TYPE);
  skip_if(filter, SOCK_STREAM, 2);
  skip_if(filter, SOCK_DGRAM, 1);
  fail(filter, EACCES);
  load_number(filter);
}

/// Opening of files with flags that have some bits: all of a mask, under which they have a value.
static void refuse_opens(filter *filter, uint32_t bits, uint32_t value) {
  const struct {
    int number, flags;
  } opens[] = {
#ifdef __NR_open
      {__NR_open, 1},
#endif
      {__NR_openat, 2},
  };
  for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
    skip_unless(filter, (uint32_t)opens[i].number, 5);
    load_argument(filter, opens[i].flags);
    mask(filter, bits);
    skip_unless(filter, value, 1);
    fail(filter, EACCES);
    load_number(filter);
  }
}

/// Refuses calls that open a file without a permission of Landlock's.
static void filter_opens(filter *filter, int version) {
  // Neither to read nor to write: the descriptor reaches the attributes of any file.
  refuse_opens(filter, O_ACCMODE, O_ACCMODE);
  // Its flags are out of reach; programs fall back to openat.
  refuse(filter, __NR_openat2, ENOSYS);
  // Before Linux 6.2 Landlock doesn't know of truncation.
  if (version >= 3) return;
#ifdef __NR_truncate
  refuse(filter, __NR_truncate, EACCES);
#endif
  refuse_opens(filter, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
}

/// Before Linux 6.12 Landlock doesn't know of signals. Here those that a descriptor sends to its owner.
static void filter_owners(filter *filter) {
  const uint32_t commands[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    refuse_if(filter, __NR_fcntl, 1, IS, commands[i], EPERM);
  refuse_if(filter, __NR_ioctl, 1, IS, FIOSETOWN, EPERM);
  refuse_if(filter, __NR_ioctl, 1, IS, SIOCSPGRP, EPERM);
}

/// The others. A process that starts no programs needs none but its own.
static void filter_signals(filter *filter) {
  uint32_t own = (uint32_t)getpid();
  for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
    refuse_if(filter, SIGNALS[i], 0, IS_NOT, own, EPERM);
  refuse(filter, __NR_tkill, EPERM);
  refuse(filter, __NR_pidfd_send_signal, EPERM);
}

static void make_filter(filter *filter, bool allows_network, bool allows_programs, int version) {
  check_architecture(filter);
  for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) refuse(filter, REFUSED[i], EPERM);
  for (size_t i = 0; i < sizeof OF_PROCESS / sizeof *OF_PROCESS; i++)
    refuse_if(filter, OF_PROCESS[i], 0, IS_NOT, 0, EPERM);
  refuse_if(filter, __NR_setpriority, 0, IS_NOT, PRIO_PROCESS, EPERM);
  refuse_if(filter, __NR_setpriority, 1, IS_NOT, 0, EPERM);
  refuse_if(filter, __NR_ioprio_set, 0, IS_NOT, IOPRIO_OF_PROCESS, EPERM);
  refuse_if(filter, __NR_ioprio_set, 1, IS_NOT, 0, EPERM);
  // Attributes that are set by a descriptor, for which reading suffices.
  const uint32_t attributes[] = {
      (uint32_t)FS_IOC_SETFLAGS, (uint32_t)FS_IOC32_SETFLAGS, (uint32_t)FS_IOC_SETVERSION,
      (uint32_t)FS_IOC_FSSETXATTR, (uint32_t)FS_IOC_ENABLE_VERITY,
      (uint32_t)FS_IOC_SET_ENCRYPTION_POLICY,
      // Volumes in a folder, which btrfs makes and removes.
      (uint32_t)BTRFS_IOC_SUBVOL_CREATE, (uint32_t)BTRFS_IOC_SUBVOL_CREATE_V2,
      (uint32_t)BTRFS_IOC_SNAP_CREATE, (uint32_t)BTRFS_IOC_SNAP_CREATE_V2,
      (uint32_t)BTRFS_IOC_SNAP_DESTROY, (uint32_t)BTRFS_IOC_SNAP_DESTROY_V2};
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    refuse_if(filter, __NR_ioctl, 1, IS, attributes[i], EPERM);
  // Neither characters typed for the shell, nor the console's.
  refuse_if(filter, __NR_ioctl, 1, IS, TIOCSTI, EPERM);
  refuse_if(filter, __NR_ioctl, 1, IS, TIOCLINUX, EPERM);
  // No namespaces; what asks whether the process has one thread changes nothing. The flags of clone3 are out of reach,
  // and the C library falls back to clone.
  refuse_if(filter, __NR_unshare, 0, IS_NOT, CLONE_THREAD, EPERM);
  refuse_if(filter, __NR_clone, 0, HAS_ONE_OF, NAMESPACES, EPERM);
  refuse(filter, __NR_clone3, ENOSYS);
  filter_sockets(filter, allows_network);
  if (!allows_programs) {
    refuse(filter, __NR_execve, EACCES);
    refuse(filter, __NR_execveat, EACCES);
  }
  filter_opens(filter, version);
  if (version < 6) filter_owners(filter);
  if (version < 6 && !allows_programs) filter_signals(filter);
  allow(filter);
}

int flowsystem_filter_calls(bool allows_network, bool allows_programs, int version) {
  filter filter = {.count = 0};
  make_filter(&filter, allows_network, allows_programs, version);
  if (filter.count > sizeof filter.code / sizeof *filter.code) return E2BIG;
  struct sock_fprog program = {.len = filter.count, .filter = filter.code};
  return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

#else

int flowsystem_filter_calls(bool allows_network, bool allows_programs, int version) {
  (void)allows_network, (void)allows_programs, (void)version;
  return ENOSYS;
}

#endif
