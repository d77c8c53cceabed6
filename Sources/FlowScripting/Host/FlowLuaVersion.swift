package import FlowEngine

/// The version of flowlua.
package struct FlowLuaVersion {
  /// The version of this program. The only place of the number: `scripts/install` reads it from the program, and a
  /// test compares the changelog.
  package static let number: ByteString = "1.0.0"

  /// The parts of `number`.
  static let present = FlowLuaVersion(number) ?? FlowLuaVersion(major: 0, minor: 0, patch: 0)

  let major: Int
  let minor: Int
  let patch: Int

  private init(major: Int, minor: Int, patch: Int) {
    self.major = major
    self.minor = minor
    self.patch = patch
  }

  /// Parses one to three numbers with dots between them; those that are missing are 0.
  init?(_ text: ByteString) {
    let parts = text.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count <= 3 else { return nil }
    var numbers = [0, 0, 0]
    for (index, part) in parts.enumerated() {
      guard !part.isEmpty, part.count <= 9 else { return nil }
      for digit in part {
        guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
        numbers[index] = numbers[index] * 10 + Int(digit - UInt8(ascii: "0"))
      }
    }
    self.init(major: numbers[0], minor: numbers[1], patch: numbers[2])
  }

  /// Whether it has all that another version has: of the same major version, and not older.
  func satisfies(_ wanted: FlowLuaVersion) -> Bool {
    major == wanted.major && (minor, patch) >= (wanted.minor, wanted.patch)
  }
}
