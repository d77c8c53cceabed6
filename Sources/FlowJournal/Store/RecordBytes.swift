internal import FlowEngine

/// Writes lists of a record as bytes.
struct RecordWriter {
  private var writer = ByteWriter()
  var bytes: [UInt8] { writer.bytes }

  mutating func add(_ number: Int) { writer.add(count: number) }

  mutating func add(fixed number: Int64) { writer.add(fixed: number) }

  mutating func add(_ text: ByteString) { writer.add(text) }

  mutating func add(_ digest: Digest) {
    digest.withBytes { writer.add(raw: $0) }
  }

  mutating func add(_ inputs: [KeptInput]) {
    add(inputs.count)
    for input in inputs {
      add(input.name)
      add(input.digest)
    }
  }

  mutating func add(_ writes: [KeptWrite]) {
    add(writes.count)
    for write in writes {
      add(write.name)
      let flags =
        (write.isSecret ? RecordReader.secret : 0) | (write.files != nil ? RecordReader.named : 0)
      switch write.content {
      case .removed:
        add(RecordReader.removed | flags)
      case .bytes(let value):
        add(RecordReader.inline | flags)
        add(value)
      case .file(let file):
        add(RecordReader.file | flags)
        add(file.name)
        add(Int(file.size))
        add(file.digest)
      }
      guard let files = write.files else { continue }
      add(files.count)
      for file in files {
        add(file.path)
        add(file.content)
      }
    }
  }

  mutating func add(_ texts: [ByteString]) {
    add(texts.count)
    for text in texts { add(text) }
  }
}

/// Reads the bytes of a `RecordWriter`; whatever the bytes are, it returns nil rather than trapping.
struct RecordReader {
  private var reader: ByteReader
  private let expected: ByteString?

  fileprivate static let removed = 0
  fileprivate static let inline = 1
  fileprivate static let file = 2
  fileprivate static let kinds = 3
  fileprivate static let secret = 4
  fileprivate static let named = 8

  /// The bytes have to stay until the last read. A name that is equal to an expected one shares its memory.
  init(_ bytes: UnsafeRawBufferPointer, expecting name: ByteString? = nil) {
    reader = ByteReader(bytes)
    expected = name
  }

  /// Whether everything has been read.
  var isAtEnd: Bool { reader.isAtEnd }

  mutating func number() -> Int? { try? reader.integer() }

  mutating func fixed() -> Int64? { try? reader.fixed() }

  private mutating func part(_ count: Int) -> UnsafeRawBufferPointer? { try? reader.part(count) }

  mutating func text() -> ByteString? {
    guard let count = number(), let part = part(count) else { return nil }
    return ByteString(part)
  }

  private mutating func name() -> ByteString? {
    guard let count = number(), let part = part(count) else { return nil }
    if let expected, part.elementsEqual(expected.bytes) { return expected }
    return ByteString(part)
  }

  mutating func digest() -> Digest? { part(Digest.size).flatMap { Digest($0) } }

  /// A list; nil when an element is missing. Each element has at least one byte.
  mutating func list<Element>(
    _ element: (inout RecordReader) -> Element?
  ) -> [Element]? {
    guard let count = number(), count <= reader.rest else { return nil }
    var list: [Element] = []
    list.reserveCapacity(count)
    for _ in 0..<count {
      guard let next = element(&self) else { return nil }
      list.append(next)
    }
    return list
  }

  mutating func texts() -> [ByteString]? { list { $0.text() } }

  mutating func inputs() -> [KeptInput]? {
    list { reader in
      guard let name = reader.name(), let digest = reader.digest() else { return nil }
      return KeptInput(name: name, digest: digest)
    }
  }

  mutating func writes() -> [KeptWrite]? {
    list { reader in
      guard let name = reader.name(), let flags = reader.number(),
        let content = reader.content(flags & Self.kinds)
      else { return nil }
      var write = KeptWrite(name: name, content: content, isSecret: flags & Self.secret != 0)
      if flags & Self.named != 0 {
        guard let files = reader.namedFiles() else { return nil }
        write.files = files
      }
      return write
    }
  }

  private mutating func namedFiles() -> [NamedFile]? {
    list { reader in
      guard let path = reader.text(), let content = reader.digest() else { return nil }
      return NamedFile(path: path, content: content)
    }
  }

  private mutating func content(_ kind: Int) -> KeptWrite.Content? {
    switch kind {
    case Self.removed: return .removed
    case Self.inline: return text().map { .bytes($0) }
    case Self.file:
      guard let name = text(), let size = number(), let digest = digest() else { return nil }
      return .file(KeptFile(name: name, size: Int64(size), digest: digest))
    default: return nil
    }
  }
}
