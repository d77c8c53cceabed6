internal import Glibc

extension LuaVM {
  /// The monotonic clock, in nanoseconds, on which the deadlines of `watch` are given.
  package static var monotonicTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
