// The checks at a step, and the sentences of their findings.
extension FlowChecker {
  /// The part of a flow that needs something.
  enum Subject {
    case op(ByteString)
    case flow(ByteString)
    /// The flow that is checked.
    case root(ByteString)
    case group(of: ByteString)

    static func of(_ op: Op) -> Subject { op.isFlow ? .flow(op.name) : .op(op.name) }

    var name: ByteString {
      switch self {
      case .op(let name), .flow(let name), .root(let name), .group(let name): name
      }
    }

    var text: ByteString {
      switch self {
      case .op(let name): "[\(name)]"
      case .flow(let name), .root(let name): "flow '\(name)'"
      case .group(let name): "the group of [\(name)]"
      }
    }
  }

  /// Checks that a needed key is present, and of its type.
  func checkNeed(_ subject: Subject, _ key: ByteString, _ type: FlowValueType) {
    guard let fact = data[key] else {
      if type.isOptional { return }
      var reason: ByteString = "nothing before provides it"
      if case .root = subject { reason = "neither the data given nor its own has it" }
      reportNeed(subject, "\(subject.text) needs <\(key)> (\(type.name)), but \(reason)")
      return
    }
    if !fact.isCertain, !type.isOptional {
      let why = Self.whyPossible(fact.sources)
      reportNeed(
        subject, "\(subject.text) needs <\(key)> (\(type.name)), but it may be missing: \(why)"
      )
    }
    for source in fact.sources where !source.mayBe(type) {
      let what = source.contradiction(of: type)
      reportNeed(subject, "\(subject.text) needs <\(key)> as \(type.name), but \(what)")
    }
  }

  /// Checks whether a list that a group needs is known to be empty.
  func checkEmpty(_ subject: Subject, _ key: ByteString, _ fact: KnownData.Fact?) {
    for source in fact?.sources ?? [] {
      guard case .value(.opaque(let list)) = source.content, list.listCount() == 0 else {
        continue
      }
      reportNeed(
        subject,
        "\(subject.text) needs an item in <\(key)>, but \(source.provider.text) holds an empty list"
      )
    }
  }

  /// Checks whether an op can be retried with the data that it has set before it failed.
  func checkNextAttempt(_ op: Op) {
    for need in op.needs {
      guard let given = op.gives.first(where: { $0.name == need.name })?.type,
        !given.overlaps(need.type)
      else { continue }
      reportNeed(
        .op(op.name),
        "[\(op.name)] needs <\(need.name)> as \(need.type.name), but is tried again and gives it as "
          + "\(given.present.name)")
    }
  }

  /// Checks whether a case can match.
  func checkCase(_ key: ByteString, _ value: ByteString, isFirst: Bool) {
    let text: ByteString = "the case \(key) = \(value) can't match"
    guard isFirst else {
      report(.warning, "Cases", "\(text): an earlier case is equal")
      return
    }
    if data.undeclared != nil { return }
    guard let fact = data[key] else {
      report(.warning, "Cases", "\(text): nothing before provides <\(key)>")
      return
    }
    guard let source = fact.sources.first,
      fact.sources.allSatisfy({ !$0.mayBe(.string) })
    else { return }
    let what = source.contradiction(of: .string)
    report(.warning, "Cases", "\(text): <\(key)> is never a string, as \(what)")
  }

  /// Reports an error, or a warning when an earlier op may have set the key.
  private func reportNeed(_ subject: Subject, _ message: ByteString) {
    guard let undeclared = data.undeclared else {
      report(.error, subject.name, message)
      return
    }
    report(
      .warning, subject.name,
      "\(message), unless [\(undeclared)], which declares no gives, sets it")
  }

  /// The reason why a key isn't present on every path.
  private static func whyPossible(_ sources: ContiguousArray<ValueSource>) -> ByteString {
    var texts: [ByteString] = []
    var hasSiblingsOnly = true
    for source in sources {
      let text = source.provider.text
      if !texts.contains(text) { texts.append(text) }
      if case .sibling = source.provider { continue }
      hasSiblingsOnly = false
    }
    if texts.count == 1, case .needs? = sources.first?.provider {
      return "\(texts[0]) declares it as optional"
    }
    let verb = texts.count == 1 ? "gives" : "give"
    if hasSiblingsOnly { return "\(list(texts)) \(verb) it at the same time" }
    return "only \(list(texts)) \(verb) it, and not on every path"
  }

  /// `a`, `a and b`, `a, b and c`, `a, b and others`.
  private static func list(_ texts: [ByteString]) -> ByteString {
    var shown = Array(texts.prefix(3))
    if texts.count > 3 { shown[2] = "others" }
    guard let last = shown.popLast() else { return "" }
    guard let first = shown.first else { return last }
    let rest = shown.dropFirst().reduce(first) { "\($0), \($1)" }
    return "\(rest) and \(last)"
  }
}

extension ValueSource.Provider {
  /// The name in sentences.
  fileprivate var text: ByteString {
    switch self {
    case .op(let name), .sibling(let name): "[\(name)]"
    case .group(let name): "the group of [\(name)]"
    case .needs(let name): "flow '\(name)'"
    case .data(let name, _): "the data of flow '\(name)'"
    case .given: "the data given"
    }
  }
}

extension ValueSource {
  /// The origin and type of the value, as a sentence without its subject: `[LoadOp] gives it as
  /// integer`. The value itself isn't shown: it may be a secret.
  fileprivate func contradiction(of type: FlowValueType) -> ByteString {
    switch content {
    case .value(let value):
      return "\(provider.text) holds it as \(value.typeName)"
    case .item(of: let value):
      guard case .opaque(let items) = value, let index = firstItem(notOf: type) else { return "" }
      let name = items.element(at: index).plain.typeName
      return "item \(index + 1) of <\(list ?? "")> is \(name), which \(provider.text) holds"
    case .declared(let own):
      var verb: ByteString = "gives"
      if case .needs = provider { verb = "needs" }
      if let list {
        return "\(provider.text) \(verb) <\(list)> with items of type \(own.name)"
      }
      var time: ByteString = ""
      if case .sibling = provider { time = " at the same time" }
      return "\(provider.text) \(verb) it as \(own.name)\(time)"
    }
  }
}
