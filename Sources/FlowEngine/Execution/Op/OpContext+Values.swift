// Typed access for Swift.
extension OpContext {
  /// The value under `name` as a Swift type; fails the op and throws when it is of another type, or when
  /// there is none: as an optional, such as `String?.self`, an absent value is nil.
  public func value<Wanted: FlowValueConvertible>(
    _ name: String, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let error: FlowError
    let key = bucket.keys.intern(name)
    if let value = get(key) {
      if let result = Wanted(flowValue: value) { return result }
      error = .mismatchedInput(
        ByteString(name), bucket.shown(value, of: key), wanted: ByteString(Wanted.flowTypeName),
        hiding: bucket.keys.secrets)
    } else {
      if let absent = absent(as: type) { return absent }
      error = bucket.missingInput(key)
    }
    throw failing(error)
  }

  /// The value under `name` as anything `Decodable`; fails the op and throws when there is none, or
  /// one that the type can't be made of. The error names the path of the part and what the type
  /// expects there. As an optional, an absent value is nil.
  @_disfavoredOverload
  public func value<Wanted: Decodable>(
    _ name: String, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let key = bucket.keys.intern(name)
    let found = get(key)
    do {
      return try (found ?? .null).decoded(as: type)
    } catch {
      throw failing(
        found.map { bucket.mismatchedInput(key, $0, error) } ?? bucket.missingInput(key))
    }
  }

  /// The Swift object under `name`, which was stored with `FlowValue.object`; fails the op and throws
  /// when there is none, or one of another type. As an optional, an absent object is nil.
  public func object<Wanted>(
    _ name: String, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let key = bucket.keys.intern(name)
    guard let found = get(key) else {
      if let absent = absent(as: type) { return absent }
      throw failing(bucket.missingInput(key))
    }
    guard let object = found.object(as: type) else {
      throw failing(
        .mismatchedInput(
          ByteString(name), bucket.shown(found, of: key),
          wanted: ByteString(String(describing: type)),
          hiding: bucket.keys.secrets))
    }
    return object
  }

  /// The absence of a value as an optional type; nil for any other type.
  private func absent<Wanted>(as type: Wanted.Type) -> Wanted? {
    (type as? any StandardOptional.Type)?.absent as? Wanted
  }

  /// Stores and logs anything `Encodable`. Has no effect after the op has settled.
  ///
  /// - Throws: A `FlowError` with the path of the part that has no form in a bucket.
  @_disfavoredOverload
  public func set(_ name: String, _ content: some Encodable) throws(FlowError) {
    let value: FlowValue
    do { value = try FlowValue(encoding: content) } catch {
      throw .unencodable(ByteString(name), error)
    }
    set(bucket.keys.intern(name), value)
  }

  /// Stores and logs a Swift value. Has no effect after the op has settled.
  public func set(_ name: String, _ value: some FlowValueConvertible) {
    set(bucket.keys.intern(name), value.flowValue)
  }

  /// Stores and logs a value; `.null` removes the key. Has no effect after the op has settled.
  public func set(_ name: String, _ value: FlowValue) {
    set(bucket.keys.intern(name), value)
  }
}
