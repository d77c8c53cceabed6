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
  private let loop: EventLoop
  private let machine: ByteString
  /// The temporary folder with those files that don't go below the folder of the process.
  private var folder: ByteString?
  private var count = 0
  private typealias News = RemoteReport.News

  init(_ objects: ObjectStore, _ loop: EventLoop, from machine: ByteString) {
    self.objects = objects
    self.loop = loop
    self.machine = machine
  }

  /// Gets all files; the result has values with the paths that they have here.
  func fetch(
    _ news: [RemoteReport.News], _ host: ScriptHost,
    then: @escaping (Result<[RemoteReport.News], FlowError>) -> Void
  ) {
    fetch(news[...], [], host, then)
  }

  private func fetch(
    _ rest: ArraySlice<News>, _ done: [News], _ host: ScriptHost,
    _ then: @escaping (Result<[News], FlowError>) -> Void
  ) {
    guard let next = rest.first else {
      // The run of the op keeps the folder.
      let kept = folder.map { [News.event(.folder($0), age: 0)] } ?? []
      return then(.success(kept + done))
    }
    guard case .files(let key, let value, let batch, let files) = next else {
      return fetch(rest.dropFirst(), done + [next], host, then)
    }
    fetch(files[...], [:]) { [self] result in
      do throws(FlowError) {
        let paths = try result.get()
        var moved = WireBatch()
        let wired: WireValue
        do {
          wired = try host.wire(host.value(value, in: batch).replacingPaths(paths), &moved)
        } catch {
          throw .from(error)
        }
        fetch(
          rest.dropFirst(), done + [.event(.set(key, wired, moved), age: 0)], host, then)
      } catch {
        let text: ByteString =
          "can't get the file of <\(key)> from \(machine): \(error.message)"
        then(.failure(error.with { $0.message = text }))
      }
    }
  }

  /// The path for a file that an op has given: the same one if it is relative, below the folder of the process; else
  /// one in the temporary folder.
  private func place(for path: ByteString) throws(FlowError) -> ByteString {
    guard let name = path.validFileName else {
      throw FlowError(.error, "'\(path)' isn't a file's path")
    }
    if path.bytes.first != UInt8(ascii: "/"), RemoteSharedFolders.isPlain(path) { return path }
    count += 1
    do throws(SystemError) {
      let folder: ByteString
      if let made = self.folder { folder = made } else { folder = try Folders.makeTemporary() }
      self.folder = folder
      return "\(folder)/\(count)/\(name)"
    } catch {
      throw .from(error)
    }
  }

  private func fetch(
    _ rest: ArraySlice<RemoteGivenFile>, _ done: [ByteString: ByteString],
    _ then: @escaping (Result<[ByteString: ByteString], FlowError>) -> Void
  ) {
    guard let file = rest.first else { return then(.success(done)) }
    let place: ByteString
    do throws(FlowError) { place = try self.place(for: file.path) } catch {
      return then(.failure(error))
    }
    loop.offload {
      Result { () throws(FlowError) in
        do throws(SystemError) {
          if let folder = place.folderName { try Folders.make(folder) }
        } catch {
          throw .from(error)
        }
      }
    } then: { [self] result in
      if case .failure(let error) = result { return then(.failure(error)) }
      objects.getFile(file.object, place, digest: file.digest) { [self] result in
        switch result {
        case .failure(let error): then(.failure(error))
        case .success(false):
          then(.failure(FlowError(.error, "'\(file.path)' isn't on the server any more")))
        case .success(true):
          objects.delete(file.object) { _ in }
          var all = done
          all[file.path] = place
          fetch(rest.dropFirst(), all, then)
        }
      }
    }
  }
}

extension ByteString {
  /// The last part of a path; nil for one that can't be that of a file.
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
