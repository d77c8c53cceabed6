import FlowEngine
import Foundation
import Testing

private func op(_ name: ByteString, retry: RetryPolicy? = nil, timeout: Double? = nil) -> Op {
  Op(name, needs: ["item": "any?"], retry: retry, timeout: timeout) { context in
    if context.op.name == "FailOp" { context.fail(FlowError(.error, "with all due respect")) }
  }
}

/// A flow with one of each.
private func everything() -> Flow {
  let inner = Flow("inner").case("plan", "a").add(op("TwiceOp"))
  return Flow("signup")
    .add(op("TwiceOp")).add(op("RetryOp"), retry: RetryPolicy(attempts: 3, delay: 0.5), timeout: 5)
    .case("plan", "pro").add(inner)
    .case { _ in true }
    .otherwise().add(op("FreeOp")).add(op("TwiceOp"))
    .combine()
    .addGrouped(
      op("UploadOp"),
      GroupDispatcher(input: "images", output: "urls", maxConcurrent: 2, collect: "item")
    )
    .addParallel(op("MailOp"), Flow("empty"), Flow("audit").add(op("AuditOp", timeout: 1)))
    .addFinally(op("CloseOp"))
}

@Suite("Flows as graphs")
struct GraphTests {
  @Test func dotShowsAllParts() {
    #expect(
      everything().dot() == """
        digraph "signup" {
          label="signup";
          labelloc=t;
          node [shape=box];
          n1 [label="start", shape=oval];
          n2 [label="TwiceOp"];
          n3 [label="RetryOp\\nretry: 3 attempts, delay 0.5s\\ntimeout: 5s"];
          n4 [label="Cases", shape=diamond];
          subgraph cluster_1 {
            label="inner";
            style=solid;
            n5 [label="Cases", shape=diamond];
            n6 [label="TwiceOp"];
          }
          n7 [label="FreeOp"];
          n8 [label="TwiceOp"];
          subgraph cluster_2 {
            label="images -> urls\\nmax_concurrent = 2";
            style=dashed;
            n9 [label="UploadOp"];
          }
          subgraph cluster_3 {
            label="parallel";
            style=dashed;
            n10 [label="fork", shape=hexagon];
            n11 [label="MailOp"];
            subgraph cluster_4 {
              label="empty";
              style=solid;
              n12 [label="no steps", shape=plaintext];
            }
            subgraph cluster_5 {
              label="audit";
              style=solid;
              n13 [label="AuditOp\\ntimeout: 1s"];
            }
            n14 [label="join", shape=hexagon];
          }
          subgraph cluster_6 {
            label="finally";
            style=dashed;
            n15 [label="CloseOp"];
          }
          n16 [label="end", shape=oval];
          n1 -> n2;
          n2 -> n3;
          n3 -> n4;
          n4 -> n5 [label="plan = pro"];
          n5 -> n6 [label="plan = a"];
          n4 -> n7 [label="otherwise"];
          n7 -> n8;
          n6 -> n9;
          n5 -> n9 [label="no case matches"];
          n4 -> n9 [label="predicate"];
          n8 -> n9;
          n9 -> n10;
          n10 -> n11;
          n10 -> n12;
          n10 -> n13;
          n11 -> n14;
          n12 -> n14;
          n13 -> n14;
          n14 -> n15 [style=dashed];
          n15 -> n16;
        }

        """)
    #expect(
      Flow("empty").dot() == """
        digraph "empty" {
          label="empty";
          labelloc=t;
          node [shape=box];
          n1 [label="start", shape=oval];
          n2 [label="end", shape=oval];
          n1 -> n2;
        }

        """)
  }

  @Test func mermaidShowsTheSameParts() throws {
    #expect(
      everything().mermaid() == """
        flowchart TD
          n1(["start"])
          n2["TwiceOp"]
          n3["RetryOp<br/>retry#58; 3 attempts, delay 0.5s<br/>timeout#58; 5s"]
          n4{"Cases"}
          subgraph g1["inner"]
            n5{"Cases"}
            n6["TwiceOp"]
          end
          n7["FreeOp"]
          n8["TwiceOp"]
          subgraph g2["images -#62; urls<br/>max_concurrent = 2"]
            n9["UploadOp"]
          end
          subgraph g3["parallel"]
            n10{{"fork"}}
            n11["MailOp"]
            subgraph g4["empty"]
              n12("no steps")
            end
            subgraph g5["audit"]
              n13["AuditOp<br/>timeout#58; 1s"]
            end
            n14{{"join"}}
          end
          subgraph g6["finally"]
            n15["CloseOp"]
          end
          n16(["end"])
          n1 --> n2
          n2 --> n3
          n3 --> n4
          n4 -->|"plan = pro"| n5
          n5 -->|"plan = a"| n6
          n4 -->|"otherwise"| n7
          n7 --> n8
          n6 --> n9
          n5 -->|"no case matches"| n9
          n4 -->|"predicate"| n9
          n8 --> n9
          n9 --> n10
          n10 --> n11
          n10 --> n12
          n10 --> n13
          n11 --> n14
          n12 --> n14
          n13 --> n14
          n14 -.-> n15
          n15 --> n16

        """)
    _ = try Flowchart(everything().mermaid())
    _ = try Flowchart(Flow("empty").mermaid())
  }

  @Test func allOptionsOfADispatcherShow() {
    let group = GroupDispatcher(input: "list", allowFailure: true, failures: "bad")
    let text = Flow("f").addGrouped(op("AOp"), group).dot().description
    #expect(text.contains(#"label="list\nmax_concurrent = 3\nallow_failure\nfailures -> bad";"#))
    // A flow in a group has both boxes.
    let nested = Flow("f").addGrouped(Flow("inner").add(op("AOp")), GroupDispatcher(input: "list"))
    let lines = nested.dot().description.split(separator: "\n").map { $0.drop { $0 == " " } }
    #expect(lines.filter { $0.hasPrefix("subgraph") || $0 == "}" }.count == 5)
  }

  /// Names that mean something to one of the formats, or nothing to both.
  static let names: [ByteString] = [
    #"a "quoted" name"#, #"back\slash\"#, #"\N \G \l \""#, "two\nlines", "]", "}", "#", "a;b",
    "#59;",
    "<b>bold</b>", "&amp; &lt; &#65;", "graph", "end", "subgraph", "digraph", "日本 é 🎉", "|", "a|b",
    "`code`", "%% comment", "%%{init: {}}%%", "style a:b#c;", "classDef x:y#z;", "-->", "//",
    "/* */",
    " ", "$x", "n1", "a\tb", "call()", "@{ shape: x }",
  ]

  /// What a graph shows of a name: each line of it.
  private static func lines(_ name: ByteString) -> [String] {
    name.description.replacingOccurrences(of: "\t", with: " ").components(separatedBy: "\n")
  }

  private static func flow(named names: [ByteString]) -> Flow {
    let flow = Flow(names[0])
    for name in names {
      flow.add(op(name)).add(Flow(name).add(op("InnerOp")))
        .addGrouped(op(name), GroupDispatcher(input: name, output: name))
        .case(name, name).add(op(name)).otherwise().combine()
    }
    return flow
  }

  @Test(arguments: names) func mermaidHoldsAnyName(_ name: ByteString) throws {
    let chart = try Flowchart(Self.flow(named: [name]).mermaid())
    let shown = Self.lines(name).joined(separator: "\n")
    #expect(chart.labels.filter { $0 == shown }.count == (shown == "end" ? 5 : 4))
    #expect(chart.labels.contains("\(shown) -> \(shown)\nmax_concurrent = 3"))
    #expect(chart.edgeLabels.contains("\(shown) = \(shown)"))
  }

  @Test(.enabled(if: Graphviz.isInstalled, "Graphviz (dot) isn't installed"))
  func graphvizDrawsAnyName() throws {
    for name in Self.names {
      let texts = try Graphviz.texts(Self.flow(named: [name]).dot())
      for line in Self.lines(name) where line != " " {
        #expect(texts.filter { $0 == line }.count >= 4, "\(name) isn't in \(texts)")
      }
    }
  }

  @Test(.enabled(if: Graphviz.isInstalled, "Graphviz (dot) isn't installed"))
  func graphvizDrawsAllParts() throws {
    let texts = try Graphviz.texts(everything().dot())
    for part in ["signup", "TwiceOp", "plan = pro", "no case matches", "images -> urls", "join"] {
      #expect(texts.contains(part))
    }
    #expect(texts.filter { $0 == "TwiceOp" }.count == 3)
    _ = try Graphviz.texts(Flow("empty").dot())
    _ = try Graphviz.texts(Flow("end").add(Flow("graph")).dot())
  }

  @Test func bytesThatAreNoTextAreReplaced() throws {
    let name = ByteString([0x61, 0xFF, 0xFE, 0x00, 0x1B, 0x7F, 0x62, 0xC3])
    let flow = Flow(name).add(op(name)).case(name, name)
    let shown = "a\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}b\u{FFFD}"
    #expect(flow.dot().description.contains("n2 [label=\"\(shown)\"];"))
    #expect(flow.dot().bytes.allSatisfy { $0 >= 32 || $0 == 10 })
    #expect(try Flowchart(flow.mermaid()).labels.contains(shown))
    #expect(flow.mermaid().bytes.allSatisfy { $0 >= 32 || $0 == 10 })
  }

  @Test func theSameFlowGivesTheSameText() {
    #expect(everything().dot() == everything().dot())
    let flow = everything()
    #expect(flow.mermaid() == flow.mermaid())
    flow.add(op("MoreOp"))
    #expect(flow.dot().description.contains("MoreOp"))
  }

  @Test func flowsMayBeNestedAsDeepAsTheyLike() throws {
    var flow = Flow("f").add(op("AOp"))
    for level in 0..<10_000 {
      flow =
        level % 2 == 0 ? Flow("f").add(flow) : Flow("f").addParallel(flow).addFinally(op("BOp"))
    }
    #expect(count("\"BOp\"", in: flow.mermaid()) == 5_000)
    #expect(count("subgraph", in: flow.dot()) == 20_000)
    let run = flow.start(on: makeLoop())
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(count("succeeded", in: run.dot()) == 15_002)
  }

  @Test func flowsThatUseFlowsTwiceAreFoldedWhenThereAreTooMany() throws {
    var flow = Flow("f").add(op("AOp"))
    for _ in 0..<100 { flow = Flow("f").add(flow).add(flow) }
    let chart = flow.mermaid()
    #expect((10_000..<50_000).contains(count("subgraph", in: chart)))
    #expect((5_000..<50_000).contains(count("\"AOp\"", in: chart)))
    #expect((1..<1_000).contains(count("[[\"f\"]]", in: chart)))
  }

  private func count(_ part: String, in text: ByteString) -> Int {
    text.description.components(separatedBy: part).count - 1
  }

  // MARK: Runs

  @Test func aRunShowsHowEachOpEnded() throws {
    let slow = waitingOp("SlowOp", 0.25)
    let flaky = Op("FlakyOp", retry: RetryPolicy(attempts: 3)) { context in
      if context.attempt < 3 { context.fail(FlowError(.error, "not yet")) }
    }
    let item = Op("ItemOp", needs: ["x": "integer"]) { context in
      if try context.value("x", as: Int.self) > 2 { context.fail(FlowError(.error, "too large")) }
    }
    let flow = Flow("f").data("list", [Int64(1), 2, 3].flowValue).data("plan", "b")
      .add(slow).add(flaky)
      .add(Flow("inner").add(slow).case("plan", "a").add(op("UnreachedOp")))
      .addGrouped(item, GroupDispatcher(input: "list", allowFailure: true))
      .addParallel(op("FailOp"), op("NeverOp"))
      .add(op("UnreachedOp"))
      .addFinally(op("CloseOp"))
    let run = flow.start(on: makeLoop())
    // What becomes of the flow later doesn't change the run.
    flow.add(op("LaterOp"))
    #expect(run.dot().description.contains(#"n2 [label="SlowOp\nrunning", style=filled, "#))
    #expect(run.dot().description.contains(#"[label="end\nrunning for 0s", shape=oval, "#))
    try run.wait()
    run.markObserved()
    let unreached = "\\nnot reached"
    let dashed = "style=dashed, fontcolor=gray40"
    let good = "style=filled, fillcolor=palegreen"
    let bad = "style=filled, fillcolor=lightcoral"
    let text = run.dot().description
    let expected = [
      "n1 [label=\"start\", shape=oval];",
      "n2 [label=\"SlowOp\\nsucceeded in 0.25s\", \(good)];",
      "n3 [label=\"FlakyOp\\nretry: 3 attempts\\nsucceeded in 0s, attempt 3\", \(good)];",
      "label=\"inner\\nsucceeded in 0.25s\";", "color=forestgreen;",
      "n4 [label=\"SlowOp\\nsucceeded in 0.25s\", \(good)];",
      "n5 [label=\"Cases\\nno case matched\", shape=diamond, \(good)];",
      "n6 [label=\"UnreachedOp\(unreached)\", \(dashed)];",
      "n7 [label=\"ItemOp\\n2 succeeded, 1 failed in 0s (median)\", \(bad)];",
      "n9 [label=\"FailOp\\nfailed in 0s\", \(bad)];",
      "n10 [label=\"NeverOp\(unreached)\", \(dashed)];",
      "n12 [label=\"UnreachedOp\(unreached)\", \(dashed)];",
      "n13 [label=\"CloseOp\\nsucceeded in 0s\", \(good)];",
      "n14 [label=\"end\\nfailed in 0.5s\", shape=oval, \(bad)];",
    ]
    for line in expected { #expect(text.contains("  \(line)\n"), "\(text)") }
    #expect(!text.contains("LaterOp"))
    #expect(text.hasSuffix("}\n") && !text.hasSuffix("\n\n"))
    if Graphviz.isInstalled { _ = try Graphviz.texts(run.dot()) }
  }

  @Test func aRunShowsWhatItemsTookAndWhatTheirGroupTook() throws {
    let flow = Flow("f").data("list", [Int64(1), 2, 3, 4].flowValue)
      .addGrouped(
        waitingOp("SlowOp", 1), GroupDispatcher(input: "list", maxConcurrent: 2, as: "x")
      )
      .data("one", [Int64(1)].flowValue)
      .addGrouped(waitingOp("OnceOp", 1), GroupDispatcher(input: "one", as: "x"))
      .addGrouped(waitingOp("NeverOp", 1), GroupDispatcher(input: "none", as: "x"))
    let run = flow.start(on: makeLoop())
    #expect(run.dot().description.contains(#"max_concurrent = 2\nrunning";"#))
    try run.wait()
    run.markObserved()
    let text = run.dot().description
    for part in [
      #"label="list\nmax_concurrent = 2\n4 items in 2s";"#,
      #"[label="SlowOp\n4 succeeded in 1s (median)", "#,
      #"label="one\nmax_concurrent = 3\n1 item in 1s";"#,
      #"[label="OnceOp\n1 succeeded in 1s", "#,
      #"label="none\nmax_concurrent = 3\ncouldn't begin";"#,
    ] {
      #expect(text.contains(part), "\(text)")
    }
  }

  @Test func aRunShowsWhatWasCancelledTakenOrTriedAgain() throws {
    let flow = Flow("f").needs(["plan": "string"])
      .case("plan", "a").add(waitingOp("AOp")).case("plan", "b").add(op("BOp")).combine()
      .addParallel(waitingOp("LongOp", 5), waitingOp("ShortOp") { $0.fail(FlowError(.error, "x")) })
    let run = flow.with(retry: RetryPolicy(attempts: 2)).start(
      on: makeLoop(), data: [("plan", .bytes("a"))])
    try run.wait()
    run.markObserved()
    let text = run.dot().description
    for part in [
      #"label="f\nretry: 2 attempts";"#,
      #"[label="Cases\nplan: a", shape=diamond, style=filled, fillcolor=palegreen];"#,
      #"[label="AOp\nsucceeded in 1s, last of 2", style=filled, fillcolor=palegreen];"#,
      #"[label="LongOp\ncancelled in 1s, last of 2", style=filled, fillcolor=khaki];"#,
      #"[label="ShortOp\nfailed in 1s, last of 2", style=filled, fillcolor=lightcoral];"#,
      #"[label="BOp\nnot reached", style=dashed, fontcolor=gray40];"#,
    ] {
      #expect(text.contains(part), "\(text)")
    }
    // An op alone.
    let alone = op("FailOp").start(on: makeLoop())
    alone.markObserved()
    #expect(alone.dot().description.contains(#"n2 [label="FailOp\nfailed in 0s", "#))
    // What is a secret in the run.
    let hidden = Flow("f").data("key", Secret("swordfish"))
      .case("key", "swordfish").add(op("NoOp")).start(on: makeLoop())
    #expect(!hidden.dot().description.contains("swordfish"))
    #expect(hidden.dot().description.contains(#"[label="key = <redacted>"]"#))
    // A group of flows, and a group that can't begin.
    let group = Flow("f").data("list", list(["a", "b"]))
      .addGrouped(Flow("inner").add(waitingOp("ItemOp")), GroupDispatcher(input: "list", as: "x"))
      .addGrouped(op("OtherOp"), GroupDispatcher(input: "missing", as: "x")).start(on: makeLoop())
    try group.wait()
    group.markObserved()
    let groups = group.dot().description
    #expect(groups.contains(#"label="inner\n2 succeeded in 1s (median)";"#))
    #expect(groups.contains(#"[label="ItemOp\n2 succeeded in 1s (median)", "#))
    #expect(groups.contains(#"label="missing\nmax_concurrent = 3\ncouldn't begin";"#))
    #expect(groups.contains(#"[label="OtherOp\n1 failed", "#))
  }
}

/// A flowchart of Mermaid, read by the part of its grammar that the engine writes.
private struct Flowchart {
  /// Those of nodes and subgraphs.
  var labels: [String] = []
  var edgeLabels: [String] = []

  struct Malformed: Error {
    let line: String
  }

  init(_ text: ByteString) throws {
    var lines = text.description.components(separatedBy: "\n")
    guard lines.first == "flowchart TD", lines.popLast() == "", lines.last != "" else {
      throw Malformed(line: text.description)
    }
    var ids: Set<String> = []
    var depth = 0
    let node = /(n[0-9]+)(\[|\(\[|\{|\{\{|\(|\[\[)"(.*)"(\]|\]\)|\}|\}\}|\)|\]\])/
    let closers = ["[": "]", "([": "])", "{": "}", "{{": "}}", "(": ")", "[[": "]]"]
    for line in lines.dropFirst().map({ String($0.drop { $0 == " " }) }) {
      if let match = line.wholeMatch(of: /(n[0-9]+) (?:-->|-\.->)(?:\|"(.*)"\|)? (n[0-9]+)/) {
        guard ids.contains(String(match.1)), ids.contains(String(match.3)) else {
          throw Malformed(line: line)
        }
        if let label = match.2 { edgeLabels.append(try Self.read(label)) }
      } else if let match = line.wholeMatch(of: /subgraph (g[0-9]+)\["(.*)"\]/) {
        guard ids.insert(String(match.1)).inserted else { throw Malformed(line: line) }
        labels.append(try Self.read(match.2))
        depth += 1
      } else if line == "end" {
        depth -= 1
      } else if let match = line.wholeMatch(of: node), closers[String(match.2)] == String(match.4),
        ids.insert(String(match.1)).inserted
      {
        labels.append(try Self.read(match.3))
      } else {
        throw Malformed(line: line)
      }
      guard depth >= 0 else { throw Malformed(line: line) }
    }
    guard depth == 0 else { throw Malformed(line: "end") }
  }

  /// The text that a quoted string shows.
  private static func read(_ quoted: Substring) throws -> String {
    var text = ""
    var rest = quoted
    while let first = rest.unicodeScalars.first {
      if let match = rest.prefixMatch(of: /#([0-9]+);/), let code = UInt32(match.1),
        let scalar = Unicode.Scalar(code)
      {
        text.unicodeScalars.append(scalar)
        rest = rest[match.range.upperBound...]
      } else if rest.hasPrefix("<br/>") {
        text += "\n"
        rest = rest.dropFirst(5)
      } else if !first.isASCII || "_.,=-/'+ ".unicodeScalars.contains(first)
        || first.properties.isAlphabetic || first.properties.numericType != nil
      {
        text.unicodeScalars.append(first)
        rest = Substring(rest.unicodeScalars.dropFirst())
      } else {
        throw Malformed(line: String(quoted))
      }
    }
    return text
  }
}

/// The program that draws DOT.
private enum Graphviz {
  static let path = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .map { "\($0)/dot" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  static var isInstalled: Bool { path != nil }

  struct Failed: Error {
    let message: String
    let input: String
  }

  /// Draws a graph; the lines of text in the picture.
  static func texts(_ graph: ByteString) throws -> [String] {
    let loop = EventLoop()
    defer { loop.shutdown() }
    var request = ProcessRequest([ByteString(try #require(path)), "-Tsvg"])
    request.stdin = graph
    let task = ProcessTask(request, check: false, on: loop)
    _ = loop.run(until: { task.isConcluded })
    let result = try #require(task.result)
    let (picture, message) = (result.stdout.description, result.stderr.description)
    // It writes to stderr what it doesn't like, such as a label that is no UTF-8.
    guard result.status == 0, message == "" || message.contains("Pango") else {
      throw Failed(message: message, input: graph.description)
    }
    return picture.matches(of: /<text [^>]*>([^<]*)<\/text>/).map { decoded(String($0.1)) }
  }

  private static func decoded(_ text: String) -> String {
    var text = text
    for (name, character) in [
      ("&#45;", "-"), ("&#160;", " "), ("&#39;", "'"), ("&quot;", "\""), ("&lt;", "<"),
      ("&gt;", ">"), ("&amp;", "&"),
    ] {
      text = text.replacingOccurrences(of: name, with: character)
    }
    return text
  }
}
