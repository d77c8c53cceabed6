internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// The files that `--init` writes into a folder: settings for editors, a `.gitignore`, a first flow and its test.
/// Files that exist are kept.
struct Project {
  private let folder: ByteString
  private let program: ByteString

  /// The name isn't `flow.lua`: editors and luacheck would take that file for the module `flow`.
  private static let script: (name: ByteString, text: ByteString) =
    ("hello.lua", ByteString(PackageResources.hello_lua))
  private static let test: (name: ByteString, text: ByteString) =
    ("hello_test.lua", ByteString(PackageResources.hello_test_lua))

  init(in folder: ByteString, _ program: ByteString) {
    self.folder = folder
    self.program = program
  }

  /// Writes the files and says what it did with each; returns the exit status.
  func write() -> Int32 {
    do throws(SystemError) {
      try Folders.make(folder)
      let library = try AnnotationFolder.find(near: path(".flowlua"), say)
      let hasSettings = try writeSettings(library)
      try writeIgnoreFile(alsoIgnoring: hasSettings ? [".luarc.json"] : [])
      sayNext(try writeScripts())
      return 0
    } catch {
      Output.error(program: program, "--init: \(error.message)")
      return 1
    }
  }

  private func say(_ line: ByteString) { Output.write(line + "\n", toError: false) }

  /// The path of a file of the folder, as the user would write it.
  private func path(_ name: ByteString) -> ByteString {
    if folder == "." { return name }
    // Not an option of a command.
    let folder = folder.bytes.first == UInt8(ascii: "-") ? "./" + folder : folder
    return folder.bytes.last == UInt8(ascii: "/") ? folder + name : folder + "/" + name
  }

  // MARK: The files

  /// Writes a file unless it exists, and says so; returns whether it was written.
  private func create(_ name: ByteString, _ text: ByteString) throws(SystemError) -> Bool {
    let path = path(name)
    let isNew = try TextFile.create(text, at: path)
    say(isNew ? "wrote \(path)" : "kept \(path) (it exists)")
    return isNew
  }

  /// The content of a file that exists.
  private static func read(_ path: ByteString) throws(SystemError) -> ByteString {
    // A pipe would be waited for.
    if let kind = try FileStatus.read(path, follows: true)?.kind,
      ![.file, .directory].contains(kind)
    {
      throw SystemError("'\(path)' is a \(kind.name)", code: EINVAL)
    }
    return try Files.read(path, Cancellation())
  }

  /// Writes `.luarc.json`; returns whether it names the folder of the annotations.
  private func writeSettings(_ library: ByteString) throws(SystemError) -> Bool {
    var place = JSONText()
    place.append(library)
    let quoted = ByteString(place.bytes)
    let settings: ByteString = """
      {
        "runtime.version": "Lua 5.4",
        "workspace.library": [\(quoted)]
      }

      """
    if try create(".luarc.json", settings) { return true }
    if try Self.read(path(".luarc.json")).contains(quoted) { return true }
    say("  to complete 'flow', its \"workspace.library\" needs \(quoted)")
    return false
  }

  /// Writes `.gitignore`, or adds the lines that it lacks.
  private func writeIgnoreFile(alsoIgnoring more: [ByteString]) throws(SystemError) {
    // The store of kept runs and the annotations; files that are being written; paths of this machine.
    let wanted = [".flowlua/", ".flowlua-*.tmp"] + more
    let path = path(".gitignore")
    if try TextFile.create(Self.lines(wanted), at: path) { return say("wrote \(path)") }
    let present = try Self.read(path)
    let missing = wanted.filter { line in
      !present.bytes.split(separator: UInt8(ascii: "\n")).contains { Self.ignores($0, line) }
    }
    guard !missing.isEmpty else { return say("kept \(path) (it exists)") }
    let endsLine = present.isEmpty || present.bytes.last == UInt8(ascii: "\n")
    try Files.append((endsLine ? "" : "\n") + Self.lines(missing), to: path, Cancellation())
    let names = missing.map { "'\($0)'" as ByteString }
    say("added \(names.joined(separator: ", ")) to \(path)")
  }

  private static func lines(_ lines: [ByteString]) -> ByteString {
    lines.reduce("") { $0 + $1 + "\n" }
  }

  /// Whether a line of a `.gitignore` means the same as another one: `/.flowlua` as `.flowlua/`.
  private static func ignores(_ line: ArraySlice<UInt8>, _ wanted: ByteString) -> Bool {
    let slash = UInt8(ascii: "/")
    var line = line
    while let last = line.last, last <= 32 { line.removeLast() }
    if line.first == slash { line.removeFirst() }
    if line.last == slash { line.removeLast() }
    var name = wanted.bytes[...]
    if name.last == slash { name.removeLast() }
    return line.elementsEqual(name)
  }

  /// Writes the first flow and its test; returns the names of those that there are.
  private func writeScripts() throws(SystemError) -> [ByteString] {
    let (script, test) = (Self.script, Self.test)
    if try !create(script.name, script.text),
      try Self.read(path(script.name)) != script.text,
      try FileStatus.read(path(test.name), follows: false) == nil
    {
      say("left out \(path(test.name)): \(path(script.name)) is another script")
      return [script.name]
    }
    _ = try create(test.name, test.text)
    return [script.name, test.name]
  }

  // MARK: The next steps

  private func sayNext(_ scripts: [ByteString]) {
    say(scripts.count > 1 ? "\nRun the flow, and its tests:" : "\nRun it:")
    say("  \(Self.word(program)) --summary \(Self.word(path(Self.script.name)))")
    if scripts.count > 1 {
      say("  \(Self.word(program)) --test" + (folder == "." ? "" : " \(Self.word(folder))"))
    }
  }

  /// A word of a command for a shell.
  private static func word(_ text: ByteString) -> ByteString {
    let isPlain = text.bytes.allSatisfy {
      $0.isLetter || $0.isDigit || "-_./:,+@%".bytes.contains($0)
    }
    if isPlain { return text }
    let parts = text.split(at: "'")
    return "'" + parts.joined(separator: "'\\''") + "'"
  }
}

/// The folder with the annotations of the module `flow` that the editor of a project reads.
enum AnnotationFolder {
  /// Finds the installed folder, or makes one in the project unless annotations of this program are there already.
  ///
  /// - Parameters:
  ///   - place: The folder `.flowlua` of the project.
  ///   - say: Prints a line.
  /// - Returns: The path from the root.
  /// - Throws: A `SystemError` when the annotations can't be written.
  static func find(
    near place: ByteString, _ say: (ByteString) -> Void
  ) throws(SystemError) -> ByteString {
    if let installed, isCurrent(installed) { return installed }
    let library = place + "/library"
    if !isCurrent(library) {
      // The store of kept runs, which may come into the same folder, is for this user only.
      _ = place.withCString { mkdir($0, 0o700) }
      try Folders.make(library)
      for (name, text) in Annotations.files {
        try Files.write(ByteString(text), to: library + "/" + ByteString(name), Cancellation())
      }
      say("wrote \(library) (the annotations)")
    }
    return library.resolvedPath
  }

  /// Whether a folder has the annotations of this program.
  private static func isCurrent(_ folder: ByteString) -> Bool {
    Annotations.files.allSatisfy { name, text in
      TextFile.read(folder + "/" + ByteString(name))?.elementsEqual(text.utf8) == true
    }
  }

  /// The folder of scripts/install beside the program's own; nil without /proc.
  private static var installed: ByteString? {
    let parts = executablePath?.split(separator: UInt8(ascii: "/")) ?? []
    guard parts.count > 1 else { return nil }
    let prefix = parts.dropLast(2).reduce("") { $0 + "/" + ByteString($1) } as ByteString
    return prefix + "/share/flowlua/library"
  }
}
