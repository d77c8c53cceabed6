import FlowEngine
import Testing

@testable import FlowNodes
@testable import FlowScripting

@Suite("Jobs that share a message")
struct RemotePackingTests {
  private static func jobs(_ count: Int, size: Int = 100, isSmall: Bool = true) -> [RemotePacking
    .Job]
  {
    Array(repeating: RemotePacking.Job(code: "code", size: size, isSmall: isSmall), count: count)
  }

  private static func packing(_ time: Int64) -> RemotePacking {
    var packing = RemotePacking()
    packing.note(time, of: "code")
    return packing
  }

  private static func sizes(_ ranges: [Range<Int>]) -> [Int] { ranges.map(\.count) }

  @Test("A job whose time isn't known has a message of its own")
  func unknown() {
    let messages = RemotePacking().messages(Self.jobs(3), count: 3, workers: 1, underway: 0)
    #expect(Self.sizes(messages) == [1, 1, 1])
    #expect(messages.map(\.lowerBound) == [0, 1, 2])
  }

  @Test("A message has jobs for 10 ms")
  func time() {
    let messages = Self.packing(1_000_000).messages(
      Self.jobs(22), count: 22, workers: 1, underway: 0)
    #expect(Self.sizes(messages) == [10, 10, 2])
  }

  @Test("Free workers get equal shares")
  func shares() {
    let messages = Self.packing(1000).messages(Self.jobs(40), count: 40, workers: 2, underway: 0)
    #expect(Self.sizes(messages) == [10, 10, 10, 10])
    let some = Self.packing(1000).messages(
      Self.jobs(40), count: 40, workers: 2, underway: 0, room: 3)
    #expect(Self.sizes(some) == [10, 10, 10])
    #expect(
      Self.sizes(Self.packing(1000).messages(Self.jobs(40), count: 40, workers: 2, underway: 2))
        == [20, 20])
  }

  @Test("While all workers have work, short jobs wait until they fill a message")
  func waiting() {
    let packing = Self.packing(1000)
    #expect(packing.messages(Self.jobs(127), count: 127, workers: 2, underway: 4).isEmpty)
    #expect(
      Self.sizes(packing.messages(Self.jobs(130), count: 130, workers: 2, underway: 4)) == [128])
    #expect(Self.sizes(packing.messages(Self.jobs(1), count: 1, workers: 2, underway: 3)) == [1])
    // They wait for a while only, and travel together then.
    #expect(
      Self.sizes(packing.messages(Self.jobs(20), count: 20, workers: 2, underway: 4, isDue: true))
        == [20])
    // Long ones may wait on a node without a worker.
    #expect(
      Self.sizes(Self.packing(10_000_000).messages(Self.jobs(2), count: 2, workers: 1, underway: 9))
        == [
          1, 1,
        ])
    #expect(
      Self.sizes(packing.messages(Self.jobs(2, isSmall: false), count: 2, workers: 1, underway: 9))
        == [1, 1])
  }

  @Test("Large jobs fill a message")
  func size() {
    let messages = Self.packing(1000).messages(
      Self.jobs(4, size: 30_000), count: 4, workers: 1, underway: 1)
    #expect(Self.sizes(messages) == [2, 2])
    #expect(
      Self.sizes(
        Self.packing(1000).messages(
          Self.jobs(2, size: 1_000_000), count: 2, workers: 1, underway: 9)) == [
          1, 1,
        ])
  }

  @Test("Times that can't be count for nothing")
  func badTimes() {
    var packing = RemotePacking()
    packing.note(0, of: "code")
    packing.note(-1, of: "code")
    #expect(
      Self.sizes(packing.messages(Self.jobs(2), count: 2, workers: 0, underway: 0)) == [1, 1])
    packing.note(.max, of: "code")
    packing.note(.max, of: "code")
    #expect(
      Self.sizes(packing.messages(Self.jobs(2), count: 2, workers: .max / 4, underway: -1)) == [
        1, 1,
      ])
  }
}
