internal import Glibc

/// Finds files by the beginning of their path.
enum FileNames {
  private static let limit = 1000

  /// Paths with this prefix; those of folders end in a slash. Hidden files are found if the dot was
  /// typed.
  static func startingWith(_ typed: [UInt8]) -> [[UInt8]] {
    let slash = typed.lastIndex(of: UInt8(ascii: "/"))
    let folder = slash.map { Array(typed[...$0]) } ?? []
    let start = Array(typed[(slash.map { $0 + 1 } ?? 0)...])
    guard let stream = opendir(cString(folder.isEmpty ? Array("./".utf8) : folder)) else {
      return []
    }
    defer { closedir(stream) }
    var found: [[UInt8]] = []
    while found.count < limit, let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      guard name.starts(with: start), name != Array(".".utf8), name != Array("..".utf8),
        !start.isEmpty || name.first != UInt8(ascii: ".")
      else { continue }
      let path = folder + name
      found.append(isFolder(path) ? path + [UInt8(ascii: "/")] : path)
    }
    return found
  }

  static func exists(_ path: [UInt8]) -> Bool { access(cString(path), F_OK) == 0 }

  private static func isFolder(_ path: [UInt8]) -> Bool {
    var information = stat()
    return stat(cString(path), &information) == 0 && information.st_mode & S_IFMT == S_IFDIR
  }

  private static func cString(_ bytes: [UInt8]) -> [CChar] {
    bytes.map { CChar(bitPattern: $0) } + [0]
  }
}
