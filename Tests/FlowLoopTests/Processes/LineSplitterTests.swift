import FlowLoop
import Testing

@Suite("Lines of bytes in pieces")
struct LineSplitterTests {
  @Test("Any division into pieces gives the same lines", arguments: 1...8)
  func anyDivision(size: Int) {
    let text = Array("one\n\ntwo\0\r\nand the last".utf8)
    var splitter = LineSplitter()
    var lines: [ByteString] = []
    var rest = text[...]
    while !rest.isEmpty {
      Array(rest.prefix(size)).withUnsafeBytes { splitter.add($0) { lines.append($0) } }
      rest = rest.dropFirst(size)
    }
    #expect(lines == ["one", "", "two\0\r"])
    #expect(splitter.takePart() == "and the last")
    #expect(splitter.takePart() == "")
  }
}
