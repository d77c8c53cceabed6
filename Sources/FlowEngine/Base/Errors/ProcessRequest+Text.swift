extension ProcessRequest {
  /// The command as messages show it, without secrets: words with special characters are quoted.
  func commandText(hiding secrets: SecretTexts) -> ByteString {
    let words = argvBytes.map { word in
      let isPlain = !word.isEmpty && word.bytes.allSatisfy { Self.plain.contains($0) }
      return isPlain ? word : "'\(word.escapingNUL)'"
    }
    let text = ByteString(Array(words.map(\.bytes).joined(separator: [UInt8(ascii: " ")])))
    return secrets.redacted(text).truncated(to: FlowValue.logLimit)
  }

  private static let plain = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%^".utf8)
}
