/// A possible origin of a value in the bucket, and the knowledge about its type.
struct ValueSource: Hashable {
  enum Content {
    /// Some value of this type.
    case declared(FlowValueType)
    /// Exactly this value, which is no secret: buckets hold the plain value of one.
    case value(FlowValue)
    /// An item of this list.
    case item(of: FlowValue)
  }

  enum Provider: Hashable {
    case op(ByteString)
    /// The group of an op: its outputs, and its failures.
    case group(ByteString)
    /// A member of the same parallel step, which may set the value too late.
    case sibling(ByteString)
    /// The needs of a flow, which were checked before.
    case needs(ByteString)
    /// The initial data of a flow.
    case data(ByteString, ObjectIdentifier)
    /// The data that were passed to the check.
    case given
  }

  let content: Content
  let provider: Provider
  /// For an item of a list: the list's key; `provider` is then the list's.
  var list: ByteString?

  init(_ content: Content, _ provider: Provider, itemOf list: ByteString? = nil) {
    self.content = content
    self.provider = provider
    self.list = list
  }

  init(_ type: FlowValueType, _ provider: Provider) {
    self.init(.declared(type), provider)
  }

  /// The type's name, which distinguishes types well enough: those with functions are all unknown.
  /// Its provider and its key identify a value.
  private var typeName: ByteString? {
    if case .declared(let type) = content { type.name } else { nil }
  }

  static func == (left: ValueSource, right: ValueSource) -> Bool {
    left.provider == right.provider && left.list == right.list && left.typeName == right.typeName
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(provider)
    hasher.combine(list)
    hasher.combine(typeName)
  }

  /// Whether the value may be of a type; only `false` is certain.
  func mayBe(_ type: FlowValueType) -> Bool {
    switch content {
    case .declared(let own): own.overlaps(type)
    case .value(let value): type.mayHold(value)
    case .item: firstItem(notOf: type) == nil
    }
  }

  /// Whether the value is a function, for all that is known: an iterator, as the input of a group.
  var isFunction: Bool {
    switch content {
    case .declared(let type): type.name == "function"
    case .value(.opaque(let value)): value.matches(typeName: "function")
    case .value, .item: false
    }
  }

  /// The 0-based index of the first item that can't be of a type; each item is executed.
  func firstItem(notOf type: FlowValueType) -> Int? {
    guard case .item(of: .opaque(let list)) = content, let count = list.listCount() else {
      return nil
    }
    return (0..<count).first { !type.mayHold(list.element(at: $0).plain) }
  }

  /// The possible items of this list.
  func items(of key: ByteString) -> ValueSource {
    switch content {
    case .declared(let type):
      ValueSource(.declared(type.element ?? .any), provider, itemOf: key)
    case .value(let value): ValueSource(.item(of: value), provider, itemOf: key)
    case .item: ValueSource(.declared(.any), provider, itemOf: key)
    }
  }
}

/// The knowledge about the bucket at a place of a flow: a value for each key that may be present.
struct KnownData: Equatable {
  struct Fact: Equatable {
    /// Whether the key is present on every path.
    var isCertain: Bool
    /// The possible origins of the value, without repetition.
    var sources: ContiguousArray<ValueSource>

    mutating func add(_ source: ValueSource) {
      if !sources.contains(source) { sources.append(source) }
    }
  }

  var facts: [ByteString: Fact] = [:]
  /// The first earlier op that declares no `gives`: it may have set anything.
  var undeclared: ByteString?

  subscript(key: ByteString) -> Fact? { facts[key] }

  /// Records that the key has a value from now on, on every path.
  mutating func set(_ key: ByteString, _ source: ValueSource) {
    facts[key] = Fact(isCertain: true, sources: [source])
  }

  /// Records that the key may also have a value from here.
  mutating func maySet(_ key: ByteString, _ source: ValueSource) {
    facts[key, default: Fact(isCertain: false, sources: [])].add(source)
  }

  /// Combines two alternatives: a key that isn't certain in both is only possible.
  mutating func join(_ other: KnownData) {
    undeclared = undeclared ?? other.undeclared
    for (key, fact) in facts where fact.isCertain && other.facts[key]?.isCertain != true {
      facts[key]?.isCertain = false
    }
    for (key, fact) in other.facts {
      guard let own = facts[key] else {
        facts[key] = Fact(isCertain: false, sources: fact.sources)
        continue
      }
      if own.sources == fact.sources { continue }
      for source in fact.sources { facts[key]?.add(source) }
    }
  }

  /// Applies a part of the flow that started with `base`, has written `writes`, and ended with
  /// `end`.
  mutating func merge(_ end: KnownData, _ writes: some Sequence<DataWrite>, base: KnownData) {
    undeclared = undeclared ?? end.undeclared
    var written: [ByteString: Set<ValueSource>] = [:]
    for write in writes { written[write.key, default: []].insert(write.source) }
    for (key, sources) in written {
      guard let ended = end.facts[key] else { continue }
      var fact = facts[key] ?? Fact(isCertain: false, sources: [])
      if ended.isCertain, ended.sources.allSatisfy({ sources.contains($0) }) {
        // The earlier value is overwritten.
        let old = base.facts[key]?.sources ?? []
        fact.sources.removeAll { old.contains($0) }
        fact.isCertain = true
      }
      for source in ended.sources where sources.contains(source) { fact.add(source) }
      facts[key] = fact
    }
  }
}

/// A value that a step sets.
struct DataWrite: Hashable {
  let key: ByteString
  let source: ValueSource
}

/// The keys that an op or flow may set, according to its declarations.
enum PossibleWrites {
  static func of(_ op: Op) -> [DataWrite] {
    var result: [DataWrite] = []
    var seen: Set<ObjectIdentifier> = []
    var open: ContiguousArray<Op> = [op]
    while let next = open.popLast() {
      guard seen.insert(ObjectIdentifier(next)).inserted else { continue }
      for declared in next.declarations.gives {
        let source = ValueSource(declared.type.present, .op(next.name))
        result.append(DataWrite(key: declared.name, source: source))
      }
      guard let flow = next as? Flow else { continue }
      for (name, value) in flow.blueprint.data {
        let source = ValueSource(.value(value.plain), .data(flow.name, ObjectIdentifier(flow)))
        result.append(DataWrite(key: name, source: source))
      }
      for step in flow.blueprint.steps { add(step, &result, &open) }
      for step in flow.blueprint.finally { add(step, &result, &open) }
    }
    return result
  }

  private static func add(
    _ step: Step, _ result: inout [DataWrite], _ open: inout ContiguousArray<Op>
  ) {
    switch step.kind {
    case .op, .flow: open.append(step.op)
    case .parallel, .cases: break
    case .group(let dispatcher):
      // Members only set their own item's data.
      let collected = dispatcher.collect ?? step.op.primaryOutput
      let type = step.op.gives.first { $0.name == collected }?.type ?? .any
      let provider = ValueSource.Provider.group(step.op.name)
      if let output = dispatcher.output {
        let type = dispatcher.itemType(type.present)
        result.append(DataWrite(key: output, source: ValueSource(type.list, provider)))
      }
      if let failures = dispatcher.failures {
        let source = ValueSource(FlowValueType.table.list, provider)
        result.append(DataWrite(key: failures, source: source))
      }
    }
  }
}

extension GroupDispatcher {
  /// The element type of the output list, for items whose outputs are of `type`.
  func itemType(_ type: FlowValueType) -> FlowValueType {
    guard let absent, !type.mayHold(absent.plain) else { return type }
    return .any
  }
}
