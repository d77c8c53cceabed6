internal import FlowEngine
internal import FlowScripting
internal import Glibc

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
    return Keeping.absolute(library)
  }

  /// Whether a folder has the annotations of this program.
  private static func isCurrent(_ folder: ByteString) -> Bool {
    Annotations.files.allSatisfy { name, text in
      TextFile.read(folder + "/" + ByteString(name))?.elementsEqual(text.utf8) == true
    }
  }

  /// The folder of scripts/install beside the program's own; nil without /proc.
  private static var installed: ByteString? {
    let link: ByteString = "/proc/self/exe"
    let path = Keeping.absolute(link)
    let parts = path.bytes.split(separator: UInt8(ascii: "/"))
    guard path != link, parts.count > 1 else { return nil }
    let prefix = parts.dropLast(2).reduce("") { $0 + "/" + ByteString(Array($1)) } as ByteString
    return prefix + "/share/flowlua/library"
  }
}
