import FlowEngine
import Testing

@testable import FlowHTTP

@Suite("Dates and waits in headers")
struct RetryAfterTests {
  @Test("A number, each form of a date and nonsense are told apart")
  func forms() {
    #expect(RetryAfter.seconds("120", now: 0) == 120)
    #expect(RetryAfter.seconds(" 0 ", now: 0) == 0)
    let now: Int64 = 784_111_777
    #expect(RetryAfter.seconds("Sun, 06 Nov 1994 08:49:47 GMT", now: now) == 10)
    #expect(RetryAfter.seconds("Sunday, 06-Nov-94 08:49:47 GMT", now: now) == 10)
    #expect(RetryAfter.seconds("Sun Nov  6 08:49:47 1994", now: now) == 10)
    for nonsense in ["", "soon", "-1", "1e3", "12 Nov", "Sun, 99 Nov 1994 08:49:47 GMT"] {
      #expect(RetryAfter.seconds(ByteString(nonsense), now: 0) == nil)
    }
  }

  @Test("A wait is at most a day, and never negative")
  func limits() {
    #expect(RetryAfter.seconds("99999999999", now: 0) == 86_400)
    #expect(RetryAfter.seconds("99999999999999999999999999", now: 0) == 86_400)
    #expect(RetryAfter.seconds("Sun, 06 Nov 1994 08:49:37 GMT", now: 2_000_000_000) == 0)
  }
}
