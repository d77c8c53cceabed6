import FlowEngine
import Testing

@testable import FlowRemote

@Suite("The seal of messages")
struct RemoteSealTests {
  private static let text: ByteString = "a key of enough bytes"

  @Test("A message is read with the same key, with its subject, for its script, and unchanged only")
  func messages() throws {
    let seal = try RemoteSeal(text: Self.text)
    for size in [0, 1, 100_000] {
      let bytes = [UInt8](repeating: 7, count: size)
      let sealed = try seal.seal(bytes, for: "flowlua.news.s1", of: "s1")
      #expect(try seal.seal(bytes, for: "flowlua.news.s1", of: "s1") != sealed)
      let same = try RemoteSeal(text: Self.text)
      #expect(same.open(sealed, for: "flowlua.news.s1", of: "s1") == bytes)
      #expect(seal.open(sealed, for: "flowlua.begun.s1", of: "s1") == nil)
      #expect(seal.open(sealed, for: "flowlua.news.s1", of: "s2") == nil)
      let other = try RemoteSeal(text: "another key of enough bytes")
      #expect(other.open(sealed, for: "flowlua.news.s1", of: "s1") == nil)
      for index in [0, 12, sealed.count - 1] {
        var changed = sealed
        changed[index] ^= 1
        #expect(seal.open(changed, for: "flowlua.news.s1", of: "s1") == nil)
      }
    }
    #expect(seal.open([], for: "flowlua.news.s1", of: "s1") == nil)
  }

  @Test("Code is sealed the same each time, and other code differently")
  func code() throws {
    let seal = try RemoteSeal(text: Self.text)
    let sealed = try seal.seal(code: [1, 2, 3])
    #expect(try seal.seal(code: [1, 2, 3]) == sealed)
    #expect(try seal.seal(code: [1, 2, 4]).prefix(12) != sealed.prefix(12))
    #expect(seal.open(code: sealed) == [1, 2, 3])
    #expect(try RemoteSeal(text: "another key of enough bytes").open(code: sealed) == nil)
    // It is no message, and a message is no code.
    #expect(seal.open(sealed, for: "", of: "") == nil)
    #expect(seal.open(code: try seal.seal([1], for: "", of: "")) == nil)
  }

  @Test("A node proves that it has the key")
  func proofs() throws {
    let seal = try RemoteSeal(text: Self.text)
    let proven = try seal.proven([1, 2])
    #expect(proven.starts(with: [1, 2]) && seal.isProven(proven))
    for index in proven.indices {
      var changed = proven
      changed[index] ^= 0x80
      #expect(!seal.isProven(changed))
    }
    #expect(!seal.isProven([]) && !seal.isProven(Array(proven.dropLast())))
    let other = try RemoteSeal(text: "another key of enough bytes")
    #expect(!other.isProven(proven) && other.name != seal.name && other.name.count == 16)
  }

  @Test("A short key is refused")
  func shortKey() {
    #expect(throws: FlowError.self) { try RemoteSeal.check("15 bytes long.") }
    #expect(throws: Never.self) { try RemoteSeal.check("sixteen bytes ok") }
  }
}
