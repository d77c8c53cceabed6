import FlowEngine
import Foundation
import Testing

@Suite("Texts")
struct TextTests {
  @Test("A text is compared with strings, converted to them, and printed as one")
  func strings() {
    let text: ByteString = "naïve"
    let string = "naïve"
    #expect(text == string && string == text && text != "naive" && text as ByteString? == string)
    #expect(String(text) == string && "\(text)!" == "naïve!" && "\([text])" == #"["naïve"]"#)
    #expect(
      ByteString([0x61, 0xFF]) != "a\u{FFFD}" && String(ByteString([0x61, 0xFF])) == "a\u{FFFD}")
    #expect(
      ByteString(Data([1, 2])) == ByteString([1, 2]) && Data(ByteString([1, 2])) == Data([1, 2]))
    let other = "naive"
    #expect(
      text != other && other != text && string == text as ByteString?
        && other != text as ByteString?)
    switch text {
    case "naïve": break
    default: Issue.record("a literal in a switch is another text")
    }
  }

  @Test("Names, keys and messages are strings, parts of them, literals, and texts of scripts")
  func anyText() throws {
    let loop = makeLoop()
    let (name, key) = ("uploads of today".prefix(7), "to do")
    let odd = ByteString([0x6B, 0xFF])
    let op = Op(name, doc: "\(key)s") { context in
      context.set(key, 1)
      context.set(odd, "x")
      context.log(odd)
      throw FlowError(.error, "no \(key)", op: name)
    }
    let run = op.start(on: loop, name: key)
    run.markObserved()
    #expect(op.name == "uploads" && op.doc == "to dos" && run.name == key)
    #expect(run.error?.message == "no \(key)" && run.error?.op == "uploads")
    #expect(run.data[key] == 1 && run.data[odd] == "x" && run.data["k"] == nil)
    #expect(run.events.first { $0.kind == .log }?.message == odd)
    #expect("\(run.data[key] ?? .null) \(run.data[odd] ?? .null)" == "1 x")
  }

  @Test("Messages of the engine keep the bytes of names")
  func bytesInMessages() {
    let loop = makeLoop()
    let odd = ByteString([0x6B, 0xFF])
    let needing = Op(name: odd, needs: [Declaration(odd, .any)], body: Unreached())
    let run = needing.start(on: loop)
    run.markObserved()
    let message: ByteString = "can't find <\(odd)> in data bucket"
    #expect(run.error?.message == message)
    #expect(run.error?.path == odd)
  }

  private final class Unreached: OpBody {
    func start(_ context: OpContext) -> CallState {
      Issue.record("an op without its input was executed")
      return .finished
    }
  }

  @Test("Parts of texts are found as in strings")
  func parts() {
    let path: ByteString = "a/b//c.txt"
    #expect(path.hasPrefix("a/") && path.hasSuffix(".txt") && !path.hasPrefix("/"))
    #expect(path.hasPrefix("") && path.hasSuffix("") && !path.hasSuffix("xa/b//c.txt"))
    #expect(path.split(at: "/").map { ByteString($0) } == ["a", "b", "", "c.txt"])
    #expect(path.split(at: "/", maxSplits: 1).map { ByteString($0) } == ["a", "b//c.txt"])
    #expect(
      path.fileName == "c.txt" && ("c" as ByteString).fileName == "c")
    #expect(("a/" as ByteString).fileName.isEmpty && path.contains("//") && !path.contains("///"))
    #expect(
      ["0", "007", "9223372036854775807", "9223372036854775808", "", "-1", "1a"].map {
        ($0 as ByteString).decimal
      } == [0, 7, .max, nil, nil, nil, nil])
    #expect(ByteString((" \ta b\r\n" as ByteString).trimmed()) == "a b")
    #expect((" \n" as ByteString).trimmed().isEmpty && ("" as ByteString).trimmed().isEmpty)
    #expect(["a", "", "c"].map { $0 as ByteString }.joined(separator: ", ") == "a, , c")
    #expect(("ÄaZ" as ByteString).lowercased == "Äaz" && ("äaZ" as ByteString).uppercased == "äAZ")
  }
}
