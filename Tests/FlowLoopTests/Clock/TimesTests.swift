import FlowLoop
import Testing

@Suite("Durations as scripts give them")
struct TimesTests {
  @Test(
    "Seconds become a duration and the same seconds again",
    arguments: [0.0, 0.1, 0.25, 0.3, 1.1, 2.3, 1e-9, 60, 3600.5, 123_456.789, 8e9])
  func seconds(_ seconds: Double) {
    #expect(Duration(clampingSeconds: seconds).inSeconds == seconds)
  }

  @Test("Every number of nanoseconds is the number that seconds have as text")
  func nanoseconds() {
    for nanoseconds in [1, 999, 1_000_000_001, 2_300_000_000, 86_400_123_456_789] as [Int64] {
      #expect(Duration.nanoseconds(nanoseconds).inSeconds == Double(nanoseconds) / 1e9)
      #expect(Duration.nanoseconds(nanoseconds).wholeNanoseconds == nanoseconds)
      #expect(Duration.nanoseconds(-nanoseconds).wholeNanoseconds == -nanoseconds)
    }
    // A float of seconds may be some attoseconds too short.
    #expect(Duration.seconds(2.3).wholeNanoseconds == 2_300_000_000)
    #expect((Duration.zero - .seconds(2.3)).wholeNanoseconds == -2_300_000_000)
  }

  @Test("No number is out of range, and a time that isn't 0 stays one")
  func limits() {
    for number in [Double.infinity, 1e300, 9.3e18] {
      #expect(Duration(clampingSeconds: number) == .longest)
    }
    for number in [-Double.infinity, -1, .nan, -0.0] {
      #expect(Duration(clampingSeconds: number) == .zero)
    }
    #expect(Duration(clampingSeconds: .leastNonzeroMagnitude) > .zero)
    #expect(Duration.longest.inSeconds == .infinity)
    #expect(Duration.seconds(Int64.max).wholeNanoseconds == .max)
    #expect(Duration.seconds(Int64.min).wholeNanoseconds == .min)
    #expect(Duration.seconds(Int64.min).clampedNanoseconds == 0)
  }
}
