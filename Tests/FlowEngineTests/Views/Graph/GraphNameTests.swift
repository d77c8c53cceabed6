import FlowEngine
import Foundation
import Testing

@Suite("Names in graphs")
struct GraphNameTests {
  /// Names that mean something to one of the formats, or nothing to both.
  static let names: [ByteString] = [
    #"a "quoted" name"#, #"back\slash\"#, #"\N \G \l \""#, "two\nlines", "]", "}", "#", "a;b",
    "#59;",
    "<b>bold</b>", "&amp; &lt; &#65;", "graph", "end", "subgraph", "digraph", "日本 é 🎉", "|", "a|b",
    "`code`", "%% comment", "%%{init: {}}%%", "style a:b#c;", "classDef x:y#z;", "-->", "//",
    "/* */",
    " ", "$x", "n1", "a\tb", "call()", "@{ shape: x }",
  ]

  /// A name as a graph shows it: each line of it.
  private static func lines(_ name: ByteString) -> [String] {
    name.description.replacingOccurrences(of: "\t", with: " ").components(separatedBy: "\n")
  }

  private static func flow(named names: [ByteString]) -> Flow {
    let flow = Flow(names[0])
    for name in names {
      flow.add(drawnOp(name)).add(Flow(name).add(drawnOp("InnerOp")))
        .addGrouped(drawnOp(name), GroupDispatcher(input: name, output: name))
        .case(name, name).add(drawnOp(name)).otherwise().combine()
    }
    return flow
  }

  @Test("Mermaid output is valid for any name", arguments: names)
  func mermaidHoldsAnyName(
    _ name: ByteString
  ) throws {
    let chart = try Flowchart(Self.flow(named: [name]).mermaid())
    let shown = Self.lines(name).joined(separator: "\n")
    #expect(chart.labels.filter { $0 == shown }.count == (shown == "end" ? 5 : 4))
    #expect(chart.labels.contains("\(shown) -> \(shown)\nmax_concurrent = 3"))
    #expect(chart.edgeLabels.contains("\(shown) = \(shown)"))
  }

  @Test(
    "Graphviz accepts any name",
    .enabled(if: Graphviz.isInstalled, "Graphviz (dot) isn't installed"))
  func graphvizDrawsAnyName() throws {
    for name in Self.names {
      let texts = try Graphviz.texts(Self.flow(named: [name]).dot())
      for line in Self.lines(name) where line != " " {
        #expect(texts.filter { $0 == line }.count >= 4, "\(name) isn't in \(texts)")
      }
    }
  }

  @Test("Invalid UTF-8 is replaced")
  func bytesThatAreNoTextAreReplaced() throws {
    let name = ByteString([0x61, 0xFF, 0xFE, 0x00, 0x1B, 0x7F, 0x62, 0xC3])
    let flow = Flow(name).add(drawnOp(name)).case(name, name)
    let shown = "a\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}b\u{FFFD}"
    #expect(flow.dot().description.contains("n2 [label=\"\(shown)\"];"))
    #expect(flow.dot().bytes.allSatisfy { $0 >= 32 || $0 == 10 })
    #expect(try Flowchart(flow.mermaid()).labels.contains(shown))
    #expect(flow.mermaid().bytes.allSatisfy { $0 >= 32 || $0 == 10 })
  }
}
