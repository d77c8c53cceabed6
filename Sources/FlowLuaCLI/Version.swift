internal import FlowEngine

/// The version of flowlua. This is the only place of the number: `scripts/install` reads it from
/// the program, and a test compares the changelog.
enum Version {
  static let number: ByteString = "0.1.0"
}
