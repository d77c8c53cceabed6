/// Finds texts and names in annotations.
package struct AnnotationReader {
  /// A function or field.
  struct Entry {
    /// `flow.op(name, run)`, `Run:summary(options)`, `Run.name`.
    let signature: String
    let lines: [String]
    /// Whether it is called with a colon.
    let isMethod: Bool
    /// The text after the name of each parameter except `self`: the type, then its description.
    var parameters: [String] = []
    /// The type of a field, or of a function's first result, with its description; nil without.
    var type: String?
  }

  /// The members of a class. An alias is one without members.
  struct Class {
    /// Its name after `flow.`: `Run`; the module is `flow`.
    let title: String
    let parent: String?
    fileprivate(set) var lines: [String]
    /// By name.
    fileprivate(set) var members: [String: Entry] = [:]
    /// The names of `members` in the order of the text.
    fileprivate(set) var names: [String] = []

    mutating func add(_ name: Substring, _ entry: Entry) {
      let name = String(name)
      if members.updateValue(entry, forKey: name) == nil { names.append(name) }
    }
  }

  /// By the name that messages use for an object, `op` or `run`; and the module.
  private(set) var classes: [String: Class] = [:]
  private var comment: [String] = []
  private var parameters: [String] = []
  private var result: String?
  private var openClass: String?

  /// Reads the texts of files, by default all annotations.
  package init(_ texts: [String] = Annotations.files.map(\.text)) {
    for text in texts {
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) { read(line) }
    }
  }

  private mutating func read(_ line: Substring) {
    guard line.hasPrefix("---") else {
      if line.hasPrefix("function ") { readFunction(line.dropFirst(9)) }
      comment = []
      parameters = []
      result = nil
      return
    }
    let text = line.dropFirst(3)
    if text.hasPrefix("|") {
      // One of the values of the alias above: `| "pending" # It goes on.`
      if let openClass { classes[openClass]?.lines.append("  " + text.dropFirst(2)) }
      return
    }
    guard text.hasPrefix("@") else {
      comment.append(String(text))
      return
    }
    let words = text.split(separator: " ", maxSplits: 1)
    let rest = words.count > 1 ? words[1] : ""
    switch words[0] {
    case "@class": readClass(rest)
    case "@alias": readAlias(rest)
    case "@field": readField(rest)
    case "@param":
      if !rest.hasPrefix("self ") {
        comment.append("  " + text.dropFirst())
        parameters.append(String(rest))
      }
    case "@return":
      comment.append("  " + text.dropFirst())
      if result == nil { result = String(rest) }
    case "@deprecated": comment.append("  " + text.dropFirst())
    case "@async": comment.append("  may wait")
    // Tags for type checkers only.
    default: break
    }
  }

  /// `flow.Run: flow.Task<flow.Data>`.
  private mutating func readClass(_ text: Substring) {
    let words = text.split(separator: ":", maxSplits: 1)
    let name = words.first ?? ""
    let parent = words.count > 1 ? Self.shortName(words[1]) : nil
    open(name, Class(title: Self.title(name), parent: parent, lines: comment))
  }

  /// `flow.Data table<string, any>`.
  private mutating func readAlias(_ text: Substring) {
    let words = text.split(separator: " ", maxSplits: 1)
    let name = words.first ?? ""
    let lines = words.count > 1 ? comment + ["  " + words[1]] : comment
    open(name, Class(title: Self.title(name), parent: nil, lines: lines))
  }

  private mutating func open(_ name: Substring, _ made: Class) {
    let name = Self.shortName(name)
    classes[name] = made
    openClass = name
    comment = []
  }

  /// `timeout? number Seconds.`; `[string] any` has no name.
  private mutating func readField(_ text: Substring) {
    let words = text.split(separator: " ", maxSplits: 1)
    guard let openClass, let name = words.first, !name.hasPrefix("[") else { return }
    let bare = name.hasSuffix("?") ? name.dropLast() : name
    let title = classes[openClass]?.title ?? openClass
    let entry = Entry(
      signature: "\(title).\(bare)", lines: comment + (words.count > 1 ? [String(words[1])] : []),
      isMethod: false, type: words.count > 1 ? String(words[1]) : nil)
    classes[openClass]?.add(bare, entry)
    comment = []
  }

  /// `flow.op(name, run) end`.
  private mutating func readFunction(_ text: Substring) {
    let signature = text.hasSuffix(" end") ? text.dropLast(4) : text
    let words = signature.split(maxSplits: 2) { $0 == "." || $0 == ":" || $0 == "(" }
    guard words.count >= 2 else { return }
    let owner = words[0] == "flow" ? ScriptHost.modulePart : words[0].lowercased()
    classes[owner]?.add(
      words[1],
      Entry(
        signature: String(signature), lines: comment, isMethod: signature.contains(":"),
        parameters: parameters, type: result))
  }

  /// The name of objects of `flow.Op`: `op`.
  private static func shortName(_ name: Substring) -> String {
    let title = title(name)
    return title == "flow" ? ScriptHost.modulePart : title.lowercased()
  }

  /// `flow.Task<T>` without the module and without type parameters: `Task`.
  private static func title(_ name: Substring) -> String {
    let bare = name.split { $0 == " " || $0 == "<" }.first ?? ""
    return String(bare.hasPrefix("flow.") ? bare.dropFirst(5) : bare)
  }

  /// The names of a class's members, its parents' included.
  ///
  /// - Parameters:
  ///   - name: The class, by the name of its objects in messages.
  ///   - methodsOnly: Whether fields are left out.
  /// - Returns: The names, sorted; none for an unknown class.
  package func members(of name: String, methodsOnly: Bool) -> [String] {
    var names: Set<String> = []
    var next: String? = name
    while let current = next, let found = classes[current] {
      for (name, entry) in found.members where !methodsOnly || entry.isMethod {
        names.insert(name)
      }
      next = found.parent
    }
    return names.sorted()
  }

  /// The text about a member of a class or of its parents, with the fields of a function's options;
  /// nil if there is none.
  package func text(_ name: String, of className: String) -> String? {
    var next: String? = className
    while let current = next, let found = classes[current] {
      if let entry = found.members[name] {
        let lines = HelpText.joined(entry.lines) + options(of: entry)
        return ([entry.signature] + lines).joined(separator: "\n")
      }
      next = found.parent
    }
    return nil
  }

  /// The texts about the members of other classes that have this name, with the class of each that describes it itself.
  func entries(named name: String, notOf left: [String]) -> [String] {
    classes.keys.sorted().filter { !left.contains($0) && classes[$0]?.members[name] != nil }
      .compactMap { text(name, of: $0) }
  }

  /// The description of a class, with its values if it is an alias, or its fields if it is a table
  /// of options; nil for an unknown one.
  package func text(ofClass name: String) -> String? {
    guard let found = classes[name] else { return nil }
    let fields = name.hasSuffix("options") ? self.fields(of: name) : []
    return (HelpText.joined(found.lines) + fields).joined(separator: "\n")
  }

  /// The fields of each `flow.…Options` that the parameters of a function name.
  private func options(of entry: Entry) -> [String] {
    let names = entry.lines.filter { $0.hasPrefix("  param ") }.flatMap { line in
      line.split { !$0.isLetter && $0 != "." }.filter {
        $0.hasPrefix("flow.") && $0.hasSuffix("Options")
      }
    }
    return names.flatMap { fields(of: Self.shortName($0)) }
  }

  /// A line for each field, with its parents' fields last.
  private func fields(of name: String) -> [String] {
    var lines: [String] = []
    var next: String? = name
    while let current = next, let found = classes[current] {
      for name in found.names {
        let entry = found.members[name]
        lines.append("    \(name): \(entry?.lines.joined(separator: " ") ?? "")")
      }
      next = found.parent
    }
    return lines
  }
}

/// The types in the annotations, as far as completion needs them.
extension AnnotationReader {
  /// A member of a class or of its parents.
  private func member(_ name: String, of className: String) -> Entry? {
    var next: String? = className
    while let current = next, let found = classes[current] {
      if let entry = found.members[name] { return entry }
      next = found.parent
    }
    return nil
  }

  /// The class of a function's result, or of a field; nil if it has no class here.
  func resultClass(of name: String, in className: String) -> String? {
    guard let type = member(name, of: className)?.type else { return nil }
    // `T` is the object of the method call.
    if type.hasPrefix("T ") { return className }
    return type.hasPrefix("flow.") ? known(type.prefix { $0.isLetter || $0 == "." }) : nil
  }

  /// The class of options for a function's argument, by the argument's index; nil for others.
  func optionsClass(ofArgument index: Int, of name: String, in className: String) -> String? {
    guard let entry = member(name, of: className), index < entry.parameters.count else {
      return nil
    }
    return optionsClass(in: entry.parameters[index])
  }

  /// The class of options for a field of options; nil for others.
  func optionsClass(ofField name: String, in className: String) -> String? {
    member(name, of: className)?.type.flatMap { optionsClass(in: $0) }
  }

  private func optionsClass(in text: String) -> String? {
    text.split { !$0.isLetter && $0 != "." }
      .first { $0.hasPrefix("flow.") && $0.hasSuffix("Options") }.flatMap { known($0) }
  }

  private func known(_ title: Substring) -> String? {
    let name = title.dropFirst("flow.".count).lowercased()
    return classes[name] == nil ? nil : name
  }
}

/// The annotations of the module `flow` for LuaLS: the only source for editors, `help` and completion.
package enum Annotations {
  /// The files that editors need, by name: one for the module, one for each submodule.
  package static let files: [(name: String, text: String)] = [
    ("flow.d.lua", String(decoding: PackageResources.flow_d_lua, as: UTF8.self)),
    ("flow.csv.d.lua", String(decoding: PackageResources.flow_csv_d_lua, as: UTF8.self)),
    ("flow.http.d.lua", String(decoding: PackageResources.flow_http_d_lua, as: UTF8.self)),
    ("flow.json.d.lua", String(decoding: PackageResources.flow_json_d_lua, as: UTF8.self)),
    ("flow.fs.d.lua", String(decoding: PackageResources.flow_fs_d_lua, as: UTF8.self)),
    ("flow.testing.d.lua", String(decoding: PackageResources.flow_testing_d_lua, as: UTF8.self)),
  ]
}
