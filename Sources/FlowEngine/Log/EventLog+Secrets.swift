// Secrets are replaced when a text is put into the log, so that neither views nor sinks see them.
extension EventLog {
  /// From now on no text of this log shows the text of `value`, a secret or a plain value, if that
  /// is a string or a number of at least `SecretTexts.shortest` bytes.
  public func hide(_ value: Value) {
    if let secrets {
      secrets.add(value)
    } else {
      let made = SecretTexts()
      made.add(value)
      secrets = made
    }
  }

  /// From now on this log hides what `other` hides by now: for a run that is given another's data.
  public func hideSecrets(of other: EventLog) {
    guard let known = other.secrets else { return }
    if let secrets { secrets.add(known) } else { secrets = SecretTexts(copying: known) }
  }

  /// A value under `key` of `bucket` as the log may have it: a secret when the key is marked. What
  /// stands under such a key is hidden everywhere else too.
  func shown(_ value: Value, of key: Key, in bucket: DataBucket) -> Value {
    guard bucket.isSecret(key) else { return value }
    hide(value)
    return .secret(value)
  }

  /// A name without secrets.
  func shown(_ name: ByteString) -> ByteString {
    secrets?.redacted(name) ?? name
  }

  /// The error without secrets in its texts; the value that stands for it loses them as well.
  func redacted(_ error: FlowError) -> FlowError {
    guard let secrets, secrets.count > 0 else { return error }
    if case .opaque(let value)? = error.payload?.get(), let value = value as? any ErrorValue {
      value.replaceTexts { secrets.redacted($0) }
    }
    return error.replacingTexts { secrets.redacted($0) }
  }

  /// The text that a line shows of a value, when it isn't the value's own.
  func redactedText(of value: Value, _ secrets: SecretTexts) -> ByteString? {
    let text = value.logText
    let shown: ByteString
    if case .opaque = value {
      shown = secrets.redacted(text, limit: Value.logLimit)
    } else {
      shown = secrets.redacted(text)
    }
    return shown == text ? nil : shown
  }
}

/// An opaque value that stands for an error on its loop, and shows its texts.
public protocol ErrorValue: OpaqueValue {
  /// Replaces each of the error's own texts by what `replacement` makes of it.
  func replaceTexts(_ replacement: (ByteString) -> ByteString)
}
