package import FlowEngine

/// One execution of one op in a kept run.
package struct OpRecord: Sendable {
  /// How far the op came.
  package enum State: Int64, Sendable {
    case started = 0
    case finished = 1
    case failed = 2
    /// It had finished and was undone: it counts as not finished.
    case undone = 3
    /// It was stopped before its end.
    case stopped = 4
  }

  /// The number of the record in its store; 0 for a new one. Records of a run that were written later have
  /// larger numbers.
  package var id: Int64
  /// The number, within the run, of the record of the op that has executed it; 0 for one that no op has executed. nil:
  /// the version that wrote the record didn't say so.
  package var outer: Int64?
  /// The names of everything that encloses the op, and its own: `publish/UploadOp #7`.
  package var path: ByteString
  package var op: ByteString
  package var label: ByteString?
  /// The digest of the op's code.
  package var code: Digest
  /// The declared inputs, and the item.
  package var inputs: [KeptInput]
  /// The keys that the op read without a declaration.
  package var reads: [KeptInput]
  package var state: State
  /// The number of the attempt, from 1.
  package var attempt: Int
  /// Seconds since 1970.
  package var began: Double
  /// Seconds since 1970; 0 for an op that hasn't ended.
  package var ended: Double
  /// The op's `ctx.key`.
  package var key: ByteString
  package var writes: [KeptWrite]
  /// Whether the op must not be executed twice.
  package var isOnce: Bool
  /// The message of an op that has failed or was stopped.
  package var error: ByteString?
  /// Where the op's code is: `ship.lua:31`.
  package var place: ByteString?
  /// The key by which other runs find the record; nil when its result is for its own run alone.
  package var cacheKey: Digest?
  /// Why it was executed again; nil the first time.
  package var why: ByteString?
  /// The last lines of its log.
  package var lines: [ByteString]

  package init(
    id: Int64 = 0, outer: Int64? = 0, path: ByteString, op: ByteString, label: ByteString? = nil,
    code: Digest,
    inputs: [KeptInput] = [], reads: [KeptInput] = [], state: State, attempt: Int = 1,
    began: Double, ended: Double = 0, key: ByteString, writes: [KeptWrite] = [],
    isOnce: Bool = false, error: ByteString? = nil, place: ByteString? = nil,
    cacheKey: Digest? = nil, why: ByteString? = nil, lines: [ByteString] = []
  ) {
    self.id = id
    self.outer = outer
    self.path = path
    self.op = op
    self.label = label
    self.code = code
    self.inputs = inputs
    self.reads = reads
    self.state = state
    self.attempt = attempt
    self.began = began
    self.ended = ended
    self.key = key
    self.writes = writes
    self.isOnce = isOnce
    self.error = error
    self.place = place
    self.cacheKey = cacheKey
    self.why = why
    self.lines = lines
  }
}

extension OpRecord {
  /// The name of the op as messages have it, an item's with its number: the end of the path without the label.
  var shownName: ByteString {
    var bytes = path.bytes[...]
    if let label, path.hasSuffix(" \(label)" as ByteString) {
      bytes = bytes.dropLast(label.count + 1)
    }
    let slash = bytes.lastIndex(of: UInt8(ascii: "/")) ?? -1
    return ByteString(bytes[(slash + 1)...])
  }
}

/// A value that an op was given, by name and digest.
package struct KeptInput: Hashable, Sendable {
  package var name: ByteString
  package var digest: Digest

  package init(name: ByteString, digest: Digest) {
    self.name = name
    self.digest = digest
  }
}

/// A value that an op set, or removed.
package struct KeptWrite: Sendable {
  /// Where the value is.
  package enum Content: Sendable {
    /// The key was removed.
    case removed
    /// The encoded value.
    case bytes(ByteString)
    /// The encoded value is in a file of the store; see `JournalStore.load`.
    case file(KeptFile)
  }

  /// The name under which the result of a step is kept; hardly a key's.
  static let resultName: ByteString = "\u{0}result"

  package var name: ByteString
  package var content: Content
  /// Whether it is the result of a step, not a key of the data.
  package var isResult: Bool { name == Self.resultName }
  /// The files that the value names, if it is declared as files; the op is executed again when one of them isn't what
  /// it was.
  package var files: [NamedFile]?
  /// Whether the value is encrypted: a secret, or one with the text of a secret in it.
  package var isSecret: Bool

  package init(name: ByteString, content: Content, isSecret: Bool = false) {
    self.name = name
    self.content = content
    self.isSecret = isSecret
  }

  /// Makes a write of an encoded value; nil for a key that was removed.
  package init(name: ByteString, bytes: ByteString?, isSecret: Bool = false) {
    self.init(name: name, content: bytes.map { .bytes($0) } ?? .removed, isSecret: isSecret)
  }
}

/// A file that an op has made.
package struct NamedFile: Hashable, Sendable {
  /// The path, as the op gave it.
  package var path: ByteString
  /// The digest of the content.
  package var content: Digest
}

/// A file of a store that holds one large value.
package struct KeptFile: Hashable, Sendable {
  /// The path within the store's folder of values.
  package var name: ByteString
  /// The number of bytes.
  package var size: Int64
  /// The digest of the content.
  package var digest: Digest
}
