@_spi(Scripting) import FlowEngine
import Glibc
import Testing

@Suite("Values confined to a loop")
struct ConfinedValueTests {
  @Test("A confined value released on another thread is destroyed on its own")
  func aConfinedValueReleasedElsewhereComesHome() {
    let loop = makeLoop()
    weak var opaque: TestOpaque?
    func makeHolder() -> Holder {
      let made = TestOpaque(type: "table", base: "table")
      opaque = made
      return Holder(FlowError(.error, "x", payload: ConfinedValue(.opaque(made), on: loop)))
    }
    var thread = pthread_t()
    let holder = Unmanaged.passRetained(makeHolder())
    pthread_create(&thread, nil, { releaseElsewhere($0) }, holder.toOpaque())
    pthread_join(thread, nil)
    // It is on its way home, not released over there.
    #expect(opaque != nil)
    loop.runUntilIdle()
    #expect(opaque == nil)
  }
}

private func releaseElsewhere(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<Holder>.fromOpaque(argument).release() }
  return nil
}

private final class Holder: Sendable {
  let error: FlowError

  init(_ error: FlowError) {
    self.error = error
  }
}
