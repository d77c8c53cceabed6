internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.fs`: functions for files that wait without blocking.
///
/// Everything that touches a disk happens on a helper thread: a disk may be slow, or be a network.
struct FileBindings {
  let host: ScriptHost

  /// Makes the module `flow.fs`.
  func makeModule() throws -> LuaReference {
    var functions: LuaFields<LuaFunction> = [:]
    for (name, function) in Self.fileFunctions {
      functions.list.append(
        (
          name,
          host.bind { host, call in
            try host.checkAllowed(.files, call, "fs.\(name)")
            if !Self.readingFunctions.contains(name) {
              try host.refuseWhileChecking(call, "fs.\(name)")
            }
            return try function(Self(host: host), call, Arguments(host, call, name))
          }
        ))
    }
    let module = try host.vm.makeTable()
    try host.vm.set(functions: functions, in: module)
    return module
  }

  private typealias FileFunction = (FileBindings, LuaCall, Arguments) throws -> LuaAnswer

  /// Those that a script may use while its flows are only checked. A watch isn't among them: it waits for changes.
  private static let readingFunctions: Set<String> = ["list", "stat", "exists", "read", "hash"]

  // Computed, because it is needed once per host.
  private static var fileFunctions: [(String, FileFunction)] {
    [
      ("list", { try $0.list($1, $2) }),
      ("stat", { try $0.stat($1, $2) }),
      (
        "exists",
        { files, call, arguments in
          let path = try arguments.path(1)
          return try files.host.offload(call) { _ throws(SystemError) in
            try FileStatus.exists(path)
          } answer: {
            $0.answer(.boolean($1))
          }
        }
      ),
      (
        "mkdir",
        { files, call, arguments in
          let path = try arguments.path(1)
          return try files.change(call) { _ throws(SystemError) in try Folders.make(path) }
        }
      ),
      (
        "remove",
        { files, call, arguments in
          let path = try arguments.path(1)
          let options = try arguments.fileOptions(2, known: ["recursive"])
          let recursive = try options.boolean("recursive") ?? false
          return try files.change(call) { cancellation throws(SystemError) in
            try FileRemoval.remove(path, recursive: recursive, cancellation)
          }
        }
      ),
      (
        "rename",
        { files, call, arguments in
          let (path, target) = (try arguments.path(1), try arguments.path(2))
          return try files.change(call) { _ throws(SystemError) in
            try Folders.rename(path, to: target)
          }
        }
      ),
      (
        "copy",
        { files, call, arguments in
          let (path, target) = (try arguments.path(1), try arguments.path(2))
          return try files.change(call) { cancellation throws(SystemError) in
            try Files.copy(path, to: target, cancellation)
          }
        }
      ),
      (
        "read",
        { files, call, arguments in
          let path = try arguments.path(1)
          let memory = files.host.loop.memory?.beginCollecting()
          return try files.host.offload(call, in: memory) { cancellation throws(SystemError) in
            try Files.read(path, in: memory, cancellation)
          } answer: {
            $0.answer(.string($1))
          }
        }
      ),
      (
        "write",
        { files, call, arguments in
          let (path, content) = (try arguments.path(1), try arguments.string(2))
          let options = try arguments.fileOptions(3, known: ["append"])
          let appends = try options.boolean("append") ?? false
          return try files.change(call) { cancellation throws(SystemError) in
            if appends {
              try Files.append(content, to: path, cancellation)
            } else {
              try Files.write(content, to: path, cancellation)
            }
          }
        }
      ),
      ("hash", { try $0.hash($1, $2) }),
      ("watch", { try WatchBindings(host: $0.host).watch($1, $2) }),
      ("lock", { try FileLocks.lock($0.host, $1, $2) }),
      ("temp_dir", { files, call, _ in try files.makeTemporaryFolder(call) }),
    ]
  }

  /// Performs work without a result on a helper thread.
  private func change(
    _ call: LuaCall, _ work: @escaping @Sendable (Cancellation) throws(SystemError) -> Void
  ) throws -> LuaAnswer {
    try host.offload(call, work) { call, _ in call.answer() }
  }

  // MARK: Listing

  /// `list(folder, options)`.
  private func list(_ call: LuaCall, _ arguments: Arguments) throws -> LuaAnswer {
    var listing = DirectoryListing(try arguments.path(1))
    let options = try arguments.fileOptions(2, known: ["recursive", "hidden", "match", "type"])
    listing.isRecursive = try options.boolean("recursive") ?? false
    listing.includesHidden = try options.boolean("hidden") ?? false
    listing.kind = try options.choice(
      "type", of: FileKind.allCases.map { ($0.name.description, $0) })
    var filter: LuaReference?
    switch options.value("match") {
    case nil: break
    case .string(let pattern):
      do throws(Glob.Mistake) { listing.pattern = try Glob(pattern) } catch {
        throw arguments.wrong(2, "field 'match': \(error.message): '\(pattern)'")
      }
    case .reference(let function) where function.kind == .function: filter = function
    default: throw options.wrong("match", expected: "pattern or function")
    }
    let memory = host.loop.memory?.beginCollecting()
    return try host.offload(call, in: memory) { [listing] cancellation throws(SystemError) in
      let entries = try listing.read(cancellation)
      try memory?.add(entries.reduce(0) { $0 + $1.path.count + 64 })
      return entries
    } answer: { call, entries in
      let wanted = try filter.map { filter in
        try entries.filter { entry in
          let arguments: [LuaValue] = [.string(entry.path), .string(entry.kind.name)]
          switch try host.vm.call(filter, arguments).first {
          case nil, .nil, .boolean(false): return false
          default: return true
          }
        }
      }
      let paths = (wanted ?? entries).map { LuaValue.string($0.path) }
      return call.answer(.reference(try host.vm.makeTable(values: paths)))
    }
  }

  /// `stat(path, options)`.
  private func stat(_ call: LuaCall, _ arguments: Arguments) throws -> LuaAnswer {
    let path = try arguments.path(1)
    let options = try arguments.fileOptions(2, known: ["follow"])
    let follows = try options.boolean("follow") ?? false
    return try host.offload(call) { _ throws(SystemError) in
      try FileStatus.read(path, follows: follows)
    } answer: { call, status in
      guard let status else { return call.answer(.nil) }
      var fields: [(ByteString, LuaValue)] = [
        ("type", .string(status.kind.name)), ("size", .integer(status.size)),
        ("mtime", .number(status.modified)), ("mode", .integer(Int64(status.mode))),
      ]
      if let target = status.target { fields.append(("target", .string(target))) }
      return call.answer(.reference(try host.vm.makeTable(fields: fields)))
    }
  }

  // MARK: Digests

  /// How many bytes of a string are hashed without a helper thread, whose start would take longer.
  private static let quickHashLimit = 1 << 15

  /// `hash(path | { bytes = s }, algorithm)`.
  private func hash(_ call: LuaCall, _ arguments: Arguments) throws -> LuaAnswer {
    let algorithm = try hashAlgorithm(arguments)
    guard call.kind(1) == .table else {
      guard call.kind(1) == .string else {
        throw arguments.wrong(1, expected: "path or { bytes = string }")
      }
      let path = try arguments.path(1)
      return try host.offload(call) { cancellation throws(SystemError) in
        try algorithm.digest(ofFile: path, cancellation)
      } answer: {
        $0.answer(.string($1))
      }
    }
    let options = try arguments.options(1, known: ["bytes"])
    guard let bytes = try options.string("bytes") else {
      throw options.wrong("bytes", expected: "string")
    }
    if bytes.count <= Self.quickHashLimit {
      do throws(SystemError) {
        return call.answer(.string(try algorithm.digest(of: bytes, Cancellation())))
      } catch {
        throw host.raise(error, at: call.position)
      }
    }
    return try host.offload(call) { cancellation throws(SystemError) in
      try algorithm.digest(of: bytes, cancellation)
    } answer: {
      $0.answer(.string($1))
    }
  }

  private func hashAlgorithm(_ arguments: Arguments) throws -> FileHash {
    if arguments.isNil(2) { return .sha256 }
    let name = try arguments.string(2)
    if let algorithm = FileHash.allCases.first(where: { name == ByteString($0.rawValue) }) {
      return algorithm
    }
    let known = FileHash.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    throw arguments.wrong(2, "one of \(known) expected, got '\(name)'")
  }

  // MARK: Temporary folders

  /// `temp_dir()`.
  private func makeTemporaryFolder(_ call: LuaCall) throws -> LuaAnswer {
    let run = host.currentOp?.run ?? host.currentRun
    let (keeping, item) = (host.currentOp?.keeping, host.currentOp?.index ?? 0)
    return try host.offload(call) { _ throws(SystemError) in
      try Folders.makeTemporary()
    } answer: { call, path in
      keeping?.makesFolder(path)
      let folders = host.service { TemporaryFolders() }
      if let run, folders.onFolder?(path, run, item) == true { return call.answer(.string(path)) }
      folders.keep(path, for: run)
      return call.answer(.string(path))
    }
  }
}

/// Temporary folders that were made outside of runs; they are removed with the host.
final class TemporaryFolders: HostService {
  fileprivate(set) var paths: [ByteString] = []
  /// Called with a temporary folder, the run that has made it, and the number of the item; true if another host keeps the
  /// folder. For workers.
  var onFolder: ((ByteString, Run, Int) -> Bool)?

  /// Keeps a temporary folder until a run ends, or the script.
  func keep(_ path: ByteString, for run: Run?) {
    guard let run, run.state == .pending else { return paths.append(path) }
    run.adopt(
      OwnedResource(on: run.loop) { [loop = run.loop] done in
        Self.remove(path, on: loop, then: done)
      })
  }

  private static func remove(
    _ path: ByteString, on loop: FlowEventLoop, then done: @escaping () -> Void
  ) {
    loop.offload {
      do throws(SystemError) {
        try TemporaryPaths.shared.removeFolder(path)
        return nil
      } catch {
        return error
      }
    } then: { (problem: SystemError?) in
      if let problem { loop.reportFailure(.from(problem), name: "flow.fs.temp_dir") }
      done()
    }
  }

  func hostDidClose(_ host: ScriptHost) {
    for path in paths { try? TemporaryPaths.shared.removeFolder(path) }
  }
}

/// Arguments of the functions for files.
extension Arguments {
  /// A path: a string that isn't empty and has no NUL in it.
  func path(_ index: Int) throws -> ByteString {
    guard let path = call.bytes(place(index)) else { throw wrong(index, expected: "path") }
    if let problem = path.problemAsPath { throw wrong(index, problem) }
    return path
  }

  /// A table of options, which may be absent.
  func fileOptions(_ index: Int, known: [String]) throws -> Options {
    isNil(index) ? try Options(self, index, [], known) : try options(index, known: known)
  }
}

extension ByteString {
  /// Why it is no path, for an error of use; nil when it may be one.
  var problemAsPath: ByteString? {
    if isEmpty { return "path expected, got an empty string" }
    return bytes.contains(0)
      ? "path expected, got a string with a NUL byte: '\(escapingNUL)'" : nil
  }
}

extension Options {
  /// A field that is a path; nil when it is absent.
  func path(_ name: ByteString) throws -> ByteString? {
    let path = try string(name)
    if let problem = path?.problemAsPath { throw wrong(name, problem) }
    return path
  }

  /// A field that is one of some names; nil when it is absent.
  func choice<Choice>(
    _ name: ByteString, of choices: [(name: String, value: Choice)]
  ) throws -> Choice? {
    guard let text = try string(name) else { return nil }
    if let found = choices.first(where: { text == ByteString($0.name) }) { return found.value }
    let known = choices.map { "'\($0.name)'" }.joined(separator: ", ")
    throw arguments.wrong(index, "field '\(name)': one of \(known) expected, got '\(text)'")
  }
}
