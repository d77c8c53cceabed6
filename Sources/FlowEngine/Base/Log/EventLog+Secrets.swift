// Secrets are replaced when a text is put into the log, so that neither views nor sinks see them.
extension EventLog {
  /// From now on no output of the log's loop contains the text of `value`, a secret or a plain
  /// value, if that is a string or a number of at least `SecretTexts.shortest` bytes.
  package func hide(_ value: FlowValue) { keys.secrets.add(value) }

  /// A value under `key` of `bucket` as the log may have it: as a secret when the key is secret. A
  /// value under such a key is hidden everywhere else too.
  func shown(_ value: FlowValue, of key: DataKey, in bucket: DataBucket) -> FlowValue {
    guard bucket.isSecret(key) else { return value }
    hide(value)
    return .secret(value)
  }

  /// A name without secrets.
  func shown(_ name: ByteString) -> ByteString {
    secrets?.redacted(name) ?? name
  }

  /// The error without secrets in its texts; the value that represents it loses them as well.
  func redacted(_ error: FlowError) -> FlowError {
    guard let secrets else { return error }
    if case .opaque(let value)? = error.payload?.get(), let value = value as? any ErrorValue {
      value.replaceTexts { secrets.redacted($0) }
    }
    return error.replacingTexts { secrets.redacted($0) }
  }
}

/// An opaque value that represents an error on its loop, and shows its texts.
package protocol ErrorValue: OpaqueValue {
  /// Replaces each of the error's own texts with the result of `replacement`.
  func replaceTexts(_ replacement: (ByteString) -> ByteString)
}
