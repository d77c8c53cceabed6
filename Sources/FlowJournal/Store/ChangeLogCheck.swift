internal import FlowEngine
internal import FlowSystem

/// Checks SQLite's log of changes (`store.sqlite-wal`) before anything is written to it.
///
/// SQLite ignores a part of the log that isn't what was written, and everything after it, because a crash
/// may leave such a part at the end. Only the changes after it show that there was more.
enum ChangeLogCheck {
  private static let headerSize = 32
  private static let frameHeaderSize = 24

  /// A sentence about changes that SQLite can't find any more; nil when there are none.
  static func problem(in folder: ByteString) throws(FlowError) -> ByteString? {
    let bytes: [UInt8]
    do throws(SystemError) {
      bytes = try Files.read(folder + "/store.sqlite-wal", Cancellation()).bytes
    } catch {
      if error.code == ENOENT { return nil }
      throw StoreProblem.system("read", folder, error.code ?? EIO)
    }
    return bytes.withUnsafeBytes { problem(UnsafeRawBufferPointer($0)) }
  }

  private static func problem(_ bytes: UnsafeRawBufferPointer) -> ByteString? {
    func word(_ offset: Int) -> UInt32 {
      UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    guard bytes.count >= headerSize else { return nil }
    let magic = word(0)
    let pageSize = Int(word(8))
    guard magic & ~1 == 0x377F_0682, (512...65_536).contains(pageSize) else {
      return "the log of changes has another header: what was written last may be missing"
    }
    var sum = ChangeLogSum(isBigEndian: magic & 1 == 1)
    sum.add(bytes[..<24])
    if sum.first != word(24) || sum.second != word(28) {
      return "the log of changes has another header: what was written last may be missing"
    }
    let frameSize = frameHeaderSize + pageSize
    var broken: Int?
    for number in 0..<(bytes.count - headerSize) / frameSize {
      let start = headerSize + number * frameSize
      // Frames of an earlier use of the file have other numbers here.
      let isCurrent = word(start + 8) == word(16) && word(start + 12) == word(20)
      if let broken {
        guard isCurrent else { continue }
        return
          "change \(broken + 1) of the log isn't what was written: it and what follows is missing"
      }
      if isCurrent {
        sum.add(bytes[start..<start + 8])
        sum.add(bytes[start + frameHeaderSize..<start + frameSize])
      }
      if !isCurrent || sum.first != word(start + 16) || sum.second != word(start + 20) {
        broken = number
      }
    }
    return nil
  }
}

/// The running checksum of SQLite's log of changes.
private struct ChangeLogSum {
  let isBigEndian: Bool
  var first: UInt32 = 0
  var second: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// Adds bytes, a multiple of eight.
  mutating func add(_ part: Slice<UnsafeRawBufferPointer>) {
    let bytes = UnsafeRawBufferPointer(rebasing: part)
    var offset = 0
    while offset + 8 <= bytes.count {
      first &+= word(bytes, offset) &+ second
      second &+= word(bytes, offset + 4) &+ first
      offset += 8
    }
  }

  private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    let raw = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
    return isBigEndian ? UInt32(bigEndian: raw) : UInt32(littleEndian: raw)
  }
}
