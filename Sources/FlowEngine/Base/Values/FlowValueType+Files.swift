// The type `file`: the path of a file whose content counts in kept runs.
extension FlowValueType {
  static func hasFiles(_ shape: Shape) -> Bool {
    switch shape {
    case .builtin(let builtin): builtin == .file
    case .list(let element): element.hasFiles
    case .union(let members): members.contains { $0.hasFiles }
    case .any, .named, .literal, .map, .record, .predicate: false
    }
  }

  /// The paths in a value that are files by this type, in their order.
  ///
  /// A path that may also be a plain string, as in `string|file`, is one if the file exists.
  package func files(in value: FlowValue) -> [ByteString] {
    guard hasFiles else { return [] }
    var paths: [ByteString] = []
    collectFiles(in: value.plain, &paths)
    return paths
  }

  private func collectFiles(in value: FlowValue, _ paths: inout [ByteString]) {
    switch shape {
    case .builtin(.file): if case .bytes(let path) = value { paths.append(path) }
    case .list(let element):
      guard element.hasFiles, case .opaque(let list) = value, let count = list.listCount() else {
        return
      }
      for index in 0..<count { element.collectFiles(in: list.element(at: index).plain, &paths) }
    case .union(let members):
      let matching = members.first { $0.hasFiles && $0.mismatch(value) == nil }
      matching?.collectFiles(in: value, &paths)
    case .any, .builtin, .named, .literal, .map, .record, .predicate: break
    }
  }

  /// Why a path isn't that of a file; nil when it is. Links are followed.
  static func fileProblem(_ path: ByteString) -> ByteString? {
    do throws(SystemError) {
      guard let status = try FileStatus.read(path, follows: true) else { return "no such file" }
      return status.kind == .file ? nil : "it is a \(status.kind.name)"
    } catch {
      return error.messageBytes
    }
  }

  /// The name of the type, with the first reason why a value isn't of it that is about a file.
  func nameWithReason(_ value: FlowValue) -> ByteString {
    fileReason(value, isElement: false).map { "\(nameBytes) (\($0))" } ?? nameBytes
  }

  private func fileReason(_ value: FlowValue, isElement: Bool) -> ByteString? {
    switch shape {
    case .builtin(.file):
      guard case .bytes(let path) = value, let problem = Self.fileProblem(path) else { return nil }
      return isElement ? "\(path.truncated(to: FlowValue.logLimit)): \(problem)" : problem
    case .list(let element):
      guard element.hasFiles, case .opaque(let list) = value, let count = list.listCount() else {
        return nil
      }
      for index in 0..<count {
        if let reason = element.fileReason(list.element(at: index), isElement: true) {
          return reason
        }
      }
      return nil
    case .union(let members):
      return members.lazy.compactMap { $0.fileReason(value, isElement: isElement) }.first
    case .any, .builtin, .named, .literal, .map, .record, .predicate: return nil
    }
  }
}
