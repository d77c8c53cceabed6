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
struct RemoteDelivery {
  let objects: ObjectStore
  let host: ScriptHost
  /// The node that has sent them.
  let node: ByteString
  /// The temporary folder with those files that don't go below the folder of the process, and how many it has.
  var folder: ByteString?
  var count = 0

  /// Gets all files; the result has values with the paths that they have here.
  mutating func fetch(
    _ news: [RemoteReport.News]
  ) async throws(FlowError) -> [RemoteReport.News] {
    var fetched: [RemoteReport.News] = []
    for next in news {
      guard case .files(let key, let value, let batch, let files) = next else {
        fetched.append(next)
        continue
      }
      try await naming("can't get the file of <\(key)> from \(node)") {
        var paths: [ByteString: ByteString] = [:]
        for file in files { paths[file.path] = try await fetch(file) }
        var moved = WireBatch()
        let wired = try host.wire(host.value(value, in: batch).replacingPaths(paths), &moved)
        fetched.append(.event(.set(key, wired, moved), age: 0))
      }
    }
    // The run of the op keeps the folder.
    return (folder.map { [.event(.folder($0), age: 0)] } ?? []) + fetched
  }

  /// The path for a file that an op has given: the same one if it is relative, below the folder of the process; else
  /// one in the temporary folder.
  private mutating func place(for path: ByteString) throws(FlowError) -> ByteString {
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
  private mutating func fetch(_ file: RemoteGivenFile) async throws(FlowError) -> ByteString {
    let place = try place(for: file.path)
    try await host.loop.onHelperThread {
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
