@testable import FlowEngine
import Testing

@Suite("Texts that a log moves")
struct MovedTextsTests {
  /// Offsets of which some come again, and some only after larger ones.
  @Test("Each text is moved once, whatever order its records have", arguments: 0..<20)
  func eachIsMovedOnce(seed: Int) {
    var state = UInt64(seed) &* 2_654_435_761 &+ 1
    func random(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
    var texts = MovedTexts()
    var model: [UInt64: UInt64] = [:]
    var end = 0
    for step in 0..<2000 {
      let offset = random(3) == 0 ? random(step + 1) * 10 : step * 10
      let payload = Payload.text(at: offset, count: 8 + offset % 3)
      var isMoved = false
      let moved = texts.moved(payload) {
        isMoved = true
        defer { end += payload.range.count }
        return .text(at: end, count: payload.range.count)
      }
      #expect(isMoved == (model[payload.bits] == nil))
      if let known = model[payload.bits] { #expect(moved.bits == known) }
      #expect(moved.tag == .text && moved.range.count == payload.range.count)
      model[payload.bits] = moved.bits
    }
  }
}
