import FlowEngine
import Foundation
import Testing

/// An op whose name says whether it fails.
func drawnOp(_ name: ByteString, retry: RetryPolicy? = nil, timeout: Duration? = nil) -> Op {
  Op(name.description, needs: ["item": "any?"]) { context in
    if context.op.name == "FailOp" { context.fail(FlowError(.error, "with all due respect")) }
  }.with(retry: retry, timeout: timeout)
}

/// A flowchart of Mermaid, read by the part of its grammar that the engine writes.
struct Flowchart {
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
enum Graphviz {
  static let path = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .map { "\($0)/dot" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  static var isInstalled: Bool { path != nil }

  struct Failed: Error {
    let message: String
    let input: String
  }

  /// Draws a graph; the lines of text in the picture.
  static func texts(_ graph: ByteString) throws -> [String] {
    let loop = FlowEventLoop()
    defer { loop.shutdown() }
    var request = ProcessRequest([ByteString(try #require(path)), "-Tsvg"])
    request.input = .bytes(graph)
    let task = ProcessTask(request, check: false, on: loop)
    _ = loop.turn(until: { task.isConcluded })
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
