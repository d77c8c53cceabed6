import FlowLoop
import Testing

@Suite("Watches of files")
struct FileWatchTests {
  private func changes(_ watch: FileWatch, _ count: Int, _ loop: FlowEventLoop) -> [FileChange] {
    var found: [FileChange] = []
    var hasEnded = false
    for _ in 0..<count where !hasEnded {
      var isDone = false
      _ = watch.wait { outcome in
        isDone = true
        if case .success(let change?) = outcome { found.append(change) } else { hasEnded = true }
      }
      _ = loop.turn { isDone }
    }
    return found
  }

  @Test("A loop waits for changes only while something wants one")
  func idleLoop() throws {
    let folder = try Folders.makeTemporary()
    let loop = makeTimedLoop()
    let watch = FileWatch(
      try FileWatchStart(folder, isRecursive: false, Cancellation()), on: loop)
    try Files.append("x", to: folder + "/a", Cancellation())
    #expect(loop.turn(mayBlock: false) == .idle)
    #expect(changes(watch, 1, loop).map(\.path) == [folder + "/a"])
    #expect(loop.turn(mayBlock: false) == .idle)

    let number = try #require(watch.wait { _ in Issue.record("it was stopped") })
    #expect(loop.turn(mayBlock: false) == .waiting)
    watch.stopWaiting(number)
    #expect(loop.turn(mayBlock: false) == .idle)
    watch.close()
    #expect(changes(watch, 1, loop).isEmpty)
    try TemporaryPaths.shared.removeFolder(folder)
  }

  @Test("Each entry of new folders is reported once, however the reports and the scans meet")
  func newFolders() throws {
    let folder = try Folders.makeTemporary()
    let loop = makeTimedLoop()
    let watch = FileWatch(
      try FileWatchStart(folder, isRecursive: true, Cancellation()), on: loop)
    var expected: Set<ByteString> = []
    for index in 0..<20 {
      let new = folder + "/\(index)"
      try Folders.make(new + "/x")
      try Files.append("", to: new + "/file", Cancellation())
      expected.formUnion([new, new + "/x", new + "/file"])
    }
    let found = changes(watch, expected.count, loop)
    #expect(found.allSatisfy { $0.kind == .created })
    #expect(Set(found.map(\.path)) == expected)
    watch.close()
    try TemporaryPaths.shared.removeFolder(folder)
  }

  @Test("A change that adds nothing to one that waits is left out, and the others are kept")
  func bursts() throws {
    let folder = try Folders.makeTemporary()
    let loop = makeTimedLoop()
    try Files.append("x", to: folder + "/a", Cancellation())
    let watch = FileWatch(
      try FileWatchStart(folder, isRecursive: false, Cancellation()), on: loop)
    for _ in 0..<50 {
      try Files.append("x", to: folder + "/a", Cancellation())
      try Files.append("x", to: folder + "/b", Cancellation())
    }
    try FileRemoval.remove(folder + "/b", recursive: false, Cancellation())
    try Files.append("x", to: folder + "/b", Cancellation())
    let found = changes(watch, 4, loop)
    #expect(found.map(\.kind) == [.changed, .created, .removed, .created])
    watch.close()
    try TemporaryPaths.shared.removeFolder(folder)
  }
}
