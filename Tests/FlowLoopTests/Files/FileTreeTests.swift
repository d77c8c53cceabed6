import FlowLoop
import Glibc
import Testing

@Suite("Trees of folders")
struct FileTreeTests {
  @Test("A tree that is deeper than paths may be long is listed and removed with few descriptors")
  func deepTree() throws {
    // In memory where that is possible: a disk takes long for so many folders.
    let number = String(UInt64.random(in: 0 ... .max), radix: 36)
    let isInMemory = try FileStatus.exists("/dev/shm")
    let top = ByteString("\(isInMemory ? "/dev/shm" : "/tmp")/flowlua-test-\(number)")
    try Folders.make(top)
    var current = top.description.withCString { open($0, O_RDONLY | O_DIRECTORY) }
    let depth = 10_000
    for _ in 0..<depth {
      try #require(mkdirat(current, "d", 0o700) == 0)
      let next = openat(current, "d", O_RDONLY | O_DIRECTORY)
      close(current)
      current = next
    }
    close(current)
    var listing = DirectoryListing(top)
    listing.isRecursive = true
    listing.pattern = try Glob("nothing")
    #expect(try listing.read(Cancellation()).isEmpty)
    try FileRemoval.remove(top, recursive: true, Cancellation())
    #expect(try !FileStatus.exists(top))
  }

  @Test("Work on a tree stops when it is cancelled")
  func cancellation() throws {
    let top = try Folders.makeTemporary()
    for index in 0..<10 { try Folders.make(top + "/\(index)/x") }
    let cancellation = Cancellation()
    cancellation.request()
    var listing = DirectoryListing(top)
    listing.isRecursive = true
    #expect(throws: SystemError.self) { try listing.read(cancellation) }
    #expect(throws: SystemError.self) {
      try FileRemoval.remove(top, recursive: true, cancellation)
    }
    #expect(try DirectoryListing(top).read(Cancellation()).count == 10)
    try TemporaryPaths.shared.removeFolder(top)
  }

  @Test("A write that is cancelled leaves nothing")
  func cancelledWrite() throws {
    let top = try Folders.makeTemporary()
    let cancellation = Cancellation()
    cancellation.request()
    #expect(throws: SystemError.self) { try Files.write("x", to: top + "/file", cancellation) }
    var listing = DirectoryListing(top)
    listing.includesHidden = true
    #expect(try listing.read(Cancellation()).isEmpty)
    try TemporaryPaths.shared.removeFolder(top)
  }

  @Test("Everything about files that is open is closed again")
  func descriptors() throws {
    let before = openDescriptors()
    let top = try Folders.makeTemporary()
    try Folders.make(top + "/a/b")
    try Files.write("x", to: top + "/a/file", Cancellation())
    try Files.copy(top + "/a/file", to: top + "/a/copy", Cancellation())
    try Files.append("y", to: top + "/a/file", Cancellation())
    #expect(throws: SystemError.self) {
      try Files.copy(top + "/a/file", to: top + "/none/copy", Cancellation())
    }
    #expect(throws: SystemError.self) { try Files.read(top + "/a", Cancellation()) }
    #expect(throws: SystemError.self) { try FileHash.md5.digest(ofFile: top, Cancellation()) }
    _ = try FileHash.sha1.digest(ofFile: top + "/a/file", Cancellation())
    var listing = DirectoryListing(top)
    listing.isRecursive = true
    #expect(try listing.read(Cancellation()).count == 4)
    try TemporaryPaths.shared.removeFolder(top)
    // Other tests of this process run at the same time.
    #expect(openDescriptors() <= before + 16)
  }

  private func openDescriptors() -> Int {
    (try? DirectoryListing("/proc/self/fd").read(Cancellation()).count) ?? 0
  }
}
