/// Finds texts and names in annotations.
public struct AnnotationReader {
  /// A function or field.
  struct Entry {
    /// `flow.op(name, run)`, `Run:summary(options)`, `Run.name`.
    let signature: String
    let lines: [String]
  }

  /// What a class has.
  struct Class {
    let parent: String?
    let lines: [String]
    /// By name.
    var members: [String: Entry] = [:]
  }

  /// What the module itself is called here: `flow` is what messages call its flows.
  static let module = "module"

  /// By the name that messages show of an object: `op`, `run`; and the module.
  private(set) var classes: [String: Class] = [:]
  private var comment: [String] = []
  private var openClass: String?

  /// Reads the text of `flow.d.lua`.
  public init(_ text: String = Annotations.text) {
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      read(line)
    }
    read("")
  }

  private mutating func read(_ line: Substring) {
    if line.hasPrefix("---@class ") {
      let words = line.dropFirst(10).split(separator: ":", maxSplits: 1)
      let name = Self.shortName(words.first ?? "")
      let parent = words.count > 1 ? Self.shortName(words[1]) : nil
      classes[name] = Class(parent: parent, lines: comment)
      openClass = name
      comment = []
    } else if line.hasPrefix("---@field "), let openClass {
      let words = line.dropFirst(10).split(separator: " ", maxSplits: 1)
      guard let name = words.first else { return }
      let what = words.count > 1 ? String(words[1]) : ""
      classes[openClass]?.members[String(name)] = Entry(
        signature: "\(openClass).\(name)", lines: [what])
    } else if line.hasPrefix("---@param ") || line.hasPrefix("---@return ") {
      comment.append("  " + line.dropFirst(4))
    } else if line.hasPrefix("---@async") {
      comment.append("  may wait")
    } else if line.hasPrefix("---@") {
      comment = []
    } else if line.hasPrefix("---") {
      comment.append(String(line.dropFirst(3)))
    } else if line.hasPrefix("function ") {
      readFunction(line.dropFirst(9))
    } else {
      comment = []
    }
  }

  /// `flow.op(name, run) end`.
  private mutating func readFunction(_ text: Substring) {
    let signature = text.hasSuffix(" end") ? text.dropLast(4) : text
    let words = signature.split(maxSplits: 2) { $0 == "." || $0 == ":" || $0 == "(" }
    guard words.count >= 2 else { return }
    let owner = words[0] == "flow" ? Self.module : words[0].lowercased()
    classes[owner]?.members[String(words[1])] = Entry(
      signature: String(signature), lines: comment)
    comment = []
  }

  /// `flow.Op` as objects are called: `op`.
  private static func shortName(_ name: Substring) -> String {
    let bare = name.split { $0 == " " || $0 == "<" }.first ?? ""
    return bare == "flow" ? module : bare.dropFirst(5).lowercased()
  }

  /// The names of what a class has, its parents' included.
  ///
  /// - Parameters:
  ///   - name: The class, as messages call its objects.
  ///   - methodsOnly: Whether fields are left out.
  /// - Returns: The names, sorted; none for an unknown class.
  public func members(of name: String, methodsOnly: Bool) -> [String] {
    var names: Set<String> = []
    var next: String? = name
    while let current = next, let found = classes[current] {
      for (name, entry) in found.members where !methodsOnly || entry.signature.contains(":") {
        names.insert(name)
      }
      next = found.parent
    }
    return names.sorted()
  }

  /// The text about a member of a class or of its parents; nil when there is none.
  public func text(_ name: String, of className: String) -> String? {
    var next: String? = className
    while let current = next, let found = classes[current] {
      if let entry = found.members[name] {
        return ([entry.signature] + entry.lines).joined(separator: "\n")
      }
      next = found.parent
    }
    return nil
  }

  /// What a class is for; nil for an unknown one.
  public func text(ofClass name: String) -> String? {
    classes[name]?.lines.joined(separator: "\n")
  }
}
