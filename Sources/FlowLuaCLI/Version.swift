internal import FlowEngine

/// Which version of flowlua this is. The number stands here alone: `scripts/install` asks the program
/// for it, and a test compares the changelog.
enum Version {
  static let number: ByteString = "0.1.0"
}
