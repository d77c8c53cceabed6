package import FlowEngine
package import FlowSystem

// The parts of records as bytes, in the form that stores of 1.0 have.

extension Digest: ByteCodable {
  package func write(to writer: inout ByteWriter) { withBytes { writer.add(raw: $0) } }
  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Digest {
    guard let digest = Digest(try reader.part(size)) else { throw MalformedBytes() }
    return digest
  }
}

/// The names of records mostly repeat.
extension KeptInput: ByteCodable {
  package func write(to writer: inout ByteWriter) {
    writer.add(name)
    writer.add(digest)
  }
  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> KeptInput {
    KeptInput(name: try reader.name(), digest: try reader.read())
  }
}

/// A number says where the value is and what else there is, before all of that.
extension KeptWrite: ByteCodable {
  private static let removed = 0
  private static let inline = 1
  private static let file = 2
  private static let kinds = 3
  private static let secret = 4
  private static let named = 8

  package func write(to writer: inout ByteWriter) {
    writer.add(name)
    let flags = (isSecret ? Self.secret : 0) | (files != nil ? Self.named : 0)
    switch content {
    case .removed: writer.add(count: Self.removed | flags)
    case .bytes(let value):
      writer.add(count: Self.inline | flags)
      writer.add(value)
    case .file(let file):
      writer.add(count: Self.file | flags)
      writer.add(file)
    }
    if let files { writer.add(files) }
  }

  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> KeptWrite {
    let name = try reader.name()
    let flags = try reader.integer()
    let content: Content
    switch flags & kinds {
    case removed: content = .removed
    case inline: content = .bytes(try reader.text())
    case file: content = .file(try reader.read())
    default: throw MalformedBytes()
    }
    var write = KeptWrite(name: name, content: content, isSecret: flags & secret != 0)
    if flags & named != 0 { write.files = try reader.read([NamedFile].self) }
    return write
  }
}

extension NamedFile: ByteRecord {
  package static let byteForm = ByteForm(
    { NamedFile(path: $0, content: $1) }, { (file: NamedFile) in (file.path, file.content) })
}

extension KeptFile: ByteRecord {
  package static let byteForm = ByteForm(
    { KeptFile(name: $0, size: Int64($1 as Int), digest: $2) },
    { (file: KeptFile) in (file.name, Int(file.size), file.digest) })
}

extension KnownCode: ByteRecord {
  static let byteForm = ByteForm(
    { KnownCode(code: $0, details: $1) }, { (code: KnownCode) in (code.code, code.details) })
}

extension KnownCode.Detail: ByteRecord {
  static let byteForm = ByteForm(
    { KnownCode.Detail(name: $0, content: $1) },
    { (detail: KnownCode.Detail) in (detail.name, detail.content) })
}

extension KnownCode.Detail.Content: ByteUnion {
  static let byteCases: [ByteCase<KnownCode.Detail.Content>] = [
    ByteCase(0, Self.shown) { if case .shown(let text) = $0 { text } else { nil } },
    ByteCase(1, Self.hidden) { if case .hidden(let digest) = $0 { digest } else { nil } },
  ]
}

extension ProcessIdentity: ByteRecord {
  package static let byteForm = ByteForm(
    { ProcessIdentity(pid: $0, host: $1, boot: $2, start: $3) },
    { (process: ProcessIdentity) in (process.pid, process.host, process.boot, process.start) })
}
