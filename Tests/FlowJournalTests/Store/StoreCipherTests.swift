import FlowEngine
import Testing

@testable import FlowJournal

@Suite("The encryption of secrets")
struct StoreCipherTests {
  @Test("What is encrypted is read with the same text, at the same place, and unchanged only")
  func roundTrip() throws {
    let test = try TestStore()
    let cipher = try StoreCipher(text: "a long text", of: test.open())
    let place = makeRecord("op").binding(of: "token", in: "r2k")
    for size in [0, 1, 100_000] {
      let text = [UInt8](repeating: 7, count: size)
      let sealed = try cipher.encrypt(text, for: place)
      #expect(try cipher.encrypt(text, for: place) != sealed)
      #expect(
        try StoreCipher(text: "a long text", of: test.open()).decrypt(sealed, for: place) == text)
      #expect(try StoreCipher(text: "another", of: test.open()).decrypt(sealed, for: place) == nil)
      let other = makeRecord("op").binding(of: "token", in: "r2m")
      #expect(cipher.decrypt(sealed, for: other) == nil)
      for index in [0, 12, sealed.count - 1] {
        var changed = sealed
        changed[index] ^= 1
        #expect(cipher.decrypt(changed, for: place) == nil)
      }
      #expect(cipher.decrypt(Array(sealed.dropLast()), for: place) == nil)
    }
    #expect(cipher.decrypt([], for: place) == nil)
  }

  @Test("The same text is another key for another store")
  func salt() throws {
    let (first, second) = (try TestStore(), try TestStore())
    let sealed = try StoreCipher(text: "text", of: first.open()).encrypt([1, 2], for: [])
    #expect(try StoreCipher(text: "text", of: second.open()).decrypt(sealed, for: []) == nil)
    #expect(try StoreCipher(text: "text", of: first.open()).decrypt(sealed, for: []) == [1, 2])
  }

  @Test("A value is bound to its run, its op, the execution and the key")
  func bindings() {
    let record = makeRecord("op")
    var (op, key) = (record, record)
    op.op = "DownloadOp"
    key.key = "l"
    let all = [
      record.binding(of: "a", in: "r2"), record.binding(of: "a", in: "r3"),
      record.binding(of: "b", in: "r2"), op.binding(of: "a", in: "r2"),
      key.binding(of: "a", in: "r2"),
    ]
    #expect(Set(all).count == all.count)
  }

  @Test("The code of a message is that of RFC 4231")
  func code() throws {
    let maker = try KeyedHash(key: [UInt8](repeating: 0x0B, count: 20))
    let code = try maker.code(of: Array("Hi There".utf8))
    #expect(maker.isCode(code, of: Array("Hi There".utf8)))
    #expect(!maker.isCode(Array(code.dropLast()), of: Array("Hi There".utf8)))
    #expect(!maker.isCode(code, of: Array("Hi there".utf8)))
    let digits = code.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }
    #expect(digits.joined() == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
  }
}
