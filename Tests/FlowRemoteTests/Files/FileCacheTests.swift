import FlowEngine
@testable import FlowRemote
import Glibc
import Testing

@Suite("A cache of files")
struct FileCacheTests {
  private final class Folder {
    let path: ByteString

    init() throws { path = try Folders.makeTemporary() }

    deinit { try? TemporaryPaths.shared.removeFolder(path) }
  }

  private let folder: Folder

  init() throws { folder = try Folder() }

  private func cache(limit: Int64 = 1000) throws -> FileCache {
    try FileCache("\(folder.path)/files", limit: limit)
  }

  private func hash(_ number: Int) -> ByteString {
    let digit = Array("0123456789abcdef".utf8)[number]
    return ByteString([UInt8](repeating: digit, count: 64))
  }

  /// Puts a file of 100 bytes into a cache.
  private func add(_ number: Int, to cache: FileCache) throws {
    try cache.makeRoom(for: 100)
    let path = cache.makePath()
    let content = ByteString([UInt8](repeating: UInt8(number), count: 100))
    try Files.write(content, to: path, Cancellation())
    try cache.adopt(path, hash(number))
  }

  private func has(_ number: Int, _ cache: FileCache) throws -> Bool {
    try FileStatus.exists("\(cache.folder)/\(hash(number))")
  }

  @Test("links files to names that can't be written to")
  func link() throws {
    let cache = try cache()
    let place = cache.makePath()
    #expect(try !cache.link(hash(1), size: 100, to: place))
    try add(1, to: cache)
    #expect(try cache.link(hash(1), size: 100, to: place))
    let status = try #require(try FileStatus.read(place, follows: false))
    #expect(status.kind == .file && status.size == 100 && status.mode == 0o444)
    #expect(throws: SystemError.self) { try cache.link(hash(1), size: 100, to: place) }
    #expect(throws: SystemError.self) { try cache.link("../x", size: 100, to: cache.makePath()) }
  }

  @Test("drops a file that was changed")
  func changed() throws {
    let cache = try cache()
    try add(1, to: cache)
    #expect(try !cache.link(hash(1), size: 99, to: cache.makePath()))
    #expect(try !has(1, cache))
    try add(1, to: cache)
    let path: ByteString = "\(cache.folder)/\(hash(1))"
    _ = path.withCString { utimensat(AT_FDCWD, $0, nil, 0) }
    #expect(try !cache.link(hash(1), size: 100, to: cache.makePath()))
    #expect(try !has(1, cache))
  }

  @Test("removes the files that were used least recently when it is full")
  func eviction() throws {
    let cache = try cache()
    for number in 1...10 { try add(number, to: cache) }
    for number in 1...10 { #expect(try has(number, cache)) }
    // 1 is used now; 2 is in use.
    let place = cache.makePath()
    #expect(try cache.link(hash(1), size: 100, to: place))
    try FileRemoval.remove(place, recursive: false, Cancellation())
    let held = cache.makePath()
    #expect(try cache.link(hash(2), size: 100, to: held))
    try add(11, to: cache)
    try add(12, to: cache)
    #expect(try (1...12).filter { try has($0, cache) } == [1, 2, 5, 6, 7, 8, 9, 10, 11, 12])
    // A file of the whole limit leaves what is in use.
    try cache.makeRoom(for: 5000)
    #expect(try (1...12).filter { try has($0, cache) } == [2])
    #expect(try Files.read(held, Cancellation()).count == 100)
  }

  @Test("names the folder when the disk is full")
  func full() throws {
    let cache = try cache(limit: .max)
    try add(1, to: cache)
    let error = #expect(throws: SystemError.self) { try cache.makeRoom(for: .max - 1) }
    #expect(
      error?.message.hasPrefix("the disk of '\(cache.folder)' is full: the file has ") == true)
    #expect(error?.code == ENOSPC)
    #expect(try !has(1, cache))
  }

  @Test("removes the folders of processes that are gone, and only those")
  func left() throws {
    let first = try cache()
    try add(1, to: first)
    let held = first.makePath()
    #expect(try first.link(hash(1), size: 100, to: held))
    let jobs: ByteString = "\(first.folder)/jobs"
    try Folders.make("\(jobs)/0123/1")
    try Files.write("x", to: "\(jobs)/0123/1/file", Cancellation())
    try Files.write("", to: "\(jobs)/0123.lock", Cancellation())
    let second = try cache()
    #expect(try !FileStatus.exists("\(jobs)/0123") && !FileStatus.exists("\(jobs)/0123.lock"))
    #expect(try FileStatus.exists(held))
    #expect(try second.link(hash(1), size: 100, to: second.makePath()))
    first.removeOwn()
    #expect(try !FileStatus.exists(held))
    second.removeOwn()
    #expect(try has(1, second))
  }

  @Test("needs a folder that can be made")
  func noFolder() throws {
    try Files.write("x", to: "\(folder.path)/files", Cancellation())
    #expect(throws: SystemError.self) { try cache() }
  }
}
