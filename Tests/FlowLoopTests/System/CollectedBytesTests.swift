import FlowLoop
import Testing

@Suite("Bytes that helper threads collect")
struct CollectedBytesTests {
  @Test("A share that was released counts no more, even while a thread still holds it")
  func releasedShare() throws {
    let sum = CollectedSum()
    let bytes = CollectedBytes(in: sum, limit: 100)
    try bytes.add(60)
    #expect(throws: SystemError.self) { try bytes.add(60) }
    #expect(sum.bytes == 120)
    bytes.release()
    #expect(sum.bytes == 0)
    try CollectedBytes(in: sum, limit: 100).add(100)
    withExtendedLifetime(bytes) {}
  }

  @Test("The last reference to a share releases what was added after its release")
  func lateBytes() throws {
    let sum = CollectedSum()
    do {
      let bytes = CollectedBytes(in: sum, limit: 100)
      try bytes.add(10)
      bytes.release()
      try bytes.add(20)
      #expect(sum.bytes == 20)
    }
    #expect(sum.bytes == 0)
  }
}
