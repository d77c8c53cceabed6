import Testing

@testable import FlowScripting

@Suite("Times of live pages")
struct LivePaceTests {
  private static let second: Int64 = 1_000_000_000

  @Test("Nothing is written before something was logged, nor again before something new was")
  func news() {
    var pace = LivePace()
    #expect(pace.interval == Self.second / 5)
    #expect(!pace.isDue(at: 0, size: 0, isRunning: true))
    #expect(pace.isDue(at: 0, size: 1, isRunning: true))
    pace.made(from: 0, to: 1_000_000, size: 1)
    #expect(!pace.isDue(at: 14 * Self.second, size: 1, isRunning: true))
    #expect(pace.isDue(at: 2 * Self.second, size: 2, isRunning: true))
    // While a run is open the page shows that the script lives.
    #expect(pace.isDue(at: 15 * Self.second, size: 1, isRunning: true))
    #expect(!pace.isDue(at: 1000 * Self.second, size: 1, isRunning: false))
  }

  @Test("A page that takes long to make is made more seldom: at most 5 % of the time")
  func share() {
    var pace = LivePace()
    pace.made(from: 0, to: 1_000_000, size: 1)
    #expect(pace.interval == 2 * Self.second)
    pace.made(from: 5, to: 5 + Self.second, size: 2)
    #expect(pace.interval == 20 * Self.second)
    pace.made(from: 5, to: 5 + Self.second / 100, size: 3)
    #expect(pace.interval == 2 * Self.second)
    pace.made(from: 0, to: .max, size: 4)
    #expect(pace.interval > 0)
  }
}
