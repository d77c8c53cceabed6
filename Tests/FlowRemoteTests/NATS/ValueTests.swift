import FlowEngine
@testable import FlowRemote
import Testing

@Suite("JSON of JetStream")
struct NATSJSONTests {
  @Test("is read and written")
  func roundTrip() throws {
    let text: ByteString =
      #"{"a":[1,-2,3.5,1e2,true,false,null,{}],"b":"x\"\\\n\u0001é😀","c":9223372036854775807}"#
    let json = try NATSJSON(reading: text)
    let items: [NATSJSON] = [
      .integer(1), .integer(-2), .number(3.5), .number(100), .bool(true), .bool(false), .null,
      .object([]),
    ]
    #expect(json["a"] == .list(items))
    #expect(items[3].asInteger == 100)
    #expect(json["c"]?.asUnsigned == UInt64(Int64.max))
    #expect(try NATSJSON(reading: json.text) == json)
    #expect(try NATSJSON(reading: #" "\ud83d\ude00\/\b" "#) == .string("😀/\u{8}"))
  }

  @Test(
    "of another form is an error",
    arguments: [
      "", " ", "{", "[", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "01", "1.", "-", "+1", "1e", ".5",
      "nul", "truex", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00x\"",
      "\"\\ud800\\u0041\"", "\"\n\"", "1 2", "[1}", "1e999", "NaN", "{\"a\":1,}", "]",
    ])
  func garbage(text: String) {
    #expect(throws: FlowError.self) { try NATSJSON(reading: ByteString(text)) }
  }

  @Test("with bytes that aren't UTF-8, or nested too deeply, is an error")
  func attacks() {
    #expect(throws: FlowError.self) { try NATSJSON(reading: ByteString([0x22, 0xFF, 0x22])) }
    let deep = ByteString(String(repeating: "[", count: 100_000))
    #expect(throws: FlowError.self) { try NATSJSON(reading: deep) }
    let nested = String(repeating: "{\"a\":", count: 50) + "1" + String(repeating: "}", count: 50)
    #expect(throws: Never.self) { try NATSJSON(reading: ByteString(nested)) }
  }

  @Test("never ends the program, whatever bytes it has")
  func randomBytes() throws {
    var generator = SystemRandomNumberGenerator()
    let alphabet = Array("{}[]\",:\\u0129.eE+-truefalsn \u{7F}".utf8) + [0, 0xC3, 0xFF]
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0..<24, using: &generator)).map { _ in
        alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
      }
      // Bytes that are read are written in a form that gives the same value.
      guard let json = try? NATSJSON(reading: ByteString(bytes)) else { continue }
      #expect(try NATSJSON(reading: json.text) == json, "\(bytes)")
    }
  }
}

@Suite("The URL of a NATS server")
struct NATSSettingsTests {
  @Test("has a host, a port, and a user or token")
  func forms() throws {
    let plain = try NATSSettings("nats://host")
    #expect(plain.servers.map(\.url) == ["nats://host:4222"])
    #expect(plain.token == nil && plain.user == nil && !plain.isEncrypted)
    let token = try NATSSettings("nats://s%40cret@host:1/")
    #expect(token.servers.map(\.url) == ["nats://host:1"])
    #expect(token.token == "s@cret")
    let user = try NATSSettings("tls://a:b%3Ac@[::1]:65535")
    #expect(user.servers.map(\.url) == ["tls://[::1]:65535"])
    #expect(user.user == "a" && user.password == "b:c" && user.isEncrypted)
    let many = try NATSSettings("nats://t@a,nats://b:1,nats://t@c")
    #expect(many.servers.map(\.url) == ["nats://a:4222", "nats://b:1", "nats://c:4222"])
    #expect(many.token == "t")
  }

  @Test(
    "of another form is refused, without its password",
    arguments: [
      "", "host", "http://host", "nats://", "nats://:1", "nats://h:", "nats://h:0",
      "nats://h:65536",
      "nats://h:1x", "nats://h:+1", "nats://@h", "nats://a%zz@h", "nats://a%00@h", "nats://h/path",
      "nats://[::1", "nats://[::1]x", "nats://h,", "nats://h h", "nats://a@x,nats://b@y",
      "nats://u:secret@h:0",
    ])
  func wrongForms(text: String) throws {
    do throws(FlowError) {
      _ = try NATSSettings(ByteString(text))
      Issue.record("it is taken")
    } catch {
      #expect(error.kind == .usage)
      #expect(!ByteString(error.message).bytes.contains(ByteString("secret")))
    }
  }
}

@Suite("Base64")
struct NATSBase64Tests {
  @Test("is written for URLs and read in its usual form")
  func forms() {
    #expect(NATSBase64.encodeForURL(Array("a".utf8)) == "YQ==")
    #expect(NATSBase64.encodeForURL([0xFB, 0xFF, 0xFE]) == "-__-")
    #expect(NATSBase64.decode("+//+") == [0xFB, 0xFF, 0xFE])
    #expect(NATSBase64.decode("YWI=") == Array("ab".utf8))
    #expect(NATSBase64.decode("YQ") == Array("a".utf8))
    for wrong: ByteString in ["Y", "YQ=a", "Y Q", "YQ===", "-_"] {
      #expect(NATSBase64.decode(wrong) == nil)
    }
  }
}

extension [UInt8] {
  fileprivate func contains(_ text: ByteString) -> Bool { place(of: text) != nil }
}
