import Glibc
import LuaVM
import Synchronization
import Testing

/// Functions that are called at a time.
@Suite("Alarms")
struct AlarmTests {
  static let millisecond: Int64 = 1_000_000

  /// The alarms of a test that have run, with their times.
  final class Record: Sendable {
    private let state = Locked<[(name: String, time: Int64)]>([])

    func add(_ name: String) {
      state.withLock { $0.append((name, LuaVM.monotonicTime)) }
    }

    var names: [String] { state.withLock { $0.map(\.name) } }
    var times: [Int64] { state.withLock { $0.map(\.time) } }

    /// Waits until there are so many entries; false after 20 seconds.
    func waits(for count: Int) async throws -> Bool {
      for _ in 0..<20_000 {
        if names.count >= count { return true }
        try await Task.sleep(for: .milliseconds(1))
      }
      return false
    }
  }

  final class Counter: Sendable {
    let number = Atomic(0)
  }

  /// An alarm that several closures know.
  final class Slot: Sendable {
    let alarm = Locked<LuaAlarm?>(nil)
  }

  @Test("An alarm calls its function once, not before its time")
  func anAlarmCallsItsFunction() async throws {
    let record = Record()
    let time = LuaVM.monotonicTime + 5 * Self.millisecond
    let alarm = try #require(LuaAlarm(at: time) { record.add("a") })
    try #require(try await record.waits(for: 1))
    #expect(try #require(record.times.first) >= time)
    try await Task.sleep(for: .milliseconds(5))
    #expect(record.names == ["a"])
    withExtendedLifetime(alarm) {}
  }

  @Test("An alarm whose time has passed is called at once")
  func aTimeThatHasPassed() async throws {
    let record = Record()
    let alarm = try #require(LuaAlarm(at: 0) { record.add("a") })
    #expect(try await record.waits(for: 1))
    withExtendedLifetime(alarm) {}
  }

  @Test("Alarms are called in the order of their times, whenever they were set")
  func order() async throws {
    let record = Record()
    let begin = LuaVM.monotonicTime
    let alarms = try [3, 1, 2, 4].map { (number: Int64) in
      try #require(
        LuaAlarm(at: begin + (10 + number * 2) * Self.millisecond) { record.add("\(number)") })
    }
    try #require(try await record.waits(for: 4))
    #expect(record.names == ["1", "2", "3", "4"])
    withExtendedLifetime(alarms) {}
  }

  @Test("A cancelled alarm isn't called, nor is one that was released")
  func cancellation() async throws {
    let record = Record()
    let time = LuaVM.monotonicTime + 20 * Self.millisecond
    let cancelled = try #require(LuaAlarm(at: time) { record.add("cancelled") })
    cancelled.cancel()
    cancelled.cancel()
    var released = LuaAlarm(at: time) { record.add("released") }
    #expect(released != nil)
    released = nil
    let last = try #require(LuaAlarm(at: time + 5 * Self.millisecond) { record.add("last") })
    try #require(try await record.waits(for: 1))
    #expect(record.names == ["last"])
    withExtendedLifetime((cancelled, last)) {}
  }

  @Test("A cancellation waits for the function that runs")
  func aCancellationWaits() async throws {
    let record = Record()
    let begun = Counter()
    let alarm = try #require(
      LuaAlarm(at: 0) {
        begun.number.store(1, ordering: .sequentiallyConsistent)
        usleep(20_000)
        record.add("end")
      })
    while begun.number.load(ordering: .sequentiallyConsistent) == 0 { await Task.yield() }
    alarm.cancel()
    #expect(record.names == ["end"])
  }

  @Test("The function of an alarm can cancel and release it, and set others")
  func fromWithin() async throws {
    let record = Record()
    let slot = Slot()
    let next = Slot()
    // Until the alarm is known.
    slot.alarm.withLock { alarm in
      alarm = LuaAlarm(at: 0) {
        let own = slot.alarm.withLock { $0.take() }
        own?.cancel()
        record.add("own")
        next.alarm.withLock { $0 = LuaAlarm(at: 0) { record.add("next") } }
      }
    }
    try #require(try await record.waits(for: 2))
    #expect(record.names == ["own", "next"])
    #expect(slot.alarm.withLock { $0 == nil })
    next.alarm.withLock { $0 = nil }
  }

  @Test("Many alarms that several threads set and cancel leave nothing")
  func many() async throws {
    let calls = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for number in 0..<500 {
            let time = LuaVM.monotonicTime + Int64(number % 3) * 10_000
            let alarm = LuaAlarm(at: time) { calls.number.add(1, ordering: .relaxed) }
            if number % 2 == 0 { alarm?.cancel() }
          }
        }
      }
    }
    let count = calls.number.load(ordering: .relaxed)
    try await Task.sleep(for: .milliseconds(2))
    #expect(calls.number.load(ordering: .relaxed) == count)
    #expect(count <= 2000)
  }
}
