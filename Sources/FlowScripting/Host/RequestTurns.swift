internal import FlowEngine
@_spi(Scripting) internal import LuaVM
internal import Synchronization

/// Lets code of requests that is busy wait now and then, so that other code of the loop has its turn.
///
/// A thread that runs no script looks every few milliseconds while code of requests executes, and asks it then.
final class RequestTurns: Sendable {
  /// How long such code runs alone, in nanoseconds.
  private static let slice: Int64 = 10_000_000

  private let attention: LuaAttention
  /// Whether code of a request is executing.
  private let isBusy = Atomic<Bool>(false)
  private let isTicking = Atomic<Bool>(false)
  private let isDue = Atomic<Bool>(false)
  private let alarm = Locked(Alarm())

  private struct Alarm: Sendable {
    var alarm: LuaAlarm?
    var isClosed = false
  }

  init(_ attention: LuaAttention) { self.attention = attention }

  /// Code of a request runs from now on.
  func begin() {
    isBusy.store(true, ordering: .sequentiallyConsistent)
    if !isTicking.exchange(true, ordering: .sequentiallyConsistent) { repeatTick() }
  }

  /// None does.
  func end() { isBusy.store(false, ordering: .sequentiallyConsistent) }

  /// Whether the running code has to let others run.
  func take() -> Bool { isDue.exchange(false, ordering: .acquiringAndReleasing) }

  /// Called before the state of the host is closed.
  func close() {
    let last = alarm.withLock { alarm in
      alarm.isClosed = true
      return alarm.alarm.take()
    }
    last?.cancel()
  }

  private func repeatTick() {
    let time = LuaVM.monotonicTime.later(by: Self.slice)
    // Without a thread for it, no code is asked. The alarm before this one is released after the lock.
    let next = LuaAlarm(at: time) { [weak self] in self?.tick() }
    let before = alarm.withLock { alarm in
      if alarm.isClosed { return next }
      defer { alarm.alarm = next }
      return alarm.alarm
    }
    _ = before
  }

  private func tick() {
    if !isBusy.load(ordering: .sequentiallyConsistent) {
      isTicking.store(false, ordering: .sequentiallyConsistent)
      // Code that has begun meanwhile has seen a clock that ticks.
      guard isBusy.load(ordering: .sequentiallyConsistent),
        !isTicking.exchange(true, ordering: .sequentiallyConsistent)
      else { return }
    }
    isDue.store(true, ordering: .releasing)
    attention.call()
    repeatTick()
  }
}
