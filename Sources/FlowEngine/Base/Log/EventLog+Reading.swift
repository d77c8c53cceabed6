// Reading the records in order, and the names of what they are about.
extension EventLog {
  /// The position of a reader.
  struct Place {
    var chunk = 0
    var offset = 0
    var index = 0
    /// How many records had been removed when it was last used.
    fileprivate var removed: Int?
    /// Coming finishes, the next one last: each is due when all records before `index` have been
    /// read. Ops that don't wait end in the reverse order of their starts.
    fileprivate var finishes: ContiguousArray<(index: Int, record: LogRecord)> = []
  }

  /// Returns the record at `place` and advances that; nil after the last one.
  func record(at place: inout Place) -> LogRecord? {
    if place.removed != removed { adjust(&place) }
    if let last = place.finishes.last, last.index == place.index {
      return place.finishes.removeLast().record
    }
    guard place.index < count else { return nil }
    if place.offset == chunks[place.chunk].count {
      place.chunk += 1
      place.offset = 0
    }
    let record = chunks[place.chunk][place.offset]
    place.offset += 1
    place.index += 1
    guard record.kind == .executed else { return record }
    place.finishes.append((place.index + Int(record.first), record.finish))
    return record.start
  }

  /// Moves a reader that has begun before records were removed; it may read some a second time.
  @inline(never)
  private func adjust(_ place: inout Place) {
    if let known = place.removed {
      let shift = removed - known
      var index = max(0, min(place.index - shift, count))
      let finishes = place.finishes
      place = Place()
      place.index = index
      for finish in finishes {
        place.finishes.append((max(index, finish.index - shift), finish.record))
      }
      while place.chunk < chunks.count - 1, index > chunks[place.chunk].count {
        index -= chunks[place.chunk].count
        place.chunk += 1
      }
      place.offset = index
    }
    place.removed = removed
  }

  /// Whether an execution has failed, or was stopped.
  var hasFailures: Bool {
    var left = count
    for chunk in chunks {
      let hasFailures = chunk.prefix(left).contains { record in
        switch record.kind {
        case .finish: record.firstPayload.tag != .none
        case .groupEmpty, .groupRefused: true
        default: false
        }
      }
      if hasFailures { return true }
      left -= min(left, chunk.count)
    }
    return false
  }

  /// The name of the op that a record is about, and its 1-based index in a group, else 0.
  func subject(of record: LogRecord) -> (name: ByteString, index: Int) {
    subject(scope: scopes[Int(record.scope)], position: record.position)
  }

  func subject(scope: LogScope, position: UInt32) -> (name: ByteString, index: Int) {
    if position == LogRecord.ownPosition { return (scope.name, 0) }
    if scope.kind == .group || scope.kind == .inner { return (scope.name, Int(position)) }
    return (scope.parts?.nameOfPart(at: position) ?? scope.name, 0)
  }

  /// The names of all executions that enclose something in this run, and its own, the outermost
  /// first. A group has none: its members have the name of the op, and an index.
  func names(scope: UInt32, position: UInt32) -> [ByteString] {
    var names: [ByteString] = []
    var number = scope
    var position = position
    while true {
      var scope = scopes[Int(number)]
      if scope.kind == .top, position == LogRecord.ownPosition { break }
      names.append(displayName(scope: number, position: position))
      while scope.kind == .group { scope = scopes[Int(scope.parent)] }
      if scope.kind == .top { break }
      position = scope.position
      number = scope.parent
    }
    names.append(title)
    return names.reversed()
  }

  /// The name that lines show for the op of a record: `UploadOp`, or in a group `UploadOp #3`, and
  /// after that the label if the item has one.
  func displayName(of record: LogRecord) -> ByteString {
    displayName(scope: record.scope, position: record.position)
  }

  func displayName(scope: UInt32, position: UInt32) -> ByteString {
    let (name, index) = subject(scope: scopes[Int(scope)], position: position)
    return displayName(name, index: index, scope: scope, position: position)
  }

  func displayName(
    _ name: ByteString, index: Int, scope: UInt32, position: UInt32
  ) -> ByteString {
    if index == 0 { return name }
    guard let label = label(scope: scope, position: position) else { return "\(name) #\(index)" }
    return "\(name) #\(index) \(label)"
  }
}

/// The place of an item in a log.
struct LabelPlace: Hashable {
  let scope: UInt32
  let position: UInt32
}

// The labels of a group's items: texts that tell the items apart in lines and paths. A log without
// labels only has an empty table.
extension EventLog {
  /// The most characters of a label.
  static let labelLimit = 40

  /// Sets the label of an item, without secrets, on one line, and cut at `labelLimit` characters.
  func setLabel(_ text: ByteString, scope: UInt32, position: UInt32) {
    let cut =
      secrets?.shownText(limit: Self.labelLimit) { text.truncated(to: $0) }
      ?? text.truncated(to: Self.labelLimit)
    let shown = cut.onOneLine.truncated(to: Self.labelLimit)
    if !shown.isEmpty { labels[LabelPlace(scope: scope, position: position)] = shown }
  }

  /// The label of an item, and of the ops that its op executes in its place; nil when it has none.
  func label(scope: UInt32, position: UInt32) -> ByteString? {
    if labels.isEmpty { return nil }
    var (scope, position) = (scope, position)
    while scopes[Int(scope)].kind == .inner {
      let inner = scopes[Int(scope)]
      (scope, position) = (inner.parent, inner.position)
    }
    return labels[LabelPlace(scope: scope, position: position)]
  }
}

extension ByteString {
  /// The text with Lua's escapes instead of characters that would end or reorder a line:
  /// control characters, separators of lines, marks of direction, and bytes that aren't UTF-8.
  package var onOneLine: ByteString { escaped(keepsBytes: false) }

  /// The text of a line of a log: with the escapes of `onOneLine`, but for bytes that aren't UTF-8, which it keeps.
  var inLogLine: ByteString { escaped(keepsBytes: true) }

  private func escaped(keepsBytes: Bool) -> ByteString {
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return self }
    var result: [UInt8] = []
    var rest = bytes[...]
    while let first = rest.first {
      guard let (scalar, length) = Self.firstScalar(of: rest) else {
        result += keepsBytes ? [first] : Self.escape(UInt32(first), isByte: true)
        rest = rest.dropFirst()
        continue
      }
      if Self.isShown(scalar) {
        result += rest.prefix(length)
      } else {
        result += Self.escape(scalar.value, isByte: scalar.isASCII)
      }
      rest = rest.dropFirst(length)
    }
    return ByteString(result)
  }

  /// The text for a terminal, of which it changes nothing: with the escapes of `onOneLine`, but for line ends and
  /// tabs.
  package var forTerminal: ByteString {
    func stays(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t") }
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || stays($0) }) { return self }
    var result: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = rest.prefix { !stays($0) }
      result += ByteString(part).onOneLine.bytes
      rest = rest.dropFirst(part.count)
      result += rest.prefix(1)
      rest = rest.dropFirst()
    }
    return ByteString(result)
  }

  private static func firstScalar(
    of bytes: ArraySlice<UInt8>
  ) -> (scalar: Unicode.Scalar, length: Int)? {
    var decoder = Unicode.UTF8.ForwardParser()
    var iterator = bytes.prefix(4).makeIterator()
    guard case .valid(let encoded) = decoder.parseScalar(from: &iterator) else { return nil }
    return (Unicode.UTF8.decode(encoded), encoded.count)
  }

  private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    // The joiners of emoji are formats too, but only these change the direction.
    case .format: !scalar.properties.isBidiControl
    case .control, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  private static func escape(_ value: UInt32, isByte: Bool) -> [UInt8] {
    switch value {
    case 9: return "\\t".bytes
    case 10: return "\\n".bytes
    case 13: return "\\r".bytes
    default:
      let digits = String(value, radix: 16, uppercase: true)
      if !isByte { return "\\u{\(digits)}".bytes }
      return "\\x\(digits.utf8.count < 2 ? "0" : "")\(digits)".bytes
    }
  }
}

// Secrets are replaced when a text is put into the log, so that neither views nor sinks see them.
extension EventLog {
  /// From now on, as long as the log exists, no output of its loop contains the text of `value`, a secret or a plain
  /// value, or those in it: of strings and numbers of at least `SecretTexts.shortest` bytes.
  package func hide(_ value: FlowValue) {
    let holds = secretHolds ?? SecretHolds(keys.secrets, countedIn: account)
    secretHolds = holds
    holds.add(value)
  }

  /// Hides the secrets of this log and of one of a run within it as long as one of both exists.
  func shareSecrets(with inner: EventLog) {
    if let others = inner.secretHolds, others !== secretHolds {
      if let secretHolds { secretHolds.add(others) } else { secretHolds = others }
    }
    inner.secretHolds = secretHolds
  }

  /// A value under `key` of `bucket` as the log may have it: as a secret when the key is secret. A
  /// value under such a key is hidden everywhere else too.
  func shown(_ value: FlowValue, of key: DataKey, in bucket: DataBucket) -> FlowValue {
    guard bucket.isSecret(key) else { return value }
    hide(value)
    return .secret(value)
  }

  /// A name without secrets.
  func shown(_ name: ByteString) -> ByteString {
    secrets?.redacted(name) ?? name
  }

  /// The error without secrets in its texts; the value that represents it loses them as well.
  func redacted(_ error: FlowError) -> FlowError {
    guard let secrets else { return error }
    if case .opaque(let value)? = error.payload?.get(), let value = value as? any ErrorValue {
      value.replaceTexts { secrets.redacted($0) }
    }
    return error.replacingTexts { secrets.redacted($0) }
  }
}

/// An opaque value that represents an error on its loop, and shows its texts.
package protocol ErrorValue: OpaqueValue {
  /// Replaces each of the error's own texts with the result of `replacement`.
  func replaceTexts(_ replacement: (ByteString) -> ByteString)
}
