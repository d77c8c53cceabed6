extension PlainValue {
  /// A copy of anything `Encodable`; see `FlowValueEncoder` for the forms.
  ///
  /// - Throws: An `EncodingError` when a part has no form, or one that can't be copied, such as an object.
  public init(encoding content: some Encodable) throws {
    guard let copy = PlainValue(flowValue: try FlowValue(encoding: content)) else {
      throw EncodingError.invalidValue(
        content, .init(codingPath: [], debugDescription: "a part of it can't be copied"))
    }
    self = copy
  }

  /// This value as anything `Decodable`; see `FlowValueDecoder`.
  public func decoded<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    try flowValue.decoded(as: type)
  }
}
