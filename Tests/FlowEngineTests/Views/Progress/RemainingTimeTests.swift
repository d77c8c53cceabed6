import Testing

@testable import FlowEngine

@Suite("Remaining time")
struct RemainingTimeTests {
  /// The estimates of something whose share at a time is given, ten in a second.
  private func estimates(_ seconds: Double, _ share: (Double) -> Double) -> [(Double, Double)] {
    var remaining = RemainingTime()
    var result: [(Double, Double)] = []
    for step in 0...Int(seconds * 10) {
      let time = Double(step) / 10
      if let left = remaining.update(share(time), at: time) { result.append((time, left)) }
    }
    return result
  }

  @Test("Of something steady it is right from the first second on")
  func steady() {
    let found = estimates(99) { $0 / 100 }
    #expect(found.first?.0 == 1)
    for (time, left) in found { #expect(abs(time + left - 100) < 5, "\(time) \(left)") }
  }

  @Test("It counts down between the ends of long items")
  func longItems() {
    // Five items of 10 s each.
    let found = estimates(49) { ($0 / 10).rounded(.down) / 5 }
    #expect(found.first?.0 == 10)
    for (time, left) in found { #expect(abs(time + left - 50) < 6, "\(time) \(left)") }
  }

  @Test("It never increases by less than a factor of two")
  func monotone() {
    var random = SeededGenerator(state: 7)
    var share = 0.0
    let found = estimates(60) { _ in
      share += random.next() % 3 == 0 ? Double(random.next() % 100) / 20_000 : 0
      return min(share, 0.99)
    }
    #expect(!found.isEmpty)
    for (one, next) in zip(found, found.dropFirst()) {
      #expect(next.1 <= one.1 || next.1 > 2 * (one.1 - 0.2), "\(one) \(next)")
    }
  }

  @Test("What becomes ten times slower is noticed")
  func slowdown() {
    let found = estimates(100) { $0 < 10 ? $0 / 20 : 0.5 + ($0 - 10) / 200 }
    // 50 s are left; without the change it would be 0 at 20 s.
    let late = found.last { $0.0 <= 60 }
    #expect(abs((late?.1 ?? 0) - 50) < 25, "\(late ?? (0, 0))")
  }

  @Test("There is none at the start, at the end, and without an amount")
  func none() {
    var remaining = RemainingTime()
    #expect(remaining.update(0, at: 0) == nil)
    #expect(remaining.update(0, at: 5) == nil)
    #expect(remaining.update(0.5, at: 6) != nil)
    #expect(remaining.update(1, at: 7) == nil)
    // An op that reports less than before starts again.
    #expect(remaining.update(0.1, at: 8) != nil)
  }
}
