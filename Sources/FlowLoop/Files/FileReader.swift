/// Reads a file piece by piece, blocking; for threads other than the loop's.
///
/// The file is opened by the first read, and closed when the reader is released.
// One thread uses it at a time: the loop's makes and releases it, and each read on a helper thread begins
// after the one before.
package final class FileReader: @unchecked Sendable {
  private let path: ByteString
  private var file: InputFile?

  package init(_ path: ByteString) {
    self.path = path
  }

  /// The next piece of the file, of at most `size` bytes; empty at the end.
  package func read(_ size: Int, _ cancellation: Cancellation) throws(SystemError) -> ByteString {
    if file == nil { file = try InputFile(path, verb: "read") }
    var failure: SystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      do throws(SystemError) {
        count = try file?.read(into: UnsafeMutableRawBufferPointer(buffer), cancellation) ?? 0
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return ByteString(bytes)
  }
}
