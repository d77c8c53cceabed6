/// A key of data with the Swift type of its values: one constant for the ops that give a value, those that need it, and the
/// program. The compiler checks each use.
///
/// ```swift
/// enum Keys {
///   static let urls = FlowKey<[URL]>("urls")
/// }
/// struct FetchOp: TypedOp {
///   let urls = Input(Keys.urls)
///   func run(_ data: OpData<Self>) throws { print(data.urls.count) }
/// }
/// let run = try Flow("fetch") { FetchOp() }.data(Keys.urls, []).start()
/// print(run.data[Keys.urls]?.count ?? 0)
/// ```
///
/// As with `Input`, a type that is `FlowValueConvertible` is converted by itself, any other one that is `Codable` is
/// encoded and decoded.
public struct FlowKey<Content: Sendable>: Sendable {
  /// Its name in data.
  public let name: ByteString
  let form: any ContentForm<Content>.Type

  fileprivate init(_ name: ByteString, _ form: any ContentForm<Content>.Type) {
    self.name = name
    self.form = form
  }
}

extension FlowKey where Content: FlowValueConvertible {
  /// A key with a name.
  public init(_ name: some FlowText) { self.init(name.byteString, ConvertibleForm<Content>.self) }
}

extension FlowKey where Content: Codable {
  /// A key with a name.
  @_disfavoredOverload
  public init(_ name: some FlowText) { self.init(name.byteString, CodableForm<Content>.self) }
}

extension FlowKey {
  /// A key for a Swift object of any type.
  public init(object name: some FlowText) { self.init(name.byteString, ObjectForm<Content>.self) }

  /// The value of a content.
  fileprivate func value(of content: Content) throws(FlowError) -> FlowValue {
    do { return try form.value(of: content) } catch { throw .unencodable(name, error) }
  }
}

extension DataBucket {
  /// The value under a key; nil when it is absent or of another type.
  public subscript<Content>(key: FlowKey<Content>) -> Content? {
    self[key.name].flatMap { try? key.form.content(of: $0) }
  }
}

extension OpContext {
  /// Sets the value under a key.
  ///
  /// - Throws: A `FlowError` with the path of the part that has no form in data.
  public func set<Content>(_ key: FlowKey<Content>, _ content: Content) throws(FlowError) {
    set(key.name, try key.value(of: content))
  }
}

extension Flow {
  /// Adds initial data under a key; a later value replaces an earlier one.
  ///
  /// - Throws: A `FlowError` with the path of the part that has no form in data.
  @discardableResult
  public func data<Content>(_ key: FlowKey<Content>, _ content: Content) throws(FlowError) -> Flow {
    data(key.name, try key.value(of: content))
  }
}
