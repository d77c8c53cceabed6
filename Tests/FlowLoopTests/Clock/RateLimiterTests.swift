import FlowLoop
import Testing

@Suite("The rate limiter")
struct RateLimiterTests {
  private let second: Int64 = 1_000_000_000

  @Test("The limit's starts may come together; the next one waits until the first is a period old")
  func startsTogetherThenWaits() {
    var limiter = RateLimiter(RateLimit(3, per: .seconds(2)))
    #expect(limiter.available(at: 5) == 3)
    for _ in 0..<3 {
      #expect(limiter.nextStart(at: 5) == 5)
      let isAllowed = limiter.startIfAllowed(at: 5)
      #expect(isAllowed)
    }
    #expect(limiter.available(at: 5) == 0)
    let isAllowed = limiter.startIfAllowed(at: 5)
    #expect(!isAllowed)
    #expect(limiter.nextStart(at: 5) == 5 + 2 * second)
    #expect(limiter.available(at: 4 + 2 * second) == 0)
    #expect(limiter.available(at: 5 + 2 * second) == 3)
  }

  @Test("Starts at different times become free one after another")
  func becomesFreeOneByOne() {
    var limiter = RateLimiter(RateLimit(3))
    limiter.start(at: 0)
    limiter.start(2, at: second / 2)
    #expect(limiter.nextStart(at: second / 2) == second)
    #expect(limiter.available(at: second) == 1)
    limiter.start(at: second)
    #expect(limiter.nextStart(at: second) == second * 3 / 2)
    #expect(limiter.available(at: second * 3 / 2) == 2)
  }

  @Test("Starts beyond the limit count")
  func startsBeyondTheLimitCount() {
    var limiter = RateLimiter(RateLimit(2))
    limiter.start(2, at: 0)
    limiter.start(1, at: 10)
    limiter.start(0, at: 15)
    #expect(limiter.available(at: 20) == 0)
    #expect(limiter.nextStart(at: 20) == second)
    limiter.start(5, at: 30)
    #expect(limiter.nextStart(at: 40) == second + 30)
  }

  @Test("A start that is taken back doesn't count, and the limit holds for the others")
  func takenBack() {
    var limiter = RateLimiter(RateLimit(2))
    limiter.cancelStart()
    #expect(limiter.available(at: 0) == 2)
    limiter.start(at: 0)
    limiter.start(at: second / 2)
    limiter.cancelStart()
    #expect(limiter.available(at: second / 2) == 1)
    #expect(limiter.available(at: second) == 1)
    limiter.cancelStart()
    #expect(limiter.available(at: second) == 2)
  }

  @Test("No period has more starts than the limit, and no start waits without need")
  func noPeriodHasMore() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      let limit = Int.random(in: 1...6, using: &generator)
      let period = Int64.random(in: 1...40, using: &generator)
      var limiter = RateLimiter(RateLimit(limit, per: .nanoseconds(period)))
      var starts: [Int64] = []
      var now: Int64 = 0
      while starts.count < 300 {
        now += Int64.random(in: 0...3, using: &generator)
        // The last ones are enough: they are sorted.
        func count(after time: Int64) -> Int { starts.suffix(limit + 1).filter { $0 > time }.count }
        let recent = count(after: now - period)
        let next = limiter.nextStart(at: now)
        let isAllowed = limiter.startIfAllowed(at: now)
        let isRight =
          isAllowed == (recent < limit) && (next == now) == isAllowed
          && (isAllowed || next > now && count(after: next - 1 - period) >= limit)
        if !isRight { Issue.record("limit \(limit) per \(period) at \(now)") }
        if isAllowed { starts.append(now) }
      }
      #expect(zip(starts, starts.dropFirst(limit)).allSatisfy { $1 - $0 >= period })
    }
  }

  @Test("A time that goes back counts as the latest one, and the end of time is bearable")
  func strangeTimes() {
    var limiter = RateLimiter(RateLimit(1, per: .longest))
    limiter.start(at: 100)
    #expect(limiter.nextStart(at: 50) == .max)
    #expect(limiter.available(at: .min) == 0)
    var short = RateLimiter(RateLimit(1, per: .seconds(1e-12)))
    short.start(at: 100)
    #expect(short.nextStart(at: 0) == 101)
  }
}
