internal import CFlowSystem
internal import FlowEngine
internal import Glibc

/// Files that the program itself writes.
enum TextFile {
  /// Replaces what stands in a file; answers why that failed, nil when it didn't.
  static func write(_ text: ByteString, to path: ByteString) -> String? {
    let name = path.bytes.map { CChar(bitPattern: $0) } + [0]
    let isWritten = text.withUnsafeBytes { bytes in
      flowsystem_write_file(name, bytes.baseAddress, bytes.count)
    }
    return isWritten ? nil : String(cString: strerror(errno))
  }
}
