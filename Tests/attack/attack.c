// A C module of Lua with which a script calls the system directly: it finds out what a sandbox leaves to code that
// uses nothing of flowlua. Tests/scripts/lib/confined.lua compiles it.
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *name;
  long number;
} CALLS[] = {
#define CALL(name)                                                                                 \
  { #name, SYS_##name }
    CALL(accept),
    CALL(add_key),
    CALL(bind),
    CALL(bpf),
    CALL(chdir),
    CALL(clone),
    CALL(close),
    CALL(connect),
    CALL(dup),
    CALL(dup3),
    CALL(execve),
    CALL(execveat),
    CALL(exit_group),
    CALL(faccessat),
    CALL(fallocate),
    CALL(fchdir),
    CALL(fchmod),
    CALL(fchmodat),
    CALL(fchown),
    CALL(fchownat),
    CALL(fcntl),
    CALL(flock),
    CALL(fsetxattr),
    CALL(fsopen),
    CALL(ftruncate),
    CALL(getdents64),
    CALL(getpid),
    CALL(getppid),
    CALL(getxattr),
    CALL(inotify_add_watch),
    CALL(inotify_init1),
    CALL(io_uring_setup),
    CALL(ioctl),
    CALL(ioprio_set),
    CALL(kcmp),
    CALL(keyctl),
    CALL(kill),
    CALL(linkat),
    CALL(listen),
    CALL(lseek),
    CALL(memfd_create),
    CALL(mkdirat),
    CALL(mknodat),
    CALL(mount),
    CALL(move_mount),
    CALL(mq_open),
    CALL(mq_unlink),
    CALL(msgctl),
    CALL(msgget),
    CALL(msgrcv),
    CALL(msgsnd),
    CALL(name_to_handle_at),
    CALL(open_by_handle_at),
    CALL(open_tree),
    CALL(openat),
    CALL(openat2),
    CALL(perf_event_open),
    CALL(pidfd_getfd),
    CALL(pidfd_open),
    CALL(pidfd_send_signal),
    CALL(pipe2),
    CALL(prctl),
    CALL(prlimit64),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(ptrace),
    CALL(pwrite64),
    CALL(read),
    CALL(readlinkat),
    CALL(reboot),
    CALL(removexattr),
    CALL(renameat2),
    CALL(request_key),
    CALL(rt_sigqueueinfo),
    CALL(rt_tgsigqueueinfo),
    CALL(sched_setaffinity),
    CALL(sched_setattr),
    CALL(sched_setscheduler),
    CALL(semctl),
    CALL(semget),
    CALL(semop),
    CALL(sendmsg),
    CALL(sendto),
    CALL(setitimer),
    CALL(setns),
    CALL(setpriority),
    CALL(setsid),
    CALL(setsockopt),
    CALL(setxattr),
    CALL(shmat),
    CALL(shmctl),
    CALL(shmget),
    CALL(socket),
    CALL(socketpair),
    CALL(statx),
    CALL(symlinkat),
    CALL(tgkill),
    CALL(tkill),
    CALL(truncate),
    CALL(umount2),
    CALL(unlinkat),
    CALL(unshare),
    CALL(userfaultfd),
    CALL(utimensat),
    CALL(wait4),
    CALL(write),
#ifdef SYS_open
    CALL(chmod),
    CALL(chown),
    CALL(creat),
    CALL(link),
    CALL(open),
    CALL(rename),
    CALL(utime),
    CALL(fork),
    CALL(unlink),
#endif
#undef CALL
    // Younger than the headers of Debian 12.
    {"fchmodat2", 452},
    {"setxattrat", 463},
    {"file_setattr", 469},
};

static int failed(lua_State *L, int problem) {
  lua_pushnil(L);
  const char *name = strerrorname_np(problem);
  lua_pushstring(L, name != NULL ? name : "?");
  return 2;
}

static long word(lua_State *L, int i) {
  if (lua_isinteger(L, i)) return (long)lua_tointeger(L, i);
  if (lua_isuserdata(L, i)) return (long)lua_touserdata(L, i);
  if (lua_type(L, i) == LUA_TSTRING) return (long)lua_tostring(L, i);
  return 0;
}

static int result(lua_State *L, long value) {
  if (value == -1) return failed(L, errno);
  lua_pushinteger(L, value);
  return 1;
}

// call(NAME or NUMBER, ...): integers, strings and buffers. Returns an integer, or nil and the name of the error.
static int call(lua_State *L) {
  long number = -1, words[6];
  if (lua_isinteger(L, 1)) {
    number = (long)lua_tointeger(L, 1);
  } else {
    const char *name = luaL_checkstring(L, 1);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
      if (strcmp(CALLS[i].name, name) == 0) number = CALLS[i].number;
    // Another architecture doesn't have it.
    if (number < 0) return failed(L, ENOSYS);
  }
  for (int i = 0; i < 6; i++) words[i] = word(L, i + 2);
  errno = 0;
  return result(L, syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]));
}

// buffer(SIZE): memory that calls fill; buffer(SIZE, TEXT) begins with a text.
static int buffer(lua_State *L) {
  size_t size = (size_t)luaL_checkinteger(L, 1), length = 0;
  const char *text = luaL_optlstring(L, 2, "", &length);
  char *bytes = lua_newuserdatauv(L, size, 0);
  memset(bytes, 0, size);
  memcpy(bytes, text, length < size ? length : size);
  return 1;
}

static int bytes(lua_State *L) {
  void *start = lua_isinteger(L, 1) ? (void *)lua_tointeger(L, 1) : lua_touserdata(L, 1);
  lua_pushlstring(L, start, (size_t)luaL_checkinteger(L, 2));
  return 1;
}

// poke(ADDRESS, TEXT)
static int poke(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  memcpy((void *)luaL_checkinteger(L, 1), text, length);
  return 0;
}

static int address(lua_State *L) {
  lua_pushinteger(L, word(L, 1));
  return 1;
}

// An entry of what the system has told the process at its start, such as where its name is: AT_EXECFN.
static int auxiliary(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)getauxval((unsigned long)luaL_checkinteger(L, 1)));
  return 1;
}

// The number of a call of 32-bit programs, which a 64-bit one can use, too.
static int call32(lua_State *L) {
#ifdef __x86_64__
  long value;
  __asm__ volatile("int $0x80"
                   : "=a"(value)
                   : "a"(luaL_checkinteger(L, 1)), "b"(word(L, 2)), "c"(word(L, 3)), "d"(word(L, 4))
                   : "memory", "r8", "r9", "r10", "r11");
  if (value < 0 && value > -4096) return failed(L, (int)-value);
  lua_pushinteger(L, value);
  return 1;
#else
  return failed(L, ENOSYS);
#endif
}

int luaopen_attack(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"call", call},     {"buffer", buffer}, {"bytes", bytes},         {"address", address},
      {"call32", call32}, {"poke", poke},     {"auxiliary", auxiliary}, {NULL, NULL}};
  luaL_newlib(L, functions);
  return 1;
}
