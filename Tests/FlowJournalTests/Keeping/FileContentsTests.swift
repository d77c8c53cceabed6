import FlowEngine
import FlowLoop
import Testing

@testable import FlowJournal

@Suite("The contents of files")
struct FileContentsTests {
  /// Long after any change that a test makes.
  private static let later = Int64.max

  private func digest(_ content: FileContent?) -> Digest? {
    if case .digest(let digest)? = content { digest } else { nil }
  }

  @Test("A file that hasn't changed is known without being read, also by the next process")
  func knownFile() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let path = test.parent + "/a"
    try Files.write("one", to: path, Cancellation())
    let store = try test.open()
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    let files = FileContents(store, run)
    #expect(try files.content(at: path) == nil)
    let read = FileContents.Read.read(path, Cancellation(), at: Self.later)
    let content = digest(try files.content(of: read))
    #expect(content != nil)
    #expect(digest(try files.content(at: path)) == content)
    run.end(.stopped)
    run.close()

    let other = try test.open()
    let second = try #require(try other.resume(nil, script: "/s.lua", on: loop))
    let known = FileContents(other, second)
    #expect(digest(try known.content(at: path)) == content)
    // Another content of equal size.
    try Files.write("two", to: path, Cancellation())
    #expect(try known.content(at: path) == nil)
    second.close()
    #expect(try test.open().verify().isEmpty)
  }

  @Test(
    "A file that has just changed is read each time, because its times may not show the next change"
  )
  func youngFile() throws {
    let test = try TestStore()
    let path = test.parent + "/a"
    try Files.write("one", to: path, Cancellation())
    let store = try test.open()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let files = FileContents(store, try store.begin(script: "/s.lua", words: [], on: loop))
    let read = FileContents.Read.read(path, Cancellation())
    #expect(digest(try files.content(of: read)) != nil)
    #expect(try files.content(at: path) == nil)
  }

  @Test("A file that isn't there is missing, and a folder is no file")
  func missingFile() throws {
    let test = try TestStore()
    let store = try test.open()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let files = FileContents(store, try store.begin(script: "/s.lua", words: [], on: loop))
    for path in [test.parent + "/none", test.parent] {
      guard case .missing? = try files.content(at: path) else {
        Issue.record("\(path)")
        continue
      }
    }
  }

  @Test(
    "A changed row of a file is found, and the file is read again",
    arguments: ["content = zeroblob(16)", "size = size + 1", "sum = x''", "content = x''"]
      as [ByteString])
  func changedRow(_ change: ByteString) throws {
    let test = try TestStore()
    let path = test.parent + "/a"
    try Files.write("one", to: path, Cancellation())
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    let read = FileContents.Read.read(path, Cancellation(), at: Self.later)
    _ = try FileContents(store, run).content(of: read)
    run.close()
    try test.execute("UPDATE files SET \(change)")
    let other = try test.open()
    #expect(other.verify().count == 1)
    let second = try #require(try other.resume(nil, script: "/s.lua", on: loop))
    #expect(try FileContents(other, second).content(at: path) == nil)
    second.close()
  }

  @Test("The store of the version before has no known files, and gets them when it is written")
  func upgrade() throws {
    let test = try TestStore()
    _ = try test.open()
    try test.execute("DROP TABLE files")
    try test.execute("DROP TABLE codes")
    try test.execute("DROP TABLE messages")
    try test.execute("DROP TABLE waits")
    for column in ["around", "why", "lines"] as [ByteString] {
      try test.execute("ALTER TABLE records DROP COLUMN " + column)
    }
    try test.execute("PRAGMA user_version = 1")
    let old = try test.open(isReadOnly: true)
    #expect(old.verify().isEmpty)
    #expect(try FileContents(old, nil).content(at: test.folder + "/key") == nil)
    let store = try test.open()
    #expect(try test.number("SELECT count(*) FROM files") == 0)
    #expect(store.verify().isEmpty)
  }
}
