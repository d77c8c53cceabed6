internal import FlowEngine
internal import FlowRemote
internal import FlowScripting

extension [RemoteReport.News] {
  /// The files that the script gets before the news count.
  var files: [RemoteGivenFile] {
    flatMap { news in
      if case .files(_, _, _, let files) = news { files } else { [] as [RemoteGivenFile] }
    }
  }
}

/// Gets the files of a job that has ended from the server. Confined to the thread of the host's loop.
final class RemoteDelivery {
  private let objects: ObjectStore
  private let loop: FlowEventLoop
  private let node: ByteString
  /// The temporary folder with those files that don't go below the folder of the process.
  private var folder: ByteString?
  private var count = 0

  init(_ objects: ObjectStore, _ loop: FlowEventLoop, from node: ByteString) {
    self.objects = objects
    self.loop = loop
    self.node = node
  }

  /// Gets all files; the result has values with the paths that they have here.
  func fetch(
    _ news: [RemoteReport.News], _ host: ScriptHost
  ) async throws(FlowError) -> [RemoteReport.News] {
    var fetched: [RemoteReport.News] = []
    for next in news {
      guard case .files(let key, let value, let batch, let files) = next else {
        fetched.append(next)
        continue
      }
      do {
        var paths: [ByteString: ByteString] = [:]
        for file in files { paths[file.path] = try await fetch(file) }
        var moved = WireBatch()
        let wired = try host.wire(host.value(value, in: batch).replacingPaths(paths), &moved)
        fetched.append(.event(.set(key, wired, moved), age: 0))
      } catch {
        let error = FlowError.from(error)
        throw error.with {
          $0.message = "can't get the file of <\(key)> from \(node): \(error.message)"
        }
      }
    }
    // The run of the op keeps the folder.
    return (folder.map { [.event(.folder($0), age: 0)] } ?? []) + fetched
  }

  /// The path for a file that an op has given: the same one if it is relative, below the folder of the process; else
  /// one in the temporary folder.
  private func place(for path: ByteString) throws(FlowError) -> ByteString {
    guard let name = path.validFileName else {
      throw FlowError(.error, "'\(path)' isn't a file's path")
    }
    if path.bytes.first != UInt8(ascii: "/"), RemoteSharedFolders.isPlain(path) { return path }
    count += 1
    if folder == nil {
      folder = try asFlowErrors { () throws(SystemError) in try Folders.makeTemporary() }
    }
    return "\(folder ?? "")/\(count)/\(name)"
  }

  /// Gets a file, and returns its path.
  private func fetch(_ file: RemoteGivenFile) async throws(FlowError) -> ByteString {
    let place = try place(for: file.path)
    try await loop.onHelperThread {
      if let folder = place.folderName { try Folders.make(folder) }
    }
    guard try await objects.getFile(file.object, place, digest: file.digest) else {
      throw FlowError(.error, "'\(file.path)' isn't on the server any more")
    }
    objects.remove(file.object)
    return place
  }
}

extension ByteString {
  /// The last part of a path; nil for one that can't name a file.
  var validFileName: ByteString? {
    let name = fileName
    guard !name.isEmpty, !name.equals("."), !name.equals(".."),
      !bytes.contains(0)
    else { return nil }
    return name
  }

  /// The path of the folder of a file; nil without one.
  var folderName: ByteString? {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")), slash > 0 else { return nil }
    return ByteString(bytes[..<slash])
  }
}
