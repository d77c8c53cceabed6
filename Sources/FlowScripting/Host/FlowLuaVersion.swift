package import FlowEngine

/// The version of flowlua. The only place of the number: `scripts/install` reads it from
/// the program, and a test compares the changelog.
package enum FlowLuaVersion {
  package static let number: ByteString = "0.1.0"
}
